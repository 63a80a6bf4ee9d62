"""All rules of what an intent does to a run. Decisions only: `evolve` carries them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain

import msgspec

from ductor.engine.adopting import adopt, preserved_of
from ductor.engine.closing import close, verdict
from ductor.engine.context import NodeContext, TickContext
from ductor.engine.lineage import (
    child_finished,
    duty_done,
    late_effect,
    parent_closed,
)
from ductor.engine.node_controls import hold
from ductor.engine.operating import cancel_run, operate, terminate
from ductor.engine.outcome import fail
from ductor.engine.scopes import Place
from ductor.engine.starting import admitted, start, start_late
from ductor.expressions import Budget, ExpressionError
from ductor.model import transition as tr
from ductor.model.attempt import AttemptStatus
from ductor.model.enums import Join, NodeStatus, RunStatus
from ductor.model.errors import StepError
from ductor.model.intent import NODE_KINDS, OPERATOR_KINDS, Intent, IntentKind
from ductor.model.json import encode
from ductor.model.lineage import COMPENSATION
from ductor.model.payload import MAX_OUTPUT_BYTES, NULL, Inline
from ductor.model.run import NodeState
from ductor.model.transition import Transition


def decide(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    """The transitions that an intent causes now; none for an intent that comes too late or twice."""
    if intent.kind in OPERATOR_KINDS:
        return operate(ctx, intent)
    if intent.kind in NODE_KINDS:
        return _told(ctx, intent)
    rule = _RULES.get(intent.kind)
    return rule(ctx, intent) if rule else ()


def decide_ready(ctx: TickContext, place: Place) -> Iterable[Transition]:
    """A node whose incoming edges are all resolved: it starts, or it is skipped (steps: Readiness)."""
    node = place.node
    own = NodeContext(ctx, place)
    if own.entry.held:
        yield tr.NodeRested(own.id)
        return
    if not node.needs and not _joined(place):
        yield tr.NodeSkipped(own.id)
        return
    try:
        wanted = node.condition is None or own.holds(node.condition)
    except ExpressionError as fault:
        yield from fail(own, StepError(fault.code, fault.message, retryable=False))
        return
    preserved = preserved_of(own) if ctx.state.fork else None
    if wanted and preserved is not None:
        yield from adopt(own, preserved)
    elif wanted:
        yield from node.behaviour.start(own)
    else:
        yield tr.NodeSkipped(own.id)


def decide_end(ctx: TickContext) -> Iterable[Transition]:
    """The run ends when it was ending and its last attempt has closed, or when every node has ended."""
    state = ctx.state
    if state.status.terminal:
        return
    tree = state.tree
    if state.root.attempts or (tree is not None and (tree.attempts or tree.closing)):
        return
    if state.ending is not None:
        undone = state.origin.kind == COMPENSATION and state.ending is RunStatus.FAILED
        error = (verdict(ctx) if undone else None) or state.error
        output = Inline({"merged_into": state.merged_into}) if state.ending is RunStatus.MERGED else NULL
        yield from close(ctx, state.ending, output, error, state.reason)
    elif state.root.ended == ctx.graph.size and state.status is not RunStatus.PAUSED:
        yield from _completed(ctx)


def _completed(ctx: TickContext) -> Iterable[Transition]:
    template = ctx.graph.output
    fault = verdict(ctx) if ctx.state.origin.kind == COMPENSATION else None
    if template is None or fault:
        yield from close(ctx, RunStatus.FAILED if fault else RunStatus.COMPLETED, error=fault)
        return
    try:
        output = template.render(ctx.bindings(template.reads), Budget())
    except ExpressionError as wrong:
        error = StepError(wrong.code, f"output: {wrong.message}", retryable=False)
        yield from close(ctx, RunStatus.FAILED, error=error)
        return
    if len(data := encode(output)) > MAX_OUTPUT_BYTES:
        message = f"output: it has {len(data)} bytes; at most {MAX_OUTPUT_BYTES} are allowed"
        yield from close(ctx, RunStatus.FAILED, error=StepError("OUTPUT_TOO_LARGE", message, retryable=False))
        return
    yield from close(ctx, RunStatus.COMPLETED, ctx.keep(output, data=data))


def _joined(place: Place) -> bool:
    node = place.node
    if not node.indegree:
        return True
    join = place.scope.joins.get(node.index)
    taken = join.taken if join else 0
    return taken == node.indegree if node.step.join is Join.ALL else taken > 0


def _attempt_finished(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    place = ctx.place(intent.node)
    entry = place.entry if place else None
    if place is None or entry is None or ctx.state.status.terminal or not _awaits(entry, intent):
        return ()
    if (ctx.state.ending or not place.open) and intent.status is not AttemptStatus.SUCCEEDED:
        return (tr.NodeCancelled(intent.node),)
    own = NodeContext(ctx, place)
    return chain(own.node.behaviour.finished(own, intent), hold(ctx, own.id))


def _attempt_started(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    """A worker outside has taken the attempt. Known already, or no longer waited for: nothing changes."""
    place = ctx.place(intent.node)
    entry = place.entry if place else None
    if place is None or entry is None or not place.open or ctx.state.ending or ctx.state.status.terminal:
        return
    out = entry.status is NodeStatus.SCHEDULED
    told = (intent.body["worker"], intent.body["deadline"])
    if out and (entry.attempt, entry.generation) == (intent.attempt, intent.generation) and told != _watched(entry):
        yield tr.NodeWatched(intent.node, told[1], told[0], intent.actor)


def _watched(entry: NodeState) -> tuple[str, int]:
    return entry.worker, entry.deadline


def _attempt_ended(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    yield from late_effect(ctx, intent)
    yield from _attempt_finished(ctx, intent)


def _awaits(entry: NodeState, intent: Intent) -> bool:
    """Whether the intent is about the end of the attempt that the node has out."""
    return (
        intent.status is not None
        and entry.status is NodeStatus.SCHEDULED
        and (entry.attempt, entry.generation) == (intent.attempt, intent.generation)
    )


def _told(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    """What others tell a waiting node. While the run is ending nobody listens any more."""
    place = ctx.place(intent.node)
    entry = place.entry if place else None
    if place is None or entry is None:
        return ()
    if entry.status is not NodeStatus.WAITING or entry.generation != intent.generation:
        return ()
    if ctx.state.ending or not place.open:
        return ()
    own = NodeContext(ctx, place)
    return own.node.behaviour.told(own, intent)


def _command_failed(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    """A command that can never be carried out fails its node, as a non-retryable end of the attempt it was for."""
    refused = Intent(
        id=intent.id,
        run_id=intent.run_id,
        kind=IntentKind.ATTEMPT_FINISHED,
        node=intent.node,
        attempt=intent.attempt,
        generation=intent.generation,
        status=AttemptStatus.FAILED,
        error=intent.error or StepError("COMMAND_REFUSED", "the command was refused", retryable=False),
    )
    return _attempt_finished(ctx, refused)


def _child_finished(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    """Matched by node, attempt and generation, never by the child's id: a successor may have taken its place."""
    yield from child_finished(ctx, intent)
    yield from _attempt_finished(ctx, intent)


