"""Which steps a scatter repeats, and which steps a race can cancel: the shape of a graph, from its edges alone.

Judges nothing: a graph that is no proper nest of scatters and gathers is described by its faults.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ductor.model.enums import EdgeType, StepType

ROOT = -1
"""The region of steps that no scatter repeats."""

MAX_NESTING = 4
"""Scatters within each other. Every level is one more page to read for each step."""


class Link(msgspec.Struct, frozen=True):
    """An edge between step indexes."""

    source: int
    target: int
    type: EdgeType


class ShapeFault(msgspec.Struct, frozen=True):
    """What keeps a graph from being a proper nest. `step` is the index of the step to blame."""

    step: int
    message: str


class Regions(msgspec.Struct, frozen=True):
    """`region[i]` is the innermost scatter around step i, or ROOT; `gather_of[s]` the gather that closes scatter s."""

    region: tuple[int, ...]
    gather_of: dict[int, int]
    scatter_of: dict[int, int]
    faults: tuple[ShapeFault, ...]


def enters(kind: StepType | None, edge: EdgeType) -> bool:
    """Whether an edge leads from a scatter into its body."""
    return kind is StepType.SCATTER and edge is EdgeType.SUCCESS


def find_regions(kinds: Sequence[StepType | None], links: Sequence[Link], order: Sequence[int]) -> Regions:
    """The regions of an acyclic graph. `order` is topological and holds every step."""
    into: list[list[Link]] = [[] for _ in kinds]
    for link in links:
        into[link.target].append(link)
    stacks: list[tuple[int, ...]] = [() for _ in kinds]
    gather_of: dict[int, int] = {}
    faults: list[ShapeFault] = []
    for step in order:
        found = {_contribution(kinds, stacks, link) for link in into[step]} or {()}
        stack = max(found, key=len)
        if len(found) > 1:
            faults.append(ShapeFault(step, _open_body(kinds, found)))
        if kinds[step] is StepType.GATHER and stack:
            if stack[-1] in gather_of:
                faults.append(ShapeFault(step, "a second gather closes the same scatter; join its branches before"))
            gather_of.setdefault(stack[-1], step)
            stack = stack[:-1]
        if kinds[step] is StepType.SCATTER and len(stack) >= MAX_NESTING:
            faults.append(ShapeFault(step, f"scatters nest at most {MAX_NESTING} deep"))
        stacks[step] = stack
    faults.extend(_unclosed(kinds, stacks, gather_of))
    region = tuple(stack[-1] if stack else ROOT for stack in stacks)
    return Regions(region, gather_of, {gather: scatter for scatter, gather in gather_of.items()}, tuple(faults))


def _contribution(kinds: Sequence[StepType | None], stacks: list[tuple[int, ...]], link: Link) -> tuple[int, ...]:
    inner = enters(kinds[link.source], link.type)
    return (*stacks[link.source], link.source) if inner else stacks[link.source]


def _open_body(kinds: Sequence[StepType | None], found: set[tuple[int, ...]]) -> str:
    del kinds, found
    return (
        "is reached both from inside and from outside of a scatter's body; the steps between a scatter and its gather"
        " have no edges in or out except through the two"
    )


def _unclosed(
    kinds: Sequence[StepType | None], stacks: list[tuple[int, ...]], gather_of: dict[int, int]
) -> list[ShapeFault]:
    bodies = {stack[-1] for stack in stacks if stack}
    faults = []
    for step, kind in enumerate(kinds):
        if kind is not StepType.SCATTER:
            continue
        if step not in gather_of:
            faults.append(ShapeFault(step, "no gather closes it; draw an edge from the last step of its body to one"))
        elif step not in bodies:
            faults.append(ShapeFault(step, "its body is empty; put at least one step between it and its gather"))
    return faults


def outward(kinds: Sequence[StepType | None], links: Sequence[Link], regions: Regions) -> list[list[int]]:
    """Per step the targets of its edges within its region; a scatter leads to its gather."""
    targets: list[list[int]] = [[] for _ in kinds]
    for link in links:
        inner = enters(kinds[link.source], link.type)
        if not inner and regions.region[link.source] == regions.region[link.target]:
            targets[link.source].append(link.target)
    for scatter, gather in regions.gather_of.items():
        targets[scatter].append(gather)
    return targets


def branch(region: Sequence[int], outward: Sequence[Sequence[int]], source: int, join: int) -> frozenset[int]:
    """The steps all of whose paths to a sink pass an edge from `source` to `join`, by their indexes.

    `outward[i]` are the targets of step i within its region, the gather of a scatter among them.
    """
    if region[source] != region[join]:
        return frozenset()
    inside: set[int] = set()
    if all(target == join for target in outward[source]):
        inside.add(source)
    inward: dict[int, list[int]] = {}
    for step, targets in enumerate(outward):
        for target in targets:
            inward.setdefault(target, []).append(step)
    waiting = list(inside)
    while waiting:
        for before in inward.get(waiting.pop(), ()):
            if before not in inside and all(target in inside for target in outward[before]):
                inside.add(before)
                waiting.append(before)
    return frozenset(inside)
