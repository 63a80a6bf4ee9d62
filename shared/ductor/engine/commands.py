"""What a tick asks for: commands that follow from its transitions, or, after a nudge, from the state alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ductor.engine.announcing import announcements
from ductor.engine.closing import owed
from ductor.engine.context import NodeContext, TickContext
from ductor.engine.items import out_in, waiting_in
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
from ductor.model.intent import Intent, IntentKind
from ductor.model.run import RunState
from ductor.model.transition import Transition

_SILENT: Final = frozenset({tr.NodeCompleted, tr.NodeSkipped, tr.NodeParked, tr.NodeRetrying, tr.CheckpointReached})
"""Transitions that ask for nothing, whatever the type of their node: most of all there are."""

NUDGE_LOST_MS: Final = 300_000
"""A nudge that has not come so long after the last commit is lost: a queue can be emptied by hand."""


def commands_of(ctx: TickContext, intents: Sequence[Intent]) -> tuple[Command, ...]:
    """What is to be sent after the commit, in this order."""
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


def _nudges(ctx: TickContext, intents: Sequence[Intent]) -> bool:
    """Whether the tick asks for a nudge: one at a time is enough, and each causes the next."""
    return bool(ctx.transitions) and work_left(ctx) and not _on_its_way(ctx, intents)


def _on_its_way(ctx: TickContext, intents: Sequence[Intent]) -> int:
    """The nudge of an earlier commit that has not arrived yet, by the number of that commit; 0 = none.

    Copies of one that has arrived, which a repeated send leaves behind, have the number of a commit long gone; one
    that an earlier release has sent has none. One that has not come in NUDGE_LOST_MS is taken for lost.
    """
    last = ctx.state.last
    if ctx.now - last.at >= NUDGE_LOST_MS:
        return 0
    arrived = any(intent.kind is IntentKind.NUDGE and intent.generation in (0, last.nudge) for intent in intents)
    return 0 if arrived else last.nudge


def outstanding_nudge(ctx: TickContext, intents: Sequence[Intent]) -> int:
    """What the commit remembers. A nudge that arrives while the run is paused does nothing, not even a commit."""
    if not work_left(ctx):
        return 0
    return ctx.state.version + 1 if _nudges(ctx, intents) else _on_its_way(ctx, intents)


def work_left(ctx: TickContext) -> bool:
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


def _rest(ctx: TickContext, transition: Transition) -> Iterable[Command]:
    """What steps that wait ask for when their run comes to rest, or goes on. Those in items are not asked."""
    for ref, entry in ctx.state.root.nodes.items():
        node = ctx.graph.by_ref[ref]
        if entry.status is NodeStatus.WAITING and node.behaviour.speaks:
            yield from node.behaviour.commands(NodeContext(ctx, Place(node, ctx.state.root)), transition)


def registrations_of(ctx: TickContext) -> tuple[Registration, ...]:
    """What must be findable before the commit."""
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
    if IntentKind.NUDGE in kinds and not ctx.transitions and not _on_its_way(ctx, intents):
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
