"""Bookkeeping of scatters: their items, the pages these live in, and what the header knows of the pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ductor.engine.graph import Graph
from ductor.engine.keeping import calm, entry_of, mark, move, place_of, push, resolve_one, touch, tree_of
from ductor.engine.keeping import unready as _unready
from ductor.engine.revive import complete_nodes, revive
from ductor.engine.scopes import Place, in_item
from ductor.model import transition as tr
from ductor.model.enums import NodeStatus
from ductor.model.run import ItemState, ItemStatus, NodeState, PageState, RunState, ScatterState

DRAIN_CHECK_MS: Final = 15_000
"""How soon somebody looks again after an attempt that was asked to stop."""


def _scatter(place: Place) -> ScatterState:
    scatter = entry_of(place).scatter
    if scatter is None:
        raise LookupError(f"{place.id} has opened no items")
    return scatter


def _wait(state: RunState, place: Place, generation: int, at: int) -> NodeState:
    node = entry_of(place)
    if node.status is NodeStatus.PENDING:
        _unready(state, place)
        node.entered_at = node.started_at = at
    move(state, place, node, NodeStatus.WAITING, at)
    node.generation = generation
    return node


def _scatter_opened(graph: Graph, state: RunState, t: tr.ScatterOpened, at: int) -> None:
    place, tree = place_of(graph, state, t.node), tree_of(state)
    node = _wait(state, place, t.generation, at)
    node.scatter = ScatterState(count=t.count, items=t.items, base=t.base, size=t.size, window=t.window)
    tree.pages = max(tree.pages, t.base + -(-t.count // t.size))
    _offer(state, place.id, node.scatter)


def _scatter_reopened(graph: Graph, state: RunState, t: tr.ScatterReopened, at: int) -> None:
    place = place_of(graph, state, t.node)
    _wait(state, place, t.generation, at)
    scatter = _scatter(place)
    scatter.started = scatter.running = scatter.succeeded = scatter.failed = 0
    _offer(state, place.id, scatter)


def _offer(state: RunState, node_id: str, scatter: ScatterState) -> None:
    """Keep the list of scatters that may start items right."""
    opening = tree_of(state).opening
    if scatter.may_start > 0:
        if node_id not in opening:
            opening.append(node_id)
    elif node_id in opening:
        opening.remove(node_id)


def _page_opened(graph: Graph, state: RunState, t: tr.PageOpened, _at: int) -> None:
    place, tree = place_of(graph, state, t.node), tree_of(state)
    _scatter(place).opened += 1
    items = [ItemState() for _ in range(t.count)]
    state.loaded[t.page] = PageState(
        number=t.page,
        scatter=t.node,
        first=t.first,
        items=items,
        inputs=t.inputs,
        seq=state.seq,
        paused_ms=tree.paused_ms,
    )


def _items_started(graph: Graph, state: RunState, t: tr.ItemsStarted, _at: int) -> None:
    place, tree = place_of(graph, state, t.node), tree_of(state)
    scatter = _scatter(place)
    scatter.started = t.until
    page = state.loaded[scatter.base + t.first // scatter.size]
    touch(state, page)
    for index in range(t.first, t.until):
        item = page.items[index - page.first]
        if item.status is ItemStatus.SUCCEEDED:
            scatter.succeeded += 1
            continue
        scatter.running += 1
        tree.items += 1
        inside = in_item(graph, place, index, page)
        if item.status is ItemStatus.PENDING:
            item.status = ItemStatus.RUNNING
            for edge in place.node.entries:
                resolve_one(state, inside, graph.nodes[edge.target], edge.index in t.taken)
        else:
            _item_again(graph, state, inside, item)
    _offer(state, place.id, scatter)


def _item_again(graph: Graph, state: RunState, inside: Place, item: ItemState) -> None:
    item.status = ItemStatus.RUNNING
    item.error = None
    body = graph.bodies[inside.node.region]
    revive(graph, state, item, (graph.nodes[index] for index in body))
    for index in complete_nodes(graph, item, body):
        push(state, inside, index)


def _item_ended(graph: Graph, state: RunState, t: tr.ItemEnded, at: int) -> None:
    place = place_of(graph, state, t.node)
    scatter = _scatter(place)
    page = state.loaded[scatter.base + t.index // scatter.size]
    touch(state, page)
    item = page.items[t.index - page.first]
    item.status = ItemStatus.FAILED if t.error else ItemStatus.SUCCEEDED
    item.output, item.error = t.output, t.error
    scatter.running -= 1
    scatter.failed += t.error is not None
    scatter.succeeded += t.error is None
    _quiet(graph, state, in_item(graph, place, t.index, page), item, at)
    _offer(state, place.id, scatter)


def _quiet(graph: Graph, state: RunState, inside: Place, item: ItemState, at: int) -> None:
    """Nothing in the item starts any more; attempts that are out are looked after soon."""
    page = inside.page
    if page is None:
        return
    if item.ready:
        item.ready.clear()
        calm(state, page, inside.index - page.first)
    for ref, node in item.nodes.items():
        if node.status is NodeStatus.SCHEDULED:
            node.check_every = DRAIN_CHECK_MS
            node.check_at = at + DRAIN_CHECK_MS
            mark(state, Place(graph.by_ref[ref], item, inside.path, page, inside.index, inside.above), node)


def _page_closed(graph: Graph, state: RunState, t: tr.PageClosed, at: int) -> None:
    place, tree = place_of(graph, state, t.node), tree_of(state)
    scatter = _scatter(place)
    page = state.loaded[t.page]
    touch(state, page)
    for offset, item in enumerate(page.items):
        if item.status is ItemStatus.RUNNING:
            item.status = ItemStatus.CANCELLED
            _quiet(graph, state, in_item(graph, place, page.first + offset, page), item, at)
    if t.node not in tree.closing:
        return
    number = t.page - scatter.base
    if number == tree.closing[t.node]:
        tree.closing[t.node] = number + 1
    if tree.closing[t.node] >= scatter.opened:
        del tree.closing[t.node]


def _page_looked(graph: Graph, state: RunState, t: tr.PageLooked, _at: int) -> None:
    del graph
    page, tree = state.loaded[t.page], tree_of(state)
    touch(state, page)
    nodes = [node for item in page.items for node in item.nodes.values()]
    deadline = min((node.deadline for node in nodes if node.deadline), default=0)
    check = min((node.check_at for node in nodes if node.check_at), default=0)
    tree.due.pop(t.page, None)
    if deadline or check:
        tree.due[t.page] = (deadline, check)


def _gather_collected(graph: Graph, state: RunState, t: tr.GatherCollected, at: int) -> None:
    place, tree = place_of(graph, state, t.node), tree_of(state)
    node = entry_of(place)
    if node.status is NodeStatus.PENDING:
        _wait(state, place, node.generation + 1, at)
        tree.collecting.append(t.node)
    node.cursor = t.cursor
    node.input = t.output


EVOLVE_ITEMS: Final[dict[type, Callable[[Graph, RunState, Any, int], None]]] = {
    tr.ScatterOpened: _scatter_opened,
    tr.ScatterReopened: _scatter_reopened,
    tr.PageOpened: _page_opened,
    tr.ItemsStarted: _items_started,
    tr.ItemEnded: _item_ended,
    tr.PageClosed: _page_closed,
    tr.PageLooked: _page_looked,
    tr.GatherCollected: _gather_collected,
}
