"""One tick: intents in, transitions and commands out. Pure, deterministic and bounded.

Order: each intent in turn, after each everything that became ready; then what is due; then the end of the run; then
the one wake-up. What does not fit a bounded tick stays `ready`, and the tick asks for a nudge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ductor.engine.commands import NUDGE_LOST_MS, commands_of, outstanding_nudge, registrations_of, work_left
from ductor.engine.context import Load, NodeContext, TickContext
from ductor.engine.decide import decide, decide_aborted, decide_end, decide_ready
from ductor.engine.due import MAX_CHECK_MS, PAGES_PER_TICK, decide_due, soonest_due
from ductor.engine.evolve import DUTY_CHECK_MS, owes
from ductor.engine.graph import Graph
from ductor.engine.items import (
    close_page,
    end_items,
    open_items,
    opening_place,
    ready_place,
    shut,
)
from ductor.engine.outcome import ending
from ductor.engine.scopes import Place
from ductor.model import transition as tr
from ductor.model.command import (
    Command,
    Registration,
)
from ductor.model.enums import RunStatus
from ductor.model.errors import StepError
from ductor.model.intent import Intent, IntentKind
from ductor.model.payload import Stored
from ductor.model.run import RunState, TreeState
from ductor.model.transition import Transition

STARTS_PER_TICK: Final = 100
"""Attempts that one tick hands out; more would make the header and the sends too large."""

TRANSITIONS_PER_TICK: Final = 500
"""Transitions after which a tick leaves the rest to the next: the header carries them once more."""

MAX_TRANSITIONS: Final = 25_000
"""A run with more is a loop: it fails with TRANSITION_LIMIT. Every item of a scatter may add its own."""

TRANSITIONS_PER_ITEM: Final = 500


@dataclass(frozen=True, slots=True)
class Tick:
    """What came out. `stores` must be durable before `state` is; `commands` are sent after it.

    Without transitions nothing is to be committed, but `commands` may still hold what a nudge sends again. `nudge` is
    the number of the commit whose nudge is on its way, 0 = none.
    """

    state: RunState
    transitions: tuple[Transition, ...]
    commands: tuple[Command, ...]
    stores: tuple[Stored, ...]
    registrations: tuple[Registration, ...] = ()
    nudge: int = 0


def tick(graph: Graph, state: RunState, intents: Sequence[Intent], now: int, load: Load) -> Tick:
    """Apply intents in order at `now` (epoch ms). Takes ownership of `state`: it is changed in place."""
    ctx = TickContext(graph, state, now, load)
    for intent in intents:
        _apply(ctx, decide(ctx, intent))
        _settle(ctx)
    rearm = _fire(ctx, intents)
    _apply(ctx, decide_end(ctx))
    _arm(ctx, rescan=rearm)
    commands = commands_of(ctx, intents)
    stores, registrations = tuple(ctx.stores.values()), registrations_of(ctx)
    return Tick(state, tuple(ctx.transitions), commands, stores, registrations, outstanding_nudge(ctx, intents))


def _apply(ctx: TickContext, transitions: Iterable[Transition]) -> None:
    for transition in transitions:
        ctx.apply(transition)


def _settle(ctx: TickContext) -> None:
    """Carry on what can go on, in a fixed order, until nothing is left or the tick is full."""
    if ctx.finished:
        _apply(ctx, end_items(ctx))
    while _has_room(ctx):
        step = _next(ctx)
        if step is None:
            return
        _apply(ctx, step)
        if ctx.finished:
            _apply(ctx, end_items(ctx))
        if ctx.state.seq > MAX_TRANSITIONS and not ctx.state.ending and ctx.state.seq > _most(ctx.state):
            error = StepError("TRANSITION_LIMIT", f"more than {_most(ctx.state)} transitions", retryable=False)
            _apply(ctx, ending(ctx, RunStatus.FAILED, error, ""))


def _most(state: RunState) -> int:
    return MAX_TRANSITIONS + TRANSITIONS_PER_ITEM * (state.tree.items if state.tree else 0)


def _next(ctx: TickContext) -> Iterable[Transition] | None:
    """Ready nodes in definition order, then those of items; then new items; then collecting; closing at any time."""
    state = ctx.state
    tree = state.tree
    running = state.status is RunStatus.RUNNING and state.ending is None
    if running and state.root.ready:
        return decide_ready(ctx, Place(ctx.graph.nodes[state.root.ready[0]], state.root))
    if tree is None:
        return None
    return (_next_item(ctx, tree) if running else None) or (close_page(ctx, tree) if tree.closing else None)


def _next_item(ctx: TickContext, tree: TreeState) -> Iterable[Transition] | None:
    place = ready_place(ctx, tree)
    if place is not None and place.page is not None and place.above is not None:
        return decide_ready(ctx, place) if place.open else shut(ctx, place.above, place.page)
    scatter = opening_place(ctx, tree)
    if scatter is not None:
        return open_items(ctx, scatter)
    gather = ctx.place(tree.collecting[0]) if tree.collecting else None
    return gather.node.behaviour.start(NodeContext(ctx, gather)) if gather else None


def _has_room(ctx: TickContext) -> bool:
    return (
        ctx.starts < STARTS_PER_TICK
        and ctx.work_left > 0
        and ctx.inline_left > 0
        and len(ctx.transitions) < TRANSITIONS_PER_TICK
        and len(ctx.pages) < PAGES_PER_TICK
    )


def _fire(ctx: TickContext, intents: Sequence[Intent]) -> bool:
    """Act on what is due. True when all deadlines were looked at, so that the wake-up must be set anew."""
    kinds = {intent.kind for intent in intents}
    fired = IntentKind.TIMER_FIRED in kinds and 0 < ctx.state.wake_at <= ctx.now
    if fired:
        ctx.apply(tr.WakeArmed(_next_look(ctx)))
    rescan = fired or bool(kinds & _RESCAN)
    while (rescan or 0 < ctx.soonest <= ctx.now) and not ctx.state.status.terminal:
        rescan = True  # `soonest` also stood for what is due later
        ctx.soonest = 0
        before = len(ctx.transitions)
        _apply(ctx, decide_due(ctx))
        _settle(ctx)
        if len(ctx.transitions) == before:
            break
    return rescan


def _next_look(ctx: TickContext) -> int:
    """When a run that has ended and still owes something looks again: ever more slowly. 0 = it needs no more looks."""
    state = ctx.state
    if not state.status.terminal or not owes(state):
        return 0
    return ctx.now + min(max(ctx.now - state.finished_at, DUTY_CHECK_MS), MAX_CHECK_MS)


_RESCAN: Final = frozenset({IntentKind.RESUME, IntentKind.REDRIVE})


def _arm(ctx: TickContext, *, rescan: bool) -> None:
    """A run arms one wake-up, and only one earlier than the armed one."""
    if ctx.state.status.terminal:
        return
    # Attempts that are asked to stop are looked after sooner than before.
    rescan = rescan or any(isinstance(transition, tr.RunEnding) for transition in ctx.transitions)
    wanted = soonest_due(ctx) if rescan else ctx.soonest
    if work_left(ctx):  # should the nudge for it get lost, nothing else need bring the run on
        look = ctx.now + NUDGE_LOST_MS
        wanted = min(wanted, look) if wanted else look
    if wanted and (not ctx.state.wake_at or wanted < ctx.state.wake_at):
        ctx.apply(tr.WakeArmed(wanted))


def abort(graph: Graph, state: RunState, intents: Sequence[Intent], error: StepError, now: int, load: Load) -> Tick:
    """A tick that fails the run whatever the intents say: the way out when its state cannot be stored.

    Operators' requests are rejected with the error, ended attempts are closed without their results.
    """
    ctx = TickContext(graph, state, now, load)
    if not state.ending and not state.status.terminal:
        _apply(ctx, ending(ctx, RunStatus.FAILED, error, ""))
    for intent in intents:
        _apply(ctx, decide_aborted(ctx, intent, error))
    _apply(ctx, decide_end(ctx))
    _arm(ctx, rescan=True)
    commands = commands_of(ctx, intents)
    nudge = outstanding_nudge(ctx, intents)
    return Tick(state, tuple(ctx.transitions), commands, tuple(ctx.stores.values()), (), nudge)
