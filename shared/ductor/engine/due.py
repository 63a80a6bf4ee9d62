"""What time does to a run: deadlines, backoffs and looks that have come, and the next moment at which one comes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ductor.engine.context import NodeContext, TickContext
from ductor.engine.node_controls import hold
from ductor.engine.outcome import PARKED, ending
from ductor.engine.scopes import Place, item_path, scatter_of
from ductor.engine.slots import slot_due
from ductor.model import transition as tr
from ductor.model.enums import NodeStatus, RunStatus
from ductor.model.errors import StepError
from ductor.model.run import NodeState, TreeState
from ductor.model.transition import Transition

PAGES_PER_TICK: Final = 20
"""Pages that one tick opens on its own account; what its intents name comes on top."""

LOOKS_PER_TICK: Final = 200
"""Attempts that one tick has looked after: each costs a read, and may put its task on the steps queue once more."""

_TIMED: Final = PARKED | {NodeStatus.SCHEDULED}
MAX_CHECK_MS: Final = 86_400_000


def decide_due(ctx: TickContext) -> Iterable[Transition]:
    """What is due by now: the run's deadline, parked nodes, and live attempts that somebody should look after.

    While paused only attempts are looked after: deadlines wait for the resume. What is due for longest comes first;
    what a tick has no room for stays due, and the wake-up for it is armed in the past.
    """
    state = ctx.state
    resting = state.status is RunStatus.PAUSED
    if state.deadline and state.deadline <= ctx.now and not state.ending and not resting:
        error = StepError("RUN_TIMED_OUT", "the run did not end within its run_timeout_ms", retryable=False)
        yield from ending(ctx, RunStatus.TIMED_OUT, error, "")
        return
    yield from slot_due(ctx, MAX_CHECK_MS)
    for ref in _due_first(state.root.nodes, ctx.now):
        yield from _node_due(ctx, Place(ctx.graph.by_ref[ref], state.root), 0)
    if state.tree is not None:
        yield from _pages_due(ctx, state.tree)


def _node_due(ctx: TickContext, place: Place, paused_ms: int) -> Iterable[Transition]:
    """`paused_ms` of pauses are not in the node's backoff yet."""
    entry, state = place.entry, ctx.state
    if entry is None:
        return
    draining = state.ending is not None or not place.open
    if 0 < entry.check_at <= ctx.now and not entry.status.ended and ctx.looks < LOOKS_PER_TICK:
        ctx.looks += 1
        hurried = draining and not place.node.behaviour.patient
        every = entry.check_every if hurried else min(entry.check_every * 2, MAX_CHECK_MS)
        yield tr.NodeChecked(place.id, ctx.now + every, every)
    deadline = entry.deadline + (paused_ms if entry.deadline and entry.status is NodeStatus.RETRYING else 0)
    resting = state.status is RunStatus.PAUSED
    if 0 < deadline <= ctx.now and entry.status in _TIMED and not resting and not draining:
        yield from place.node.behaviour.due(NodeContext(ctx, place))
        yield from hold(ctx, place.id)


def _pages_due(ctx: TickContext, tree: TreeState) -> Iterable[Transition]:
    """The same for nodes in pages; each page is looked at once a tick, and not more of them than a tick may open."""
    waits = ctx.state.status is RunStatus.PAUSED or ctx.state.ending is not None
    due = [number for number, marks in tree.due.items() if _is_due(0 if waits else marks[0], marks[1], ctx.now)]
    for number in sorted(set(due) - ctx.looked, key=lambda one: (_moment(*tree.due[one]), one)):
        if ctx.looks >= LOOKS_PER_TICK or (ctx.looked and len(ctx.pages) >= PAGES_PER_TICK):
            return
        ctx.looked.add(number)
        ctx.pages.add(number)
        page = ctx.state.loaded[number]
        above = scatter_of(ctx.graph, ctx.state, page)
        behind = tree.paused_ms - page.paused_ms
        for index, item in enumerate(page.items, page.first):
            path = item_path(above.path, index)
            for ref in _due_first(item.nodes, ctx.now):
                yield from _node_due(ctx, Place(ctx.graph.by_ref[ref], item, path, page, index, above), behind)
        yield tr.PageLooked(number)


def _is_due(deadline: int, check_at: int, now: int) -> bool:
    return 0 < deadline <= now or 0 < check_at <= now


def _due_first(nodes: Mapping[str, NodeState], now: int) -> list[str]:
    """The refs of the nodes that are due, those that are for longest first."""
    due = [ref for ref, entry in nodes.items() if _is_due(entry.deadline, entry.check_at, now)]
    return sorted(due, key=lambda ref: _moment(nodes[ref].deadline, nodes[ref].check_at)) if due[1:] else due


def _moment(deadline: int, check_at: int) -> int:
    return min(deadline, check_at) if deadline and check_at else deadline or check_at


def soonest_due(ctx: TickContext) -> int:
    """The earliest moment (epoch ms) at which `decide_due` will have something to do, 0 = never."""
    state = ctx.state
    if state.status.terminal:
        return 0
    due = state.tree.due.values() if state.tree else ()
    moments = [entry.check_at for entry in state.root.nodes.values() if entry.check_at]
    moments += [check for _, check in due if check]
    moments += [state.slot.check_at] if state.slot and state.slot.awaited and not state.ending else []
    if state.status is not RunStatus.PAUSED and not state.ending:
        moments += [entry.deadline for entry in state.root.nodes.values() if entry.deadline]
        moments += [deadline for deadline, _ in due if deadline]
        moments += [state.deadline] if state.deadline else []
    return min(moments, default=0)
