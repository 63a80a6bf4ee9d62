"""The rules of the graph: endpoints, duplicates, edge types, cycles, and steps that can never run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from ductor.model.definition import Step
from ductor.model.enums import EdgeType, Join, OnError
from ductor.model.errors import Severity
from ductor.steps.reading import clipped, nearest
from ductor.steps.registry import STEP_SPECS
from ductor.validation.found import Found
from ductor.validation.view import EdgeAt, View

_FAILURES = frozenset({EdgeType.ERROR, EdgeType.TIMEOUT})
_EXCLUSIVE = (
    frozenset({EdgeType.TRUE, EdgeType.FALSE}),
    frozenset({EdgeType.APPROVED, EdgeType.REJECTED}),
    frozenset({EdgeType.SUCCESS, EdgeType.ERROR}),
    frozenset({EdgeType.SUCCESS, EdgeType.TIMEOUT}),
    frozenset({EdgeType.TRUE, EdgeType.ERROR}),
    frozenset({EdgeType.FALSE, EdgeType.ERROR}),
)
"""Types of which one outcome of a step takes at most one."""


def check_graph(view: View, found: Found) -> list[int]:
    """Report every fault of the graph. Gives the steps in topological order, without those in or after a cycle."""
    if not view.raw_steps:
        found.fault("steps", "GRAPH_EMPTY", "a definition needs at least one step; add one")
    _check_edges(view, found)
    order = _topological(view)
    if len(order) < len(view.raw_steps):
        for cycle in _cycles(view, order):
            path = " -> ".join(view.labels[index] for index in (*cycle, cycle[0]))
            found.fault(view.labels[cycle[0]], "GRAPH_CYCLE", f"the steps wait for each other: {path}; remove an edge")
    else:
        _check_reachable(view, order, found)
    return order


def ancestors(view: View, order: list[int]) -> list[int]:
    """For each step a bit set of the steps that come before it; all bits for those in or after a cycle."""
    above = [-1] * len(view.raw_steps)
    for index in order:
        bits = 0
        for at in view.into[index]:
            source = view.refs[at.edge.source_ref]
            bits |= above[source] | (1 << source)
        above[index] = bits
    return above


def _check_edges(view: View, found: Found) -> None:
    seen: dict[tuple[str, str, EdgeType], str] = {}
    for at in view.edges:
        edge = at.edge
        for name, ref in (("source_ref", edge.source_ref), ("target_ref", edge.target_ref)):
            if ref and ref not in view.refs:
                _unknown_endpoint(f"{at.field}.{name}", ref, view, found)
        if not at.typed:
            continue
        first = seen.setdefault((edge.source_ref, edge.target_ref, edge.type), at.field)
        if first != at.field:
            message = f"repeats {first}; remove one, or join their conditions with || in one edge"
            found.fault(at.field, "EDGE_DUPLICATE", message)
        _check_type(view, at, found)


def _unknown_endpoint(field: str, ref: str, view: View, found: Found) -> None:
    near = nearest(ref, view.refs) if found.may_suggest() else None
    hint = f"did you mean '{near}'?" if near else "name a step of this definition"
    found.fault(field, "EDGE_ENDPOINT_UNKNOWN", f"no step has the ref '{clipped(ref)}'; {hint}")


def _check_type(view: View, at: EdgeAt, found: Found) -> None:
    step_type = view.type_of(at.edge.source_ref)
    if step_type is None or at.edge.type in STEP_SPECS[step_type].edges:
        return
    allowed = ", ".join(kind.value for kind in EdgeType if kind in STEP_SPECS[step_type].edges)
    message = f"'{at.edge.type.value}' cannot leave a step of type {step_type.value}; use one of {allowed}"
    found.fault(f"{at.field}.type", "EDGE_TYPE_INVALID", message)


def _topological(view: View) -> list[int]:
    waiting = [len(edges) for edges in view.into]
    order = [index for index, count in enumerate(waiting) if count == 0]
    for index in order:
        for at in view.out[index]:
            target = view.refs[at.edge.target_ref]
            waiting[target] -= 1
            if waiting[target] == 0:
                order.append(target)
    return order


def _cycles(view: View, order: list[int]) -> Iterator[tuple[int, ...]]:
    """Cycles that share no step: walking back from any step left over must meet itself."""
    left = set(range(len(view.raw_steps))) - set(order)
    while left:
        walk: list[int] = []
        place: dict[int, int] = {}
        index: int | None = min(left)
        while index is not None and index not in place:
            place[index] = len(walk)
            walk.append(index)
            index = _before(view, index, left)
        if index is not None:
            cycle = walk[place[index] :][::-1]
            start = cycle.index(min(cycle))
            yield (*cycle[start:], *cycle[:start])
        left.difference_update(walk)


def _before(view: View, index: int, left: set[int]) -> int | None:
    sources = (view.refs[at.edge.source_ref] for at in view.into[index])
    return next((source for source in sources if source in left), None)


def _check_reachable(view: View, order: list[int], found: Found) -> None:
    dead: set[int] = set()
    for index in order:
        reason = _never(view, index, dead)
        if reason is not None:
            dead.add(index)
            found.fault(view.labels[index], "STEP_UNREACHABLE", f"can never run: {reason}", Severity.WARNING)


def _never(view: View, index: int, dead: set[int]) -> str | None:
    step = view.steps[index]
    if step is not None and step.condition.strip() == "false":
        return "its condition is always false; correct or remove it"
    into = view.into[index]
    blocked = [at for at in into if _untakeable(view, at, dead)]
    everything = view.raw_steps[index].get("join") == Join.ALL
    if blocked and (everything or len(blocked) == len(into)):
        return f"the edge from {blocked[0].edge.source_ref} is never taken; give it another type or remove it"
    if everything and (pair := _contradiction(into)) is not None:
        return f"join `all` wants both {pair}; use join `any`"
    return None


def _untakeable(view: View, at: EdgeAt, dead: set[int]) -> bool:
    source = view.refs[at.edge.source_ref]
    step: Step | None = view.steps[source]
    continues = step is not None and step.on_error is OnError.CONTINUE
    return source in dead or at.edge.condition.strip() == "false" or (continues and at.edge.type in _FAILURES)


def _contradiction(into: list[EdgeAt]) -> str | None:
    by_source: dict[str, set[EdgeType]] = {}
    for at in into:
        by_source.setdefault(at.edge.source_ref, set()).add(at.edge.type)
    for source, types in by_source.items():
        for first, second in combinations(sorted(types), 2):
            if frozenset({first, second}) in _EXCLUSIVE:
                return f"{first.value} and {second.value} of {source}"
    return None
