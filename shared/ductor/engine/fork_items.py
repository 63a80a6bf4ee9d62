"""Which results of steps inside scatters still hold at a point of a run's history.

A scatter whose own start holds goes on with the same items. In each item a result holds if everything that it was
decided by in that item holds. Joins that decide early, their branches, and failures are decided anew.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from ductor.engine.graph import Graph, GraphNode
from ductor.engine.regions import ROOT
from ductor.engine.scopes import Place, find, item_path
from ductor.model import transition as tr
from ductor.model.enums import EdgeType, NodeStatus, StepType
from ductor.model.payload import Payload
from ductor.model.run import ItemState, ItemStatus, RunState
from ductor.model.transition import Kept

_DECIDED_ANEW: Final = frozenset({StepType.SCATTER, StepType.GATHER, StepType.RACE})


class ScatterPlan(msgspec.Struct):
    """A scatter that goes on with its `items`; `kept` and `adopted` are results in its body, by node id.

    `count` items had begun. Adopted results are of a later time than the point.
    """

    items: Payload
    size: int
    count: int
    kept: dict[str, Kept] = {}
    adopted: dict[str, Kept] = {}


def top_scatter(graph: Graph, ref: str) -> str:
    """The outermost scatter around a step, empty when there is none."""
    region, found = graph.by_ref[ref].region, ""
    while region != ROOT:
        found, region = graph.nodes[region].ref, graph.nodes[region].region
    return found


def scatter_id(graph: Graph, node_id: str) -> str:
    """The scatter around a node in an item, by its node id."""
    ref, _, path = node_id.partition("@")
    outer = path.rpartition(".")[0]
    scatter = graph.nodes[graph.by_ref[ref].region].ref
    return f"{scatter}@{outer}" if outer else scatter


def depth(node: GraphNode, graph: Graph) -> int:
    """How many scatters are around a step."""
    count, region = 0, node.region
    while region != ROOT:
        count, region = count + 1, graph.nodes[region].region
    return count


def kept_of(node: GraphNode, end: tr.NodeCompleted) -> Kept:
    """A completed step's result, and the types of the edges that it took."""
    types = {node.out[index].type for index in end.taken} - {EdgeType.DEFAULT}
    return Kept(end.output, tuple(sorted(types)) or (EdgeType.SUCCESS,))


class ItemPlans:
    """Plans all scatters of one fork. `ends` are the last completions of nodes in items until the point, by id."""

    def __init__(
        self,
        graph: Graph,
        state: RunState,
        ends: Mapping[str, tuple[int, tr.NodeCompleted]],
        dropped: Collection[str],
    ) -> None:
        self._graph = graph
        self._state = state
        self._ends = ends
        self._dropped = frozenset(dropped)
        self._incoming: dict[str, list[GraphNode]] = {node.ref: [] for node in graph.nodes}
        for node in graph.nodes:
            for edge in node.out:
                if graph.nodes[edge.target].region == node.region:
                    self._incoming[graph.nodes[edge.target].ref].append(node)
        self.found: dict[str, ScatterPlan] = {}

    def plan(self, ref: str) -> None:
        """Plan a scatter of the run itself whose start holds."""
        place = find(self._graph, self._state, ref)
        if place is not None:
            self._scatter(place)

    def _scatter(self, place: Place) -> bool:
        """Plan a scatter; whether it has ended and every result in it holds."""
        entry = place.entry
        scatter = entry.scatter if entry else None
        if entry is None or scatter is None:
            return False
        plan = self.found[place.id] = ScatterPlan(scatter.items, scatter.size, scatter.started)
        whole = entry.status is NodeStatus.COMPLETED and scatter.started == scatter.count
        for number in range(scatter.opened):
            page = self._state.loaded[scatter.base + number]
            for index, item in enumerate(page.items, page.first):
                whole = self._item(place, plan, index, item) and whole
        return whole

    def _item(self, scatter: Place, plan: ScatterPlan, index: int, item: ItemState) -> bool:
        """Plan one item; whether it has succeeded and everything in it holds."""
        path = item_path(scatter.path, index)
        body = [self._graph.nodes[each] for each in self._graph.bodies[scatter.node.index]]
        held: dict[str, bool] = {}
        whole = item.status is ItemStatus.SUCCEEDED
        for node in body:
            whole = self._held(node, path, item, held, plan) and whole
        return whole

    def _held(self, node: GraphNode, path: str, item: ItemState, held: dict[str, bool], plan: ScatterPlan) -> bool:
        if node.ref not in held:
            held[node.ref] = False
            sources = [self._held(source, path, item, held, plan) for source in self._incoming[node.ref]]
            held[node.ref] = all(sources) and self._holds(node, path, item, held, plan)
        return held[node.ref]

    def _holds(self, node: GraphNode, path: str, item: ItemState, held: dict[str, bool], plan: ScatterPlan) -> bool:
        """Whether the node's own end holds, given that everything before it in the item does."""
        entry, node_id = item.nodes.get(node.ref), f"{node.ref}@{path}"
        if entry is None or node.needs or node.contained or {node.ref, node_id} & self._dropped:
            return False
        if node.step.type is StepType.SCATTER:
            above = find(self._graph, self._state, node_id)
            return above is not None and self._scatter(above)
        if entry.status is NodeStatus.SKIPPED:
            return True
        if entry.status is not NodeStatus.COMPLETED or entry.error is not None:
            return False
        if node.step.type not in _DECIDED_ANEW:
            number, end = self._ends.get(node_id, (0, None))
            if end is None or number != entry.ended_seq:
                return False
            plan.kept[node_id] = kept_of(node, end)
        return True

    def adopt(self, results: Mapping[str, tuple[int, tr.NodeCompleted]], preserve: Collection[str]) -> None:
        """Take over what `preserve` names (steps, or nodes) of later results, in scatters that are planned."""
        for node_id, (_, end) in results.items():
            if end.error is None and {node_id, node_id.partition("@")[0]} & set(preserve):
                plan = self.found.get(scatter_id(self._graph, node_id))
                if plan is not None and node_id not in plan.kept:
                    plan.adopted[node_id] = kept_of(self._graph.by_ref[node_id.partition("@")[0]], end)