def _parent_closed(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    return parent_closed(ctx, intent, cancel_run, terminate)


_RULES: dict[IntentKind, Callable[[TickContext, Intent], Iterable[Transition]]] = {
    IntentKind.START: start,
    IntentKind.TIMER_FIRED: start_late,
    IntentKind.ATTEMPT_FINISHED: _attempt_ended,
    IntentKind.ATTEMPT_STARTED: _attempt_started,
    IntentKind.COMMAND_FAILED: _command_failed,
    IntentKind.CHILD_FINISHED: _child_finished,
    IntentKind.ADMIT: admitted,
    IntentKind.PARENT_CLOSED: _parent_closed,
    IntentKind.DUTY_DONE: duty_done,
}


def decide_aborted(ctx: TickContext, intent: Intent, error: StepError) -> Iterable[Transition]:
    """What is left of an intent when its result cannot be stored: a request is rejected, an ended attempt is closed."""
    place = ctx.place(intent.node)
    entry = place.entry if place else None
    if intent.kind in OPERATOR_KINDS:
        yield from operate(ctx, msgspec.structs.replace(intent, error=intent.error or error))
        return
    if intent.kind is IntentKind.DUTY_DONE:
        yield from duty_done(ctx, intent)
    if intent.kind is IntentKind.CHILD_FINISHED:
        yield from child_finished(ctx, intent)
    yield from late_effect(ctx, intent)
    ended = intent.kind in (IntentKind.ATTEMPT_FINISHED, IntentKind.CHILD_FINISHED)
    if ended and entry is not None and _awaits(entry, intent):
        yield tr.NodeCancelled(intent.node)
