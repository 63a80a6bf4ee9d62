"""Operators' controls of a run. Each becomes an intent; only the coordinator changes the run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from ductor.app.access import ANY_ENVIRONMENT, Caller, Scope, require, require_authority
from ductor.app.dispatch import intent_message, send_all
from ductor.app.headers import HEAD, is_stalled, read_what_is_readable, request_sk, run_pk, tenant_of
from ductor.app.refusals import invalid, precondition, run_not_found
from ductor.app.requests import OperatorRequest, read_outcome
from ductor.engine.lineage import redrive_refusal
from ductor.model.enums import RunStatus
from ductor.model.errors import RefusedError
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import JSON
from ductor.ports import Clock, Ids, Item, Queue, Table

OPERATIONS: Final = {
    "pause": IntentKind.PAUSE,
    "resume": IntentKind.RESUME,
    "cancel": IntentKind.CANCEL,
    "terminate": IntentKind.TERMINATE,
    "redrive": IntentKind.REDRIVE,
}
MAX_REQUEST_ID: Final = 128
MAX_REASON: Final = 2_000
_REDRIVABLE: Final = frozenset({RunStatus.FAILED, RunStatus.TIMED_OUT})


class Accepted(msgspec.Struct, frozen=True):
    """The intent is durably enqueued, or was answered before. It does not say that the state has changed."""

    run_id: str


class Controls:
    """Sends operators' intents.

    Idempotent by `request_id` per run: the coordinator stores one outcome per request id for the life of the run and
    skips an intent whose id has one.
    """

    def __init__(self, *, table: Table, intents: Queue, clock: Clock, ids: Ids) -> None:
        self._table = table
        self._intents = intents
        self._clock = clock
        self._ids = ids

    def send(
        self, caller: Caller, run_id: str, operation: str, request_id: str, reason: str = "", body: JSON = None
    ) -> Accepted:
        """Enqueue `pause`, `resume`, `cancel`, `terminate` or `redrive`.

        Refuses with NOT_FOUND for an unknown run and another tenant's alike, FAILED_PRECONDITION `RUN_TERMINAL` or
        `NOT_REDRIVABLE` by the run's state, `REQUEST_ID_REUSED` for a request id that was used for something else. A
        repeat is accepted and does nothing, also after the run has ended.
        """
        require(caller, Scope.RUN_WRITE)
        kind = OPERATIONS.get(operation)
        if kind is None:
            raise invalid("OPERATION_UNKNOWN", f"there is no run control {operation!r}", "operation")
        check_texts(request_id, reason)
        digest = operation_hash(operation, "", body)
        header, answered = look_up(self._table, caller, run_id, request_id, digest)
        if answered:
            return Accepted(run_id)
        check_state(kind, header)
        asked = OperatorRequest(caller.key_id, run_id, kind, request_id, reason, digest)
        intent = asked.intent(self._ids, self._clock, body=body)
        send_all(self._intents, [intent_message(intent, self._ids)])
        return Accepted(run_id)

    def send_each(
        self, caller: Caller, headers: Sequence[Item], operation: str, request_id: str, reason: str
    ) -> dict[str, RefusedError]:
        """The same control for up to 100 runs whose headers were just read: which of them refuse it, and why.

        The caller has looked at whose runs they are. Some may have been asked when this raises UnavailableError.
        """
        kind, digest = OPERATIONS[operation], operation_hash(operation, "", None)
        rows = self._table.batch_get([(header.pk, request_sk(request_id)) for header in headers])
        refused: dict[str, RefusedError] = {}
        intents: list[Intent] = []
        for header in headers:
            run_id, row = header.pk.removeprefix("R#"), rows.get((header.pk, request_sk(request_id)))
            try:
                if not _answered(row, request_id, digest):
                    check_state(kind, header)
                    asked = OperatorRequest(caller.key_id, run_id, kind, request_id, reason, digest)
                    intents.append(asked.intent(self._ids, self._clock))
            except RefusedError as refusal:
                refused[run_id] = refusal
        send_all(self._intents, [intent_message(intent, self._ids) for intent in intents])
        return refused


def look_up(table: Table, caller: Caller, run_id: str, request_id: str, digest: str) -> tuple[Item, bool]:
    """The header of the caller's run, and whether this very request was answered before.

    Refuses with NOT_FOUND for an unknown run and another tenant's alike, FAILED_PRECONDITION `REQUEST_ID_REUSED` when
    the request id stands for something else.
    """
    if not run_id or len(run_id) > 64 or not run_id.isascii():
        raise run_not_found()
    head, request = (run_pk(run_id), HEAD), (run_pk(run_id), request_sk(request_id))
    rows = table.batch_get([head, request])
    if head not in rows or tenant_of(rows[head]) != caller.tenant:
        raise run_not_found()
    _require_authority(caller, rows[head])
    return rows[head], _answered(rows.get(request), request_id, digest)


def _answered(row: Item | None, request_id: str, digest: str) -> bool:
    """Whether the request has its outcome. Refuses an id that stands for something else."""
    if row is not None and read_outcome(row).request_hash != digest:
        raise _reused(request_id)
    return row is not None


def _require_authority(caller: Caller, head: Item) -> None:
    """Whose key is bound to environments steers only the runs of those. Of an unreadable run it is not known."""
    if ANY_ENVIRONMENT not in caller.environments_write:
        state = read_what_is_readable(head)
        require_authority(caller, state.origin.environment if state else "")


def operation_hash(operation: str, target: str, body: JSON) -> str:
    """Digest of what a request id stands for; the reason is not part of it."""
    data = msgspec.json.encode([operation, target, body], order="sorted")
    return hashlib.sha256(data).hexdigest()[:32]


def check_texts(request_id: str, reason: str) -> None:
    if not 1 <= len(request_id) <= MAX_REQUEST_ID:
        message = f"send a request_id of 1 to {MAX_REQUEST_ID} characters; a repeat with the same one does nothing"
        raise invalid("REQUEST_ID_INVALID", message, "request_id")
    if len(reason) > MAX_REASON:
        raise invalid("FIELD_INVALID", f"at most {MAX_REASON} characters", "reason")


def check_state(kind: IntentKind, header: Item) -> None:
    """Refuse at once what can be known at once. A stalled run's state may be unreadable and is not looked at."""
    if is_stalled(header) and kind in (IntentKind.REDRIVE, IntentKind.TERMINATE):
        return
    state = read_what_is_readable(header)
    if state is None:
        return
    if kind is IntentKind.REDRIVE:
        if state.status not in _REDRIVABLE:
            message = f"the run is {state.status.value}; only failed, timed out and stalled runs are redriven"
            raise precondition("NOT_REDRIVABLE", message)
        refusal = redrive_refusal(state)
        if refusal is not None:
            raise precondition(*refusal)
    elif state.status.terminal:
        raise precondition("RUN_TERMINAL", f"the run has ended: {state.status.value}")


def _reused(request_id: str) -> RefusedError:
    message = f"the request_id {request_id!r} was used for another operation on this run; use a new one"
    return precondition("REQUEST_ID_REUSED", message, "request_id")
