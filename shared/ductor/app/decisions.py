"""People's decisions on one waiting step: approve, reject, resolve. Each is an intent that the coordinator judges."""

from __future__ import annotations

from typing import Final

import msgspec

from ductor.app.access import Caller, Scope, require
from ductor.app.admission import check_size
from ductor.app.control import Accepted, check_texts, look_up, operation_hash
from ductor.app.dispatch import intent_message, send_all
from ductor.app.headers import is_stalled, read_what_is_readable
from ductor.app.library import Library
from ductor.app.payloads import PayloadStore
from ductor.app.places import Places
from ductor.app.refusals import invalid, node_not_found, precondition
from ductor.app.requests import OperatorRequest
from ductor.model.definition import Step
from ductor.model.enums import NodeStatus, StepType
from ductor.model.errors import ErrorCode, message_of, refuse
from ductor.model.intent import IntentKind
from ductor.model.json import JSON
from ductor.model.run import NodeState, RunState
from ductor.ports import Clock, Ids, Queue, Table, Unit
from ductor.steps import approval
from ductor.steps.resolving import Resolution

MAX_COMMENT: Final = 4_000
MAX_APPROVER_ID: Final = 256
MAX_ERROR_CODE: Final = 64
MAX_ERROR_MESSAGE: Final = 1_000

RESOLVABLE: Final = frozenset({StepType.WAIT, StepType.WAIT_EVENT, StepType.EVENT_SET, StepType.BRIDGE})
"""Types of which a waiting step can be ended by `resolve`."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What an approver says. `approver_id` is a label; the audit trail names the key."""

    request_id: str
    reason: str = ""
    approver_id: str | None = None
    comment: str | None = None
    payload: JSON = None


class ErrorGiven(msgspec.Struct, frozen=True, kw_only=True):
    """The error that a step is resolved with."""

    code: str = Resolution().code
    message: str = Resolution().message
    details: JSON = None


class Resolve(msgspec.Struct, frozen=True, kw_only=True):
    """How a waiting step is to end: with `payload` as its output or, with an `error`, failed."""

    request_id: str
    reason: str = ""
    payload: JSON = None
    error: ErrorGiven | None = None


class _Asked(msgspec.Struct, frozen=True):
    """One decision on its way: `said` is what the request id stands for, `body` what the coordinator is told."""

    kind: IntentKind
    node: str
    request_id: str
    reason: str
    payload: JSON
    said: JSON
    body: JSON


