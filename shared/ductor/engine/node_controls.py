"""What operators do to one node of a run: hold it, let it go, begin it anew, change its retries or its timeout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from ductor.engine.context import TickContext
from ductor.engine.regions import ROOT
from ductor.engine.scopes import Place
from ductor.model import transition as tr
from ductor.model.definition import Retry
from ductor.model.enums import NodeStatus
from ductor.model.intent import Intent, IntentKind
from ductor.model.run import NodeState
from ductor.model.transition import Transition

MAX_TUNINGS: Final = 200
"""Nodes of a run whose retries or timeout an operator has changed; the header keeps them."""

NODE_CONTROLS: Final = frozenset(
    {
        IntentKind.NODE_PAUSE,
        IntentKind.NODE_RESUME,
        IntentKind.NODE_RESET,
        IntentKind.NODE_RETRY_POLICY,
        IntentKind.NODE_TIMEOUT,
    }
)

_RESETTABLE: Final = frozenset({NodeStatus.SCHEDULED, NodeStatus.WAITING, NodeStatus.RETRYING, NodeStatus.PAUSED})

Refusal = tuple[str, str]


def refuses_node_control(ctx: TickContext, intent: Intent) -> Refusal | None:
    """Why the control does not apply to the node now: code and sentence."""
    if intent.node.partition("@")[0] not in ctx.graph.by_ref:
        return "STEP_UNKNOWN", f"the run has no step {intent.node}"
    if ctx.state.ending is not None:
        return "RUN_ENDING", f"the run is on its way to {ctx.state.ending.value}"
    place = ctx.place(intent.node)
    if place is None or not place.open:
        return "NOT_REACHED", f"the run has no node {intent.node} that is open now"
    entry = place.entry or NodeState()
    if entry.status.ended:
        return "NODE_ENDED", f"{intent.node} has already ended as {entry.status.value}"
    return _REFUSALS[intent.kind](ctx, place, entry)


def _pause_refusal(_ctx: TickContext, place: Place, entry: NodeState) -> Refusal | None:
    if entry.held:
        return "NOT_PAUSABLE", f"{place.id} is paused already"
    if entry.status is NodeStatus.WAITING:
        return "NOT_PAUSABLE", f"{place.id} is waiting; what it waits for would be lost. Pause the run instead"
    return None


def _resume_refusal(_ctx: TickContext, place: Place, entry: NodeState) -> Refusal | None:
    return None if entry.held else ("NOT_PAUSED", f"{place.id} is not paused but {entry.status.value}")


def _reset_refusal(_ctx: TickContext, place: Place, entry: NodeState) -> Refusal | None:
    if entry.status not in _RESETTABLE:
        return "NOT_RESETTABLE", f"{place.id} is {entry.status.value}: it has nothing to begin anew"
    for_others = place.node.behaviour.speaks or place.node.gather != ROOT or place.node.scatter != ROOT
    if entry.status is NodeStatus.WAITING and for_others:
        return "NOT_RESETTABLE", f"{place.id} waits for others; what has come in would be lost"
    return None


def _tune_refusal(ctx: TickContext, place: Place, _entry: NodeState) -> Refusal | None:
    if place.id not in ctx.state.tuned and len(ctx.state.tuned) >= MAX_TUNINGS:
        return "TOO_MANY_CHANGES", f"retries and timeouts of {MAX_TUNINGS} steps of this run were changed already"
    return None


_REFUSALS: Final[dict[IntentKind, Callable[[TickContext, Place, NodeState], Refusal | None]]] = {
    IntentKind.NODE_PAUSE: _pause_refusal,
    IntentKind.NODE_RESUME: _resume_refusal,
    IntentKind.NODE_RESET: _reset_refusal,
    IntentKind.NODE_RETRY_POLICY: _tune_refusal,
    IntentKind.NODE_TIMEOUT: _tune_refusal,
}


def control_node(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    """Apply a control that was not refused."""
    entry = _entry(ctx, intent.node)
    match intent.kind:
        case IntentKind.NODE_PAUSE:
            yield tr.NodeHeld(intent.node)
            yield from hold(ctx, intent.node)
        case IntentKind.NODE_RESUME:
            left = entry.backoff_left
            yield tr.NodeReleased(intent.node, 0 if left is None else ctx.now + left)
        case IntentKind.NODE_RESET:
            live = entry.status is NodeStatus.SCHEDULED
            yield tr.NodeReset(intent.node, entry.attempt, entry.generation, live)
        case IntentKind.NODE_RETRY_POLICY:
            yield tr.NodeTuned(intent.node, retry=msgspec.convert(intent.body, Retry))
        case _:
            limit: int = intent.body["timeout_ms"]
            yield tr.NodeTuned(intent.node, timeout_ms=limit, deadline=_deadline(ctx, entry, limit))


def hold(ctx: TickContext, node_id: str) -> Iterator[Transition]:
    """A held node between two attempts rests until it is released."""
    entry = _entry(ctx, node_id)
    if entry.held and entry.status is NodeStatus.RETRYING:
        yield tr.NodeRested(node_id)


def _entry(ctx: TickContext, node_id: str) -> NodeState:
    place = ctx.place(node_id)
    return (place.entry if place else None) or NodeState()


def _deadline(ctx: TickContext, entry: NodeState, limit: int) -> int:
    """The new deadline of a wait or attempt that has one: counted from its beginning, but not in the past."""
    if not entry.deadline or not limit or entry.status not in (NodeStatus.SCHEDULED, NodeStatus.WAITING):
        return 0
    began = entry.scheduled_at if entry.status is NodeStatus.SCHEDULED else entry.started_at
    return max(began + limit, ctx.now)
