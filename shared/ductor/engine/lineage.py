"""What runs tell each other: a child's end, a parent's end, the move to a successor. Decisions only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from ductor.engine.closing import close, undo_late, undoable
from ductor.engine.context import TickContext
from ductor.engine.evolve import ABANDON
from ductor.engine.outcome import cancel_nodes
from ductor.model import transition as tr
from ductor.model.enums import NodeStatus, RunStatus
from ductor.model.intent import Intent, IntentKind
from ductor.model.lineage import WORKFLOW, child_key, successor_run_id
from ductor.model.run import RunState
from ductor.model.transition import Transition

FOLLOWS: Final = frozenset({IntentKind.CANCEL, IntentKind.TERMINATE, IntentKind.SIGNAL})
"""Operators' intents that a run which continued as new hands to its successor."""

_ALIVE: Final = frozenset({NodeStatus.SCHEDULED, NodeStatus.WAITING, NodeStatus.RETRYING, NodeStatus.PAUSED})

Rule = Callable[[TickContext, Intent], Iterable[Transition]]


def child_finished(ctx: TickContext, intent: Intent) -> Iterator[Transition]:
    """The child has ended, so nobody has to close it. What its node makes of it is decided elsewhere."""
    key = child_key(intent.node, intent.attempt, intent.generation)
    if key in ctx.state.children:
        yield tr.ChildEnded(key)


def parent_closed(ctx: TickContext, intent: Intent, cancel: Rule, terminate: Rule) -> Iterable[Transition]:
    """The parent has ended or waits no longer: this run follows as the parent's policy says."""
    if ctx.state.successor is not None:
        return forward(intent)
    if ctx.state.status.terminal:
        return ()
    if intent.body == "terminate":
        return terminate(ctx, intent)
    return () if ctx.state.ending in (RunStatus.CANCELLED, RunStatus.MERGED) else cancel(ctx, intent)


def late_effect(ctx: TickContext, intent: Intent) -> Iterator[Transition]:
    """An effect that nobody counted on any more is undone with the others, or by itself when those are on their way."""
    place = ctx.place(intent.node)
    if intent.late is None or place is None or not undoable(ctx, place):
        return
    yield tr.LateEffect(intent.node, intent.attempt, ctx.keep(ctx.value(intent.late)))
    if ctx.state.status.terminal:
        yield from undo_late(ctx, place)


def duty_done(ctx: TickContext, intent: Intent) -> Iterator[Transition]:
    """Another run was found to know what this one owed it."""
    if intent.body in ctx.state.duties:
        yield tr.DutyDone(intent.body)


def forward(intent: Intent) -> Iterator[Transition]:
    yield tr.IntentForwarded(
        kind=intent.kind.value,
        intent_id=intent.id,
        actor=intent.actor,
        request_id=intent.request_id,
        request_hash=intent.request_hash,
        reason=intent.reason,
        body=intent.body,
        output=intent.output,
    )


def refusal_by_lineage(ctx: TickContext, intent: Intent) -> tuple[str, str] | None:
    """Why a control does not apply because of the runs around this one."""
    state = ctx.state
    if intent.kind is IntentKind.REDRIVE:
        return redrive_refusal(state)
    if intent.kind is not IntentKind.CONTINUE_AS_NEW:
        return None
    return continue_refusal(state, discard=_discards(intent))


def redrive_refusal(state: RunState) -> tuple[str, str] | None:
    """Why a failed run cannot be run on, because of the runs around it."""
    if state.origin.kind != WORKFLOW:
        return "NOT_REDRIVABLE", f"a {state.origin.kind} run is not redriven; repair by hand what it did not do"
    if any(linked.undoes for linked in state.linked.values()):
        return "COMPENSATION_STARTED", "what the run did is being undone; trigger a new run instead"
    if state.origin.parent_run_id and not state.origin.detached:
        return "PARENT_NOT_WAITING", f"run {state.origin.parent_run_id} was told of the end; redrive that one instead"
    return None


def continue_refusal(state: RunState, *, discard: bool) -> tuple[str, str] | None:
    """Why a run cannot continue as new now."""
    if state.origin.kind != WORKFLOW:
        return "NOT_CONTINUABLE", f"a {state.origin.kind} run does not continue as new"
    if state.ending is not None:
        return "RUN_ENDING", f"the run is on its way to {state.ending.value}"
    working = state.root.attempts or (state.tree is not None and state.tree.attempts)
    live = working or any(policy != ABANDON for policy in state.children.values())
    if live and not discard:
        return "LIVE_ATTEMPTS", "attempts or child runs are live; wait for them, or send discard_pending: true"
    return None


def _discards(intent: Intent) -> bool:
    return isinstance(intent.body, dict) and intent.body.get("discard_pending") is True


def continue_as_new(ctx: TickContext, intent: Intent) -> Iterator[Transition]:
    """The run ends; its successor has the same version and the context that the intent's payload holds."""
    yield from cancel_nodes(ctx, _ALIVE)
    run_id = successor_run_id(ctx.state.run_id, intent.request_id)
    yield tr.SuccessorPlanned(run_id, intent.output, _discards(intent))
    yield from close(ctx, RunStatus.CONTINUED_AS_NEW, reason=intent.reason)
