"""All rules of what an intent does to a run. Decisions only: `evolve` carries them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Final

import msgspec

from ductor.engine.adopting import adopt, preserved_of
from ductor.engine.closing import close, verdict
from ductor.engine.context import NodeContext, TickContext
from ductor.engine.lineage import (
    FOLLOWS,
    child_finished,
    continue_as_new,
    duty_done,
    forward,
    late_effect,
    parent_closed,
    refusal_by_lineage,
)
from ductor.engine.node_controls import NODE_CONTROLS, control_node, hold, refuses_node_control
from ductor.engine.outcome import PARKED, cancel_nodes, ending, fail
from ductor.engine.scopes import Place, item_path, scatter_of
from ductor.engine.signals import keep_signal, refuses_signal
from ductor.engine.slots import ask_slot, leave_slot, slot_due, slot_given
from ductor.expressions import Budget, ExpressionError
from ductor.model import transition as tr
from ductor.model.attempt import AttemptStatus
from ductor.model.enums import Join, NodeStatus, RunStatus
from ductor.model.errors import StepError
from ductor.model.intent import DECISION_KINDS, NODE_KINDS, OPERATOR_KINDS, Intent, IntentKind
from ductor.model.json import encode
from ductor.model.lineage import COMPENSATION
from ductor.model.payload import MAX_OUTPUT_BYTES, NULL, Inline
from ductor.model.run import NodeState, Signal, TreeState
from ductor.model.transition import Transition

_LIVE: Final = frozenset({NodeStatus.SCHEDULED, NodeStatus.WAITING, NodeStatus.RETRYING, NodeStatus.PAUSED})


def decide(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    """The transitions that an intent causes now; none for an intent that comes too late or twice."""
    if intent.kind in OPERATOR_KINDS:
        return _operate(ctx, intent)
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


PAGES_PER_TICK: Final = 20
"""Pages that one tick opens on its own account; what its intents name comes on top."""

LOOKS_PER_TICK: Final = 200
"""Attempts that one tick has looked after: each costs a read, and may put its task on the steps queue once more."""

_TIMED: Final = PARKED | {NodeStatus.SCHEDULED}
MAX_CHECK_MS: Final = 86_400_000


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


def _start(ctx: TickContext, _intent: Intent) -> Iterable[Transition]:
    state = ctx.state
    if state.started_at or state.status.terminal:
        return
    if ctx.graph.concurrency is None:
        yield tr.RunStarted(_deadline(ctx))
    elif state.slot is None and state.status is not RunStatus.PAUSED:
        yield from ask_slot(ctx)


def _start_late(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    """The wake-up of a run that was admitted and never told to start, also when an operator came first."""
    if 0 < ctx.state.wake_at <= ctx.now:
        yield from _start(ctx, intent)


def _deadline(ctx: TickContext) -> int:
    limit = ctx.graph.definition.run_timeout_ms
    return ctx.now + limit if limit else 0


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


def _admitted(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    return slot_given(ctx, intent, _deadline(ctx))


def _parent_closed(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    return parent_closed(ctx, intent, _cancel_run, _terminate)


_RULES: dict[IntentKind, Callable[[TickContext, Intent], Iterable[Transition]]] = {
    IntentKind.START: _start,
    IntentKind.TIMER_FIRED: _start_late,
    IntentKind.ATTEMPT_FINISHED: _attempt_ended,
    IntentKind.ATTEMPT_STARTED: _attempt_started,
    IntentKind.COMMAND_FAILED: _command_failed,
    IntentKind.CHILD_FINISHED: _child_finished,
    IntentKind.ADMIT: _admitted,
    IntentKind.PARENT_CLOSED: _parent_closed,
    IntentKind.DUTY_DONE: duty_done,
}


def _operate(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
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


def decide_aborted(ctx: TickContext, intent: Intent, error: StepError) -> Iterable[Transition]:
    """What is left of an intent when its result cannot be stored: a request is rejected, an ended attempt is closed."""
    place = ctx.place(intent.node)
    entry = place.entry if place else None
    if intent.kind in OPERATOR_KINDS:
        yield from _operate(ctx, msgspec.structs.replace(intent, error=intent.error or error))
        return
    if intent.kind is IntentKind.DUTY_DONE:
        yield from duty_done(ctx, intent)
    if intent.kind is IntentKind.CHILD_FINISHED:
        yield from child_finished(ctx, intent)
    yield from late_effect(ctx, intent)
    ended = intent.kind in (IntentKind.ATTEMPT_FINISHED, IntentKind.CHILD_FINISHED)
    if ended and entry is not None and _awaits(entry, intent):
        yield tr.NodeCancelled(intent.node)


DUPLICATE: Final = "DUPLICATE"
"""Error code of an intent that repeats an answered request: audited as a duplicate, never applied."""

REUSED: Final = "REQUEST_ID_REUSED"
REPEATS: Final = frozenset({DUPLICATE, REUSED})
"""Error codes of intents whose request id has its outcome already."""


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


def _cancel_run(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    return ending(ctx, RunStatus.CANCELLED, None, intent.reason)


def _terminate(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    yield from cancel_nodes(ctx, _LIVE)
    yield from close(ctx, RunStatus.TERMINATED, reason=intent.reason)


def _redrive(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    yield tr.RunRedriven(_deadline(ctx))
    if ctx.graph.concurrency is None:
        yield from _start(ctx, intent)
    else:
        yield from ask_slot(ctx, ctx.now)


_OPERATIONS: dict[IntentKind, Callable[[TickContext, Intent], Iterable[Transition]]] = {
    IntentKind.PAUSE: _pause,
    IntentKind.RESUME: _resume,
    IntentKind.CANCEL: _cancel_run,
    IntentKind.TERMINATE: _terminate,
    IntentKind.REDRIVE: _redrive,
    IntentKind.CONTINUE_AS_NEW: continue_as_new,
    IntentKind.APPROVE: _decide_node,
    IntentKind.REJECT: _decide_node,
    IntentKind.RESOLVE: _decide_node,
    IntentKind.SIGNAL: _signal,
    **dict.fromkeys(NODE_CONTROLS, control_node),
}
