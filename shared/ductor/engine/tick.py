"""One tick: intents in, transitions and commands out. Pure, deterministic and bounded.

Order: each intent in turn, after each everything that became ready; then what is due; then the end of the run; then
the one wake-up. What does not fit a bounded tick stays `ready`, and the tick asks for a nudge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ductor.engine.announcing import announcements
from ductor.engine.closing import owed
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
    out_in,
    ready_place,
    shut,
    waiting_in,
)
from ductor.engine.outcome import ending
from ductor.engine.scopes import Place, find
from ductor.model import transition as tr
from ductor.model.command import (
    ArmWake,
    AskSlot,
    CheckAttempt,
    Command,
    ForwardIntent,
    LeaveSlot,
    Nudge,
    Registration,
    RevokeAttempt,
    StartAttempt,
    StartLinked,
)
from ductor.model.enums import NodeStatus, RunStatus
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
    commands = _commands(ctx, intents)
    stores, registrations = tuple(ctx.stores.values()), _registrations(ctx)
    return Tick(state, tuple(ctx.transitions), commands, stores, registrations, _outstanding_nudge(ctx, intents))


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


def _work_left(ctx: TickContext) -> bool:
    """Whether a full tick would have left something for a nudge to go on with."""
    state, tree = ctx.state, ctx.state.tree
    running = state.status is RunStatus.RUNNING and state.ending is None
    if running and state.root.ready:
        return True
    if tree is None:
        return False
    return bool(tree.closing or (running and (tree.ready or tree.opening or tree.collecting)))


def _fresh_fork(state: RunState) -> bool:
    """Whether nothing has ticked the run yet that went on from another one: then no nudge of it is on its way."""
    return state.fork is not None and any(isinstance(one, tr.RunForked) for one in state.last.transitions[:1])


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
    if wanted and (not ctx.state.wake_at or wanted < ctx.state.wake_at):
        ctx.apply(tr.WakeArmed(wanted))


def _commands(ctx: TickContext, intents: Sequence[Intent]) -> tuple[Command, ...]:
    commands: list[Command] = []
    for transition in ctx.transitions:
        if type(transition) not in _SILENT:
            commands.extend(_command_of(ctx, transition))
        own = _speaking(ctx, transition) if ctx.graph.speaks else None
        if own is not None:
            commands.extend(own.node.behaviour.commands(own, transition))
        elif ctx.graph.speaks and isinstance(transition, tr.RunPaused | tr.RunResumed):
            commands.extend(_rest(ctx, transition))
    if _nudges(ctx, intents):
        commands.append(Nudge())
    commands.extend(_again(ctx, intents, commands))
    commands.extend(announcements(ctx.state, ctx.transitions, ctx.state.last if _fresh_fork(ctx.state) else None))
    return tuple(commands)


_SILENT: Final = frozenset({tr.NodeCompleted, tr.NodeSkipped, tr.NodeParked, tr.NodeRetrying, tr.CheckpointReached})
"""Transitions that ask for nothing, whatever the type of their node: most of all there are."""


def _nudges(ctx: TickContext, intents: Sequence[Intent]) -> bool:
    """Whether the tick asks for a nudge: one at a time is enough, and each causes the next."""
    return bool(ctx.transitions) and _work_left(ctx) and not _on_its_way(ctx.state, intents)


def _on_its_way(state: RunState, intents: Sequence[Intent]) -> int:
    """The nudge of an earlier commit that has not arrived yet, by the number of that commit; 0 = none.

    Copies of one that has arrived, which a repeated send leaves behind, have the number of a commit long gone; one
    that an earlier release has sent has none.
    """
    wanted = state.last.nudge
    arrived = any(intent.kind is IntentKind.NUDGE and intent.generation in (0, wanted) for intent in intents)
    return 0 if arrived else wanted


def _outstanding_nudge(ctx: TickContext, intents: Sequence[Intent]) -> int:
    """What the commit remembers. A nudge that arrives while the run is paused does nothing, not even a commit."""
    if not _work_left(ctx):
        return 0
    return ctx.state.version + 1 if _nudges(ctx, intents) else _on_its_way(ctx.state, intents)


def _rest(ctx: TickContext, transition: Transition) -> Iterable[Command]:
    """What steps that wait ask for when their run comes to rest, or goes on. Those in items are not asked."""
    for ref, entry in ctx.state.root.nodes.items():
        node = ctx.graph.by_ref[ref]
        if entry.status is NodeStatus.WAITING and node.behaviour.speaks:
            yield from node.behaviour.commands(NodeContext(ctx, Place(node, ctx.state.root)), transition)


def _registrations(ctx: TickContext) -> tuple[Registration, ...]:
    found: list[Registration] = []
    for transition in ctx.transitions if ctx.graph.speaks else ():
        own = _speaking(ctx, transition)
        if own is not None:
            found.extend(own.node.behaviour.register(own, transition))
    return tuple(found)


def _speaking(ctx: TickContext, transition: Transition) -> NodeContext | None:
    """The node of a transition, if its type has commands or registrations of its own."""
    node_id: str = getattr(transition, "node", "")
    node = ctx.graph.by_ref.get(node_id.partition("@")[0]) if node_id else None
    if node is None or not node.behaviour.speaks:
        return None
    place = ctx.place(node_id)
    return NodeContext(ctx, place) if place is not None else None


def _again(ctx: TickContext, intents: Sequence[Intent], commands: Sequence[Command]) -> Iterable[Command]:
    """What is asked for anew: a nudge that changed nothing all that is outstanding, an early wake-up itself."""
    kinds = {intent.kind for intent in intents}
    wake_at = ctx.state.wake_at
    if IntentKind.NUDGE in kinds and not ctx.transitions and not _on_its_way(ctx.state, intents):
        yield from outstanding(ctx.state)
    elif ctx.state.status.terminal and any(isinstance(transition, tr.WakeArmed) for transition in ctx.transitions):
        yield from owed(ctx.state, check=True)
    elif IntentKind.TIMER_FIRED in kinds and wake_at > ctx.now and ArmWake(wake_at) not in commands:
        yield ArmWake(wake_at)
        yield from _asking(ctx.state)


def _command_of(ctx: TickContext, transition: Transition) -> Iterable[Command]:
    state = ctx.state
    stopping = state.ending is not None or state.status.terminal
    match transition:
        case tr.NodeScheduled(node, attempt, generation) if not stopping:
            yield StartAttempt(node, attempt, generation)
        case tr.NodeChecked(node):
            place = find(ctx.graph, state, node)
            closing = stopping or (place is not None and not place.open)
            yield from _look_after(ctx, node, RevokeAttempt if closing else CheckAttempt)
        case tr.RunEnding():
            yield from _revocations(state)
        case tr.NodeCancelled(node, True):
            place = find(ctx.graph, state, node)
            entry = place.entry if place else None
            if entry is not None:
                yield RevokeAttempt(node, entry.attempt, entry.generation)
        case tr.NodeReset(node, attempt, generation, True) | tr.AttemptAbandoned(node, attempt, generation):
            yield RevokeAttempt(node, attempt, generation)
        case tr.NodeOverdue(node):
            yield from _look_after(ctx, node, CheckAttempt)
        case tr.PageClosed(node, number):
            yield from (RevokeAttempt(*out) for out in out_in(ctx, node, number))
            yield from _deaf(ctx, waiting_in(ctx, node, number))
        case tr.ItemEnded(node, index, error=error) if error is not None:
            yield from (RevokeAttempt(*out) for out in _out_of(ctx, node, index))
            yield from _deaf(ctx, waiting_in(ctx, node, None, index))
        case tr.WakeArmed(at) if at and at == state.wake_at:
            yield ArmWake(at)
        case _:
            yield from _to_others(state, transition)


def _asking(state: RunState, lease: int = 0, *, check: bool = False) -> Iterable[Command]:
    """The demand for a slot, if the run still waits for it by the `lease` that it had then (0 = whatever it is)."""
    slot = state.slot
    if slot is not None and slot.awaited and lease in (0, slot.lease) and not state.status.terminal:
        yield AskSlot(slot.lease, check)


def _look_after(ctx: TickContext, node: str, kind: type[CheckAttempt | RevokeAttempt]) -> Iterable[Command]:
    """Ask for the row of the node's attempt, if one is out."""
    place = find(ctx.graph, ctx.state, node)
    entry = place.entry if place else None
    if entry is not None and entry.status is NodeStatus.SCHEDULED:
        yield kind(node, entry.attempt, entry.generation)


