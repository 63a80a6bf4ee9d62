"""Where a node lives: node ids (`charge`, `charge@3`, nested `charge@3.7`) and the scopes and pages behind them.

Reads only. Pages that are not in memory come from `state.loaded`, which reads them on demand.
"""

from __future__ import annotations

import msgspec

from ductor.engine.graph import Graph, GraphNode
from ductor.engine.regions import ROOT
from ductor.model.enums import NodeStatus
from ductor.model.run import ItemState, ItemStatus, NodeState, PageState, RunState, ScatterState, ScopeState


class Place(msgspec.Struct, gc=False):
    """A node in its scope. `path` is the part of its id after the `@`; `above` is the scatter whose item it is in."""

    node: GraphNode
    scope: ScopeState
    path: str = ""
    page: PageState | None = None
    index: int = 0
    above: Place | None = None

    @property
    def id(self) -> str:
        return f"{self.node.ref}@{self.path}" if self.path else self.node.ref

    @property
    def entry(self) -> NodeState | None:
        return self.scope.nodes.get(self.node.ref)

    @property
    def open(self) -> bool:
        """Whether every scope around the node still goes on: otherwise nothing in it starts."""
        place = self
        while place.above is not None:
            above = place.above
            entry = above.entry
            item = place.scope
            if entry is None or entry.status is not NodeStatus.WAITING:
                return False
            if not isinstance(item, ItemState) or item.status is not ItemStatus.RUNNING:
                return False
            place = above
        return True


def find(graph: Graph, state: RunState, node_id: str) -> Place | None:
    """The node's place; None for an id that has no place (yet)."""
    if "@" not in node_id:
        node = graph.by_ref.get(node_id)
        return Place(node, state.root) if node is not None and node.region == ROOT else None
    ref, _, path = node_id.partition("@")
    node = graph.by_ref.get(ref)
    return _inside(graph, state, node, path) if node is not None else None


def _inside(graph: Graph, state: RunState, node: GraphNode, path: str) -> Place | None:
    if node.region == ROOT:
        return None
    outer_path, _, last = path.rpartition(".")
    scatter = graph.nodes[node.region]
    above = _inside(graph, state, scatter, outer_path) if outer_path else find(graph, state, scatter.ref)
    entry = above.entry if above else None
    if above is None or entry is None or entry.scatter is None or not last.isdecimal():
        return None
    index = int(last)
    page = page_of(state, entry.scatter, index)
    if page is None:
        return None
    return Place(node, page.items[index - page.first], path, page, index, above)


def page_of(state: RunState, scatter: ScatterState, index: int) -> PageState | None:
    """The page that holds item `index`; None when it has not been opened."""
    number = index // scatter.size
    if index >= scatter.count or number >= scatter.opened:
        return None
    return state.loaded[scatter.base + number]


def in_item(graph: Graph, scatter: Place, index: int, page: PageState) -> Place:
    """A place in the scope of an item of `scatter`, for expressions that belong to the item as a whole."""
    first = graph.nodes[graph.bodies[scatter.node.index][0]]
    return Place(first, page.items[index - page.first], item_path(scatter.path, index), page, index, scatter)


def item_path(outer: str, index: int) -> str:
    """The path of item `index` of a scatter with path `outer`."""
    return f"{outer}.{index}" if outer else str(index)


def scatter_of(graph: Graph, state: RunState, page: PageState) -> Place:
    """The scatter of a page. A page is only ever made by its scatter."""
    place = find(graph, state, page.scatter)
    if place is None:
        raise LookupError(f"page {page.number} belongs to {page.scatter}, which has no place")
    return place
