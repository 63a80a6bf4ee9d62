"""What operators' requests do to a run: each is refused or applied, and either way leaves an audit entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ductor.engine.closing import close
from ductor.engine.context import NodeContext, TickContext
from ductor.engine.lineage import FOLLOWS, continue_as_new, forward, refusal_by_lineage
from ductor.engine.node_controls import NODE_CONTROLS, control_node, refuses_node_control
from ductor.engine.outcome import cancel_nodes, ending
from ductor.engine.scopes import Place
from ductor.engine.signals import keep_signal, refuses_signal
from ductor.engine.slots import ask_slot, leave_slot
from ductor.engine.starting import run_deadline, start
from ductor.model import transition as tr
from ductor.model.enums import NodeStatus, RunStatus
from ductor.model.intent import DECISION_KINDS, Intent, IntentKind
from ductor.model.run import NodeState, Signal
from ductor.model.transition import Transition

DUPLICATE: Final = "DUPLICATE"
"""Error code of an intent that repeats an answered request: audited as a duplicate, never applied."""

REUSED: Final = "REQUEST_ID_REUSED"
REPEATS: Final = frozenset({DUPLICATE, REUSED})
"""Error codes of intents whose request id has its outcome already."""

_LIVE: Final = frozenset({NodeStatus.SCHEDULED, NodeStatus.WAITING, NodeStatus.RETRYING, NodeStatus.PAUSED})


def operate(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    """An operator's intent is applied or rejected, and either way leaves an audit entry."""
    follows = ctx.state.successor is not None and intent.kind in FOLLOWS and intent.error is None
    refusal = None if follows else _refusal(ctx, intent)
    yield tr.OperatorAudited(
        intent_id=intent.id,
        operation=intent.kind.value,
        outcome=_outcome(refusal),
        actor=intent.actor,
        request_id=intent.request_id,
        request_hash=intent.request_hash,
        reason=intent.reason,
        target=intent.node,
        code=refusal[0] if refusal else "",
        message=refusal[1] if refusal else "",
    )
    if follows:
        yield from forward(intent)
    elif not refusal:
        yield from _OPERATIONS[intent.kind](ctx, intent)


def _outcome(refusal: tuple[str, str] | None) -> str:
    if refusal is None:
        return "applied"
    return "duplicate" if refusal[0] == DUPLICATE else "rejected"


def _refusal(ctx: TickContext, intent: Intent) -> tuple[str, str] | None:
    """Why the control does not apply now: code and sentence (runs: Controls)."""
    if intent.error is not None:
        return intent.error.code, intent.error.message
    if intent.kind in DECISION_KINDS:
        return _decision_refusal(ctx, intent)
    refusal = _control_refusal(ctx.state.status, ctx.state.ending, intent.kind)
    if refusal is None and intent.kind in NODE_CONTROLS:
        return refuses_node_control(ctx, intent)
    if refusal is None and intent.kind is IntentKind.SIGNAL:
        return refuses_signal(ctx)
    return refusal or refusal_by_lineage(ctx, intent)


def _decision_refusal(ctx: TickContext, intent: Intent) -> tuple[str, str] | None:
    place = ctx.place(intent.node)
    entry = place.entry if place else None
    if intent.node.partition("@")[0] not in ctx.graph.by_ref:
        return "STEP_UNKNOWN", f"the run has no step {intent.node}"
    if entry is not None and entry.status.ended and entry.entered_at:
        return "ALREADY_DECIDED", f"already decided: {intent.node} is {entry.status.value}"
    if ctx.state.status.terminal:
        return "RUN_TERMINAL", f"the run has already ended as {ctx.state.status.value}"
    stopping = ctx.state.ending is not None or (place is not None and not place.open)
    if place is None or entry is None or not _decidable(place, entry) or stopping:
        return "NOT_WAITING", f"not waiting: {intent.node} is {entry.status.value if entry else 'pending'}"
    return place.node.behaviour.refuses(NodeContext(ctx, place), intent)


def _decidable(place: Place, entry: NodeState) -> bool:
    out = entry.status is NodeStatus.SCHEDULED and place.node.behaviour.resolvable
    return out or entry.status is NodeStatus.WAITING


_PAST_CANCELLING: Final = {
    RunStatus.CANCELLED: ("ALREADY_CANCELLING", "the run is already being cancelled"),
    RunStatus.MERGED: ("ALREADY_MERGED", "another run goes on with what this one brought to a digest"),
}
"""Ends that a run is on its way to and that a cancel does not change."""


def _control_refusal(status: RunStatus, drain: RunStatus | None, kind: IntentKind) -> tuple[str, str] | None:
    if kind is IntentKind.REDRIVE:
        if status in (RunStatus.FAILED, RunStatus.TIMED_OUT):
            return None
        return "NOT_REDRIVABLE", f"not redrivable in {status.value}: only failed, timed_out and stalled runs are"
    if status.terminal:
        return "RUN_TERMINAL", f"the run has already ended as {status.value}"
    if kind is IntentKind.PAUSE and (status is RunStatus.PAUSED or drain):
        return "NOT_PAUSABLE", f"not pausable in {(drain or status).value}"
    if kind is IntentKind.RESUME and status is not RunStatus.PAUSED:
        return "NOT_PAUSED", f"not paused but {status.value}"
    if kind is IntentKind.CANCEL and drain in _PAST_CANCELLING:
        return _PAST_CANCELLING[drain]
    if kind not in _OPERATIONS:
        return "OPERATION_UNKNOWN", f"this release does not know the control {kind.value}"
    return None


def _decide_node(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    place = ctx.place(intent.node)
    return place.node.behaviour.told(NodeContext(ctx, place), intent) if place else ()


def _signal(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    return keep_signal(ctx, Signal(intent.id, intent.body["name"], intent.output, intent.at))


def _pause(ctx: TickContext, _intent: Intent) -> Iterable[Transition]:
    yield from leave_slot(ctx)
    yield tr.RunPaused()


def _resume(ctx: TickContext, _intent: Intent) -> Iterable[Transition]:
    yield tr.RunResumed()
    slot = ctx.state.slot
    if ctx.graph.concurrency is not None and not (slot.held if slot else ctx.state.started_at):
        yield from ask_slot(ctx)


def cancel_run(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    return ending(ctx, RunStatus.CANCELLED, None, intent.reason)


def terminate(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    yield from cancel_nodes(ctx, _LIVE)
    yield from close(ctx, RunStatus.TERMINATED, reason=intent.reason)


def _redrive(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    yield tr.RunRedriven(run_deadline(ctx))
    if ctx.graph.concurrency is None:
        yield from start(ctx, intent)
    else:
        yield from ask_slot(ctx, ctx.now)


_OPERATIONS: dict[IntentKind, Callable[[TickContext, Intent], Iterable[Transition]]] = {
    IntentKind.PAUSE: _pause,
    IntentKind.RESUME: _resume,
    IntentKind.CANCEL: cancel_run,
    IntentKind.TERMINATE: terminate,
    IntentKind.REDRIVE: _redrive,
    IntentKind.CONTINUE_AS_NEW: continue_as_new,
    IntentKind.APPROVE: _decide_node,
    IntentKind.REJECT: _decide_node,
    IntentKind.RESOLVE: _decide_node,
    IntentKind.SIGNAL: _signal,
    **dict.fromkeys(NODE_CONTROLS, control_node),
}
