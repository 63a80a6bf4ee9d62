"""Nodes of item scopes for readers: one by its id, or page by page all that one step has become."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

import msgspec

from ductor.app.library import Library
from ductor.app.pages import attach
from ductor.app.refusals import invalid, node_not_found
from ductor.app.shared_cache import SharedCache
from ductor.engine.graph import Graph, GraphNode, compile_graph
from ductor.engine.regions import ROOT
from ductor.engine.scopes import find, item_path, page_of
from ductor.model.definition import Definition, Step
from ductor.model.enums import StepType
from ductor.model.run import NodeState, RunState, ScopeState
from ductor.ports import Table
from ductor.steps.behaviours import BEHAVIOURS

Indexes = tuple[int, ...]

MAX_SCOPE: Final = 200
"""Characters of a scope pattern."""


class ItemNode(msgspec.Struct, frozen=True):
    """A node in an item scope. One that has not been touched has an empty entry."""

    id: str
    step: Step
    entry: NodeState


class Places:
    """Finds nodes in states that were read. Reads pages; raises StaleRunError when the run has moved on meanwhile."""

    def __init__(self, table: Table, library: Library) -> None:
        self._table = table
        self._library = library
        self._graphs: SharedCache[str, Graph] = SharedCache(64)

    def entry(self, state: RunState, node_id: str) -> NodeState | None:
        """The entry of a node by its id; None when it has none (yet)."""
        if "@" not in node_id:
            return state.root.nodes.get(node_id)
        attach(self._table, state)
        place = find(self._graph(state), state, node_id)
        return place.entry if place else None

    def check(self, state: RunState, node_id: str) -> None:
        """Refuse with NOT_FOUND the id of a node that this run can never have, its items as many as they may be."""
        ref, at, path = node_id.partition("@")
        _, definition = self._library.load(state.origin.tenant, state.origin.definition_id)
        repeated = ref in self.repeated(state, definition)
        graph = self._graph(state) if repeated else None
        depth = len(_chain(graph, graph.by_ref[ref])) if graph is not None else 0
        items = path.split(".") if at else []
        if len(items) != depth or not all(item.isdecimal() and item.isascii() for item in items):
            raise node_not_found()

    def repeated(self, state: RunState, definition: Definition) -> frozenset[str]:
        """The refs of the steps that run once per item, and so have no node of their own in the run's scope."""
        if all(step.type is not StepType.SCATTER for step in definition.steps):
            return frozenset()
        return frozenset(node.ref for node in self._graph(state).nodes if node.region != ROOT)

    def page(self, state: RunState, scope: str, size: int, after: str | None) -> tuple[list[ItemNode], str | None]:
        """Nodes of one step in the order of their items, and the position to go on after.

        `scope` is `charge@*`, or below one outer item `charge@3.*`, or one node `charge@3`. Items that have not been
        reached are left out. Refuses with NOT_FOUND a step that is in no scatter, with SCOPE_INVALID another pattern.
        """
        ref, _, path = scope.partition("@")
        graph = self._graph(state)
        node = graph.by_ref.get(ref)
        if node is None or node.region == ROOT:
            raise node_not_found()
        chain = _chain(graph, node)
        fixed = _pattern(path, len(chain))
        attach(self._table, state)
        position = tuple(int(part) for part in after.split(".")) if after else ()
        found = list(islice(_walk(state, chain, fixed, position), size + 1))
        shown = [ItemNode(f"{ref}@{at}", node.step, item.nodes.get(ref) or NodeState()) for at, item in found[:size]]
        return shown, found[size - 1][0] if len(found) > size else None

    def _graph(self, state: RunState) -> Graph:
        origin = state.origin
        return self._graphs.get(
            origin.definition_id,
            lambda: compile_graph(self._library.load(origin.tenant, origin.definition_id)[1], BEHAVIOURS),
        )


def _chain(graph: Graph, node: GraphNode) -> list[str]:
    """The refs of the scatters around a node, from the outermost."""
    refs: list[str] = []
    while node.region != ROOT:
        node = graph.nodes[node.region]
        refs.insert(0, node.ref)
    return refs


def _pattern(path: str, depth: int) -> Indexes:
    """The indexes that a pattern fixes."""
    parts = path.split(".") if len(path) <= MAX_SCOPE else []
    if parts and parts[-1] == "*":
        parts.pop()
    elif len(parts) != depth:
        parts = ["?"]
    if len(parts) > depth or not all(part.isdecimal() and part.isascii() for part in parts):
        message = "write the step and its items, like charge@*, charge@3, or charge@3.* in a nested scatter"
        raise invalid("SCOPE_INVALID", message, "scope")
    return tuple(int(part) for part in parts)


def _walk(state: RunState, chain: list[str], fixed: Indexes, after: Indexes) -> Iterator[tuple[str, ScopeState]]:
    """Items below the fixed indexes, in order, from the first after position `after` on."""
    yield from _below(state, state.root, chain, fixed, after, "")


def _below(
    state: RunState, scope: ScopeState, chain: list[str], fixed: Indexes, after: Indexes, path: str
) -> Iterator[tuple[str, ScopeState]]:
    entry = scope.nodes.get(chain[0])
    scatter = entry.scatter if entry else None
    if scatter is None:
        return
    last = len(chain) == 1
    start = after[0] + last if after else 0
    reached = min(scatter.count, scatter.opened * scatter.size)
    for index in (fixed[0],) if fixed else range(start, reached):
        page = page_of(state, scatter, index)
        if page is None or index < start:
            continue
        item, own = page.items[index - page.first], item_path(path, index)
        if last:
            yield own, item
        else:
            deeper = after[1:] if after and index == after[0] else ()
            yield from _below(state, item, chain[1:], fixed[1:], deeper, own)