def _deaf(ctx: TickContext, places: Iterable[Place]) -> Iterable[Command]:
    """Steps of closed items wait for nothing any more: as if each had been cancelled by a transition of its own."""
    for place in places if ctx.graph.speaks else ():
        if place.node.behaviour.speaks:
            yield from place.node.behaviour.commands(NodeContext(ctx, place), tr.NodeCancelled(place.id))


def _to_others(state: RunState, transition: Transition) -> Iterable[Command]:
    """What other runs get to know, and those that share a limit with this one."""
    match transition:
        case tr.RunEnded():
            yield from owed(state, check=False)
            if state.wake_at:
                yield ArmWake(state.wake_at)
        case tr.LinkedPlanned(kind) if kind in state.duties and ":" in kind:
            yield StartLinked(kind)
            yield ArmWake(state.wake_at)
        case tr.SlotLeft(lease):
            yield LeaveSlot(lease)
        case tr.SlotAsked(lease=lease):
            yield from _asking(state, lease)
        case tr.SlotChecked():
            yield from _asking(state, check=True)
        case tr.IntentForwarded():
            yield ForwardIntent(*(getattr(transition, name) for name in ForwardIntent.__struct_fields__))
        case _:
            pass


def _out_of(ctx: TickContext, node: str, index: int) -> Iterable[tuple[str, int, int]]:
    place = find(ctx.graph, ctx.state, node)
    entry = place.entry if place else None
    if entry is None or entry.scatter is None:
        return ()
    return out_in(ctx, node, entry.scatter.base + index // entry.scatter.size, index)


def _revocations(state: RunState) -> Iterable[Command]:
    for ref, entry in state.root.nodes.items():
        if entry.status is NodeStatus.SCHEDULED:
            yield RevokeAttempt(ref, entry.attempt, entry.generation)


def outstanding(state: RunState) -> tuple[Command, ...]:
    """What must be in flight for this state, derived from it alone: sending it again is harmless and always enough."""
    commands: list[Command] = []
    if state.status.terminal:
        commands.extend(owed(state, check=True))
    for ref, entry in state.root.nodes.items():
        if entry.status is NodeStatus.SCHEDULED:
            kind = RevokeAttempt if state.ending else CheckAttempt
            commands.append(kind(ref, entry.attempt, entry.generation))
    commands.extend(_asking(state))
    if state.wake_at:
        commands.append(ArmWake(state.wake_at))
    return tuple(commands)


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
    commands = _commands(ctx, intents)
    nudge = _outstanding_nudge(ctx, intents)
    return Tick(state, tuple(ctx.transitions), commands, tuple(ctx.stores.values()), (), nudge)
