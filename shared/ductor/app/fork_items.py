"""The items that a fork goes on with, as its first state refers to them; and what is told of them before."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from ductor.app.fork_values import ForkValues
from ductor.engine.forking import ForkPlan
from ductor.engine.graph import Graph, GraphNode
from ductor.engine.regions import ROOT
from ductor.model.json import JSON
from ductor.model.payload import Inline, RowRef
from ductor.model.transition import Kept, KeptItems


class StepInItems(msgspec.Struct, frozen=True):
    """A step inside a scatter that goes on: how many of its results are kept, how many later ones are adopted.

    `of` is how many items had begun.
    """

    step: str
    scatter: str
    kept: int
    adopted: int
    of: int


def steps_in_items(graph: Graph, plan: ForkPlan) -> tuple[StepInItems, ...]:
    """Every step in the bodies of the planned scatters, in definition order; items of nested scatters added up."""
    found: list[StepInItems] = []
    for node in graph.nodes:
        scatter = graph.nodes[node.region].ref if node.region != ROOT else ""
        plans = [one for name, one in plan.scatters.items() if name.partition("@")[0] == scatter]
        if scatter and plans:
            kept = sum(_count(one.kept, node.ref) for one in plans)
            adopted = sum(_count(one.adopted, node.ref) for one in plans)
            found.append(StepInItems(node.ref, scatter, kept, adopted, sum(one.count for one in plans)))
    return tuple(found)


def _count(results: Collection[str], ref: str) -> int:
    return sum(node.partition("@")[0] == ref for node in results)


def within(graph: Graph, node: GraphNode, scatters: Collection[int]) -> bool:
    """Whether a step lies inside one of the scatters."""
    region = node.region
    while region != ROOT and region not in scatters:
        region = graph.nodes[region].region
    return region != ROOT


def take_items(plan: ForkPlan, values: ForkValues) -> dict[str, KeptItems]:
    """Store what the fork keeps of items, a page of them in one value, so that a fork costs by page and not by step."""

    results = [one for scatter in plan.scatters.values() for one in (*scatter.kept.values(), *scatter.adopted.values())]
    rows = {one.output: None for one in results if isinstance(one.output, RowRef)}
    loaded = values.rows(list(rows))

    def own(kept: Kept) -> JSON:
        # A row of the source becomes part of the page; a value that is larger than a row is copied by itself.
        output = kept.output
        one = Inline(loaded[output]) if isinstance(output, RowRef) else values.copy(output)
        return msgspec.to_builtins(Kept(one, kept.edges))

    taken: dict[str, KeptItems] = {}
    for scatter, one in plan.scatters.items():
        pages: dict[int, dict[str, JSON]] = {}
        for node, kept in (*one.kept.items(), *one.adopted.items()):
            pages.setdefault(_index(node) // one.size, {})[node] = own(kept)
        stored = {number: values.keep(results) for number, results in pages.items()}
        taken[scatter] = KeptItems(values.copy(one.items), one.size, stored)
    return taken


def _index(node: str) -> int:
    """The place of a node's item in its scatter."""
    return int(node.rpartition("@")[2].rpartition(".")[2])