class Decisions:
    """Sends decisions. Accepted means durably enqueued; which of several came first the coordinator says.

    Idempotent by `request_id` per run like all controls. Refuses at once what can be known at once: NOT_FOUND for
    unknown runs and steps, FAILED_PRECONDITION for a step of the wrong type (`STEP_TYPE_WRONG`,
    `APPROVAL_NOT_RESOLVABLE`) or one that never waited (`NOT_WAITING`), PERMISSION_DENIED `AUDIENCE_MISMATCH`. A
    step that was decided before is no refusal: the late decision is accepted and audited as `already decided`.
    """

    def __init__(
        self,
        *,
        table: Table,
        payloads: PayloadStore,
        library: Library,
        intents: Queue,
        unit: Unit,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._table = table
        self._payloads = payloads
        self._library = library
        self._intents = intents
        self._unit = unit
        self._clock = clock
        self._ids = ids
        self._places = Places(table, library)

    def approve(self, caller: Caller, run_id: str, node: str, verdict: Verdict) -> Accepted:
        """Let the work behind an approval go on."""
        return self._decide(caller, run_id, node, IntentKind.APPROVE, verdict)

    def reject(self, caller: Caller, run_id: str, node: str, verdict: Verdict) -> Accepted:
        """Refuse the work behind an approval: its REJECTED or DONE edge is taken, else the run fails."""
        return self._decide(caller, run_id, node, IntentKind.REJECT, verdict)

    def resolve(self, caller: Caller, run_id: str, node: str, given: Resolve) -> Accepted:
        """End a waiting wait, wait_event, event_set or bridge step by hand."""
        require(caller, Scope.RUN_WRITE)
        error = given.error
        said = {"payload": given.payload, "error": msgspec.to_builtins(error)}
        resolution = Resolution(True, error.code, message_of(error.message), error.details) if error else Resolution()
        if error is not None:
            _check_length(error.code, MAX_ERROR_CODE, "error.code")
            _check_length(error.message, MAX_ERROR_MESSAGE, "error.message")
            check_size(error.details, "error.details")
        body = msgspec.to_builtins(resolution)
        kind = IntentKind.RESOLVE
        return self._send(caller, run_id, _Asked(kind, node, given.request_id, given.reason, given.payload, said, body))

    def _decide(self, caller: Caller, run_id: str, node: str, kind: IntentKind, verdict: Verdict) -> Accepted:
        require(caller, Scope.RUN_WRITE)
        _check_length(verdict.approver_id or "", MAX_APPROVER_ID, "approver_id")
        _check_length(verdict.comment or "", MAX_COMMENT, "comment")
        said = {"approver_id": verdict.approver_id, "comment": verdict.comment, "payload": verdict.payload}
        decision = approval.Decision(tuple(sorted(caller.roles)), caller.user, verdict.approver_id, verdict.comment)
        body = msgspec.to_builtins(decision)
        asked = _Asked(kind, node, verdict.request_id, verdict.reason, verdict.payload, said, body)
        return self._send(caller, run_id, asked)

    def _send(self, caller: Caller, run_id: str, asked: _Asked) -> Accepted:
        check_texts(asked.request_id, asked.reason)
        check_size(asked.payload, "payload")
        digest = operation_hash(asked.kind.value, asked.node, asked.said)
        header, answered = look_up(self._table, caller, run_id, asked.request_id, digest)
        if answered:
            return Accepted(run_id)
        state = read_what_is_readable(header)
        if state is not None:
            self._check(caller, state, asked, known=not is_stalled(header))
        request = OperatorRequest(caller.key_id, run_id, asked.kind, asked.request_id, asked.reason, digest)
        with self._unit.batch():
            payload = self._payloads.keep(run_id, asked.payload)
            intent = request.intent(self._ids, self._clock, node=asked.node, output=payload, body=asked.body)
            send_all(self._intents, [intent_message(intent, self._ids)])
        return Accepted(run_id)

    def _check(self, caller: Caller, state: RunState, asked: _Asked, *, known: bool) -> None:
        """Refuse what the run's definition and, where its state is `known`, that state rule out."""
        definition = self._library.load(state.origin.tenant, state.origin.definition_id)[1]
        ref = asked.node.partition("@")[0]
        step = next((step for step in definition.steps if step.ref == ref), None)
        if step is None:
            raise node_not_found()
        _check_type(step, asked.kind)
        if step.type is StepType.APPROVAL:
            audience = approval.parse_args(step.args).audience
            if not audience.admits(caller.roles, caller.user):
                message = approval.mismatch(audience)
                raise refuse(ErrorCode.PERMISSION_DENIED, approval.AUDIENCE_MISMATCH, message)
        if known:
            out = step.type is StepType.BRIDGE
            _check_open(asked.node, self._places.entry(state, asked.node), state, out=out)


def _check_type(step: Step, kind: IntentKind) -> None:
    if kind is not IntentKind.RESOLVE and step.type is not StepType.APPROVAL:
        message = f"{step.ref} is of type {step.type.value}; only approval steps are approved and rejected"
        raise precondition("STEP_TYPE_WRONG", message, "node")
    if kind is IntentKind.RESOLVE and step.type is StepType.APPROVAL:
        message = "an approval is approved or rejected; it cannot be resolved"
        raise precondition("APPROVAL_NOT_RESOLVABLE", message, "node")
    if kind is IntentKind.RESOLVE and step.type not in RESOLVABLE:
        names = ", ".join(sorted(kind.value for kind in RESOLVABLE))
        raise precondition("STEP_TYPE_WRONG", f"{step.ref} is of type {step.type.value}; resolve ends {names}", "node")


def _check_open(node: str, entry: NodeState | None, state: RunState, *, out: bool) -> None:
    """Whether the step waits, or has waited and ended: then the decision is audited as late.

    `out`: a step of this type waits while its attempt is out.
    """
    waits = entry is not None and (entry.status is NodeStatus.WAITING or (out and entry.status is NodeStatus.SCHEDULED))
    if waits and state.ending is None:
        return
    if entry is not None and entry.status.ended and entry.entered_at:
        return
    if state.status.terminal:
        raise precondition("NOT_WAITING", f"the run has ended as {state.status.value} without ever asking {node}")
    shown = entry.status.value if entry else NodeStatus.PENDING.value
    raise precondition("NOT_WAITING", f"{node} is {shown}; it can be decided while it is waiting", "node")


def _check_length(text: str, most: int, field: str) -> None:
    if len(text) > most:
        raise invalid("FIELD_INVALID", f"at most {most} characters", field)
