"""Progress of scatters within a tick: which items begin, which have ended, and the closing of scopes page by page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ductor.engine.context import NodeContext, TickContext
from ductor.engine.outcome import PARKED, item_failed
from ductor.engine.scopes import Place, find, in_item, item_path
from ductor.expressions import ExpressionError
from ductor.model import transition as tr
from ductor.model.enums import NodeStatus
from ductor.model.errors import StepError
from ductor.model.json import JSON
from ductor.model.run import ItemStatus, PageState, ScatterState, TreeState
from ductor.model.transition import Transition

_LIVE = PARKED | {NodeStatus.SCHEDULED}


def ready_place(ctx: TickContext, tree: TreeState) -> Place | None:
    """The first ready node of the first page that has one."""
    if not tree.ready:
        return None
    page = ctx.state.loaded[tree.ready[0]]
    ctx.pages.add(page.number)
    offset = page.ready[0]
    item = page.items[offset]
    node = ctx.graph.nodes[item.ready[0]]
    index = page.first + offset
    above = ctx.place(page.scatter)
    if above is None:
        return None
    return Place(node, item, item_path(above.path, index), page, index, above)


def opening_place(ctx: TickContext, tree: TreeState) -> Place | None:
    """A scatter that may start items, and around which everything still goes on."""
    for node_id in tree.opening:
        place = ctx.place(node_id)
        if place is not None and place.open:
            return place
    return None


def open_items(ctx: TickContext, place: Place) -> Iterator[Transition]:
    """Start what the window has room for, within one page."""
    scatter = _scatter(place)
    first = scatter.started
    number = first // scatter.size
    if number >= scatter.opened:
        yield _page(ctx, place, scatter, number)
    page = ctx.state.loaded[scatter.base + number]
    ctx.pages.add(page.number)
    until = min(first + scatter.may_start, page.first + len(page.items))
    conditional = any(edge.condition is not None for edge in place.node.entries)
    if not conditional:
        yield tr.ItemsStarted(place.id, first, until, tuple(edge.index for edge in place.node.entries))
    else:
        for index in range(first, until):
            if place.open:
                yield from _open_one(ctx, place, page, index)
    if place.open:
        # Items that a redrive found done may have been the last.
        yield from place.node.behaviour.item_ended(NodeContext(ctx, place), None)


def _open_one(ctx: TickContext, place: Place, page: PageState, index: int) -> Iterator[Transition]:
    inside = NodeContext(ctx, in_item(ctx.graph, place, index, page))
    try:
        taken = tuple(
            edge.index for edge in place.node.entries if edge.condition is None or inside.holds(edge.condition)
        )
    except ExpressionError as fault:
        yield tr.ItemsStarted(place.id, index, index + 1, ())
        yield from item_failed(ctx, inside.place, StepError(fault.code, fault.message, retryable=False))
        return
    yield tr.ItemsStarted(place.id, index, index + 1, taken)


def _page(ctx: TickContext, place: Place, scatter: ScatterState, number: int) -> Transition:
    values: list[JSON] = ctx.value(scatter.items)
    first = number * scatter.size
    own = values[first : first + scatter.size]
    return tr.PageOpened(place.id, scatter.base + number, first, len(own), ctx.keep(own))


def end_items(ctx: TickContext) -> Iterator[Transition]:
    """Give the items whose steps have all ended their results, and let their scatters judge."""
    while ctx.finished:
        scatter_id, index = ctx.finished.pop(0)
        place = ctx.place(scatter_id)
        if place is not None and not ctx.state.ending and not ctx.state.status.terminal:
            yield from _end_item(ctx, place, index)


def _end_item(ctx: TickContext, place: Place, index: int) -> Iterator[Transition]:
    scatter = _scatter(place)
    page = ctx.state.loaded[scatter.base + index // scatter.size]
    inside = in_item(ctx.graph, place, index, page)
    item = page.items[index - page.first]
    if item.status is not ItemStatus.RUNNING or not inside.open:
        return
    gather = ctx.graph.nodes[place.node.gather]
    arrived = item.arrived.get(gather.index, [])
    try:
        output = gather.behaviour.item_output(gather.args, NodeContext(ctx, inside), arrived)
    except ExpressionError as fault:
        message = f"{gather.ref}: {fault.message}"
        yield from item_failed(ctx, inside, StepError(fault.code, message, retryable=False))
        return
    yield tr.ItemEnded(place.id, index, output)
    yield from place.node.behaviour.item_ended(NodeContext(ctx, place), None)


def close_page(ctx: TickContext, tree: TreeState) -> Iterator[Transition]:
    """One page of a scatter that has ended before its items."""
    node_id, number = next(iter(tree.closing.items()))
    place = ctx.place(node_id)
    if place is None:
        return
    page = ctx.state.loaded[_scatter(place).base + number]
    yield from shut(ctx, place, page)


def shut(ctx: TickContext, place: Place, page: PageState) -> Iterator[Transition]:
    """Cancel what waits in a page and stop what runs; after a terminate nothing is drained, all of it is cancelled."""
    ctx.pages.add(page.number)
    statuses = _LIVE if ctx.state.status.terminal else PARKED
    for index, item in enumerate(page.items, page.first):
        path = item_path(place.path, index)
        for ref in [ref for ref, entry in item.nodes.items() if entry.status in statuses]:
            yield tr.NodeCancelled(f"{ref}@{path}", live=item.nodes[ref].status is NodeStatus.SCHEDULED)
    yield tr.PageClosed(place.id, page.number)


def out_in(ctx: TickContext, node_id: str, page_number: int, only: int | None = None) -> Iterable[tuple[str, int, int]]:
    """The attempts that are out in a page (or in item `only` of it): node id, attempt, generation."""
    place = find(ctx.graph, ctx.state, node_id)
    page = ctx.state.loaded[page_number]
    if place is None:
        return
    for index, item in enumerate(page.items, page.first):
        if only is None or index == only:
            for ref, entry in item.nodes.items():
                if entry.status is NodeStatus.SCHEDULED:
                    yield f"{ref}@{item_path(place.path, index)}", entry.attempt, entry.generation


def waiting_in(ctx: TickContext, node_id: str, page_number: int | None, only: int | None = None) -> Iterable[Place]:
    """The waiting nodes of a page of the scatter, or of item `only` (then in whichever page it is)."""
    place = find(ctx.graph, ctx.state, node_id)
    scatter = place.entry.scatter if place and place.entry else None
    if place is None or scatter is None:
        return
    number = scatter.base + (only or 0) // scatter.size if page_number is None else page_number
    page = ctx.state.loaded[number]
    for index, item in enumerate(page.items, page.first):
        if only is None or index == only:
            inside = in_item(ctx.graph, place, index, page)
            for ref, entry in item.nodes.items():
                if entry.status is NodeStatus.WAITING:
                    node = ctx.graph.by_ref[ref]
                    yield Place(node, item, inside.path, page, index, place)


def _scatter(place: Place) -> ScatterState:
    entry = place.entry
    if entry is None or entry.scatter is None:
        raise LookupError(f"{place.id} has opened no items")
    return entry.scatter
