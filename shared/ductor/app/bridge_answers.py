"""What workers outside say about the tasks that they hold: a sign of life, a result, a failure, or that they stop.

The attempt's row decides, by one conditional write; the run is told afterwards, as often as somebody asks again. At
most one result of an attempt is accepted, and only from the worker that had it last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from ductor.app.access import Caller, Scope, require
from ductor.app.attempts import Attempts, Row, finished_intent
from ductor.app.bridge_door import started_intent
from ductor.app.bridge_doors import BridgeDoors
from ductor.app.bridge_queue import BridgeQueue, placed
from ductor.app.bridge_tokens import TokenRef, genuine, read
from ductor.app.dispatch import intent_message, send_all
from ductor.app.refusals import invalid, not_found, precondition
from ductor.model.attempt import Attempt, AttemptStatus
from ductor.model.errors import ErrorCode, RefusedError, StepError, clip, message_of, refuse
from ductor.model.intent import Intent
from ductor.model.json import JSON, encode
from ductor.model.payload import MAX_OUTPUT_BYTES, ROW_BYTES, Payload, stage

MAX_DETAILS_BYTES: Final = 8_192
MAX_ERROR_CODE: Final = 64

EXPIRED: Final = "TASK_TOKEN_EXPIRED"
ENDED: Final = "TASK_ENDED"
_BY_WORKER: Final = frozenset({AttemptStatus.SUCCEEDED, AttemptStatus.FAILED})


class Alive(msgspec.Struct, frozen=True):
    """The answer to a sign of life. `cancel_requested`: stop, and say so with a failure or by giving the task back."""

    cancel_requested: bool
    lease_expires_at: int


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a worker could not do it. `retryable` and the step's retry policy decide whether it is tried again."""

    code: str = "TASK_FAILED"
    message: str = ""
    retryable: bool = True
    details: JSON = None


class BridgeAnswers:
    """Answers of workers. All refuse an unknown token, and that of another tenant, with NOT_FOUND `TASK_NOT_FOUND`;

    FAILED_PRECONDITION `TASK_TOKEN_EXPIRED` says that another worker has the task or may get it, `TASK_ENDED` that the
    attempt has ended in another way. Each may be repeated: the same answer with the same token is accepted again.
    """

    def __init__(self, doors: BridgeDoors) -> None:
        self._attempts = Attempts(doors.table)
        self._queue = BridgeQueue(doors.table)
        self._payloads = doors.payloads
        self._intents = doors.intents
        self._unit = doors.unit
        self._clock = doors.clock
        self._ids = doors.ids
        self._faults = doors.faults

    def heartbeat(self, caller: Caller, token: str, details: JSON = None) -> Alive:
        """Extend the lease. `details` None keeps what was told before; the next worker of the attempt gets it."""
        _encoded(details, MAX_DETAILS_BYTES, "details")

        def beat(attempt: Attempt, now: int) -> Attempt:
            told = attempt.heartbeat_details if details is None else details
            until = now + attempt.lease_ms
            return msgspec.structs.replace(attempt, lease_until=until, heartbeat_at=now, heartbeat_details=told)

        with self._unit.batch():
            row = self._change(caller, token, beat, lambda attempt: False)
        return Alive(row.attempt.cancel_requested, row.attempt.lease_until)

    def complete(self, caller: Caller, token: str, output: JSON) -> None:
        """The work is done. A success that comes too late is refused, but kept: its effect may have to be undone."""
        ref = self._read(caller, token)
        self._held(caller, ref)  # nothing is stored with a run before its worker has proved itself
        data = _encoded(output, MAX_OUTPUT_BYTES, "output")
        # Up to 8 KB stand in the attempt row itself, more goes to the blobs first.
        payload, stored = stage(ref.run_id, output, ROW_BYTES, data)

        def succeed(attempt: Attempt, now: int) -> Attempt:
            return msgspec.structs.replace(
                attempt, status=AttemptStatus.SUCCEEDED, finished_at=now, output=payload, idle=False
            )

        def same(attempt: Attempt) -> bool:
            return attempt.status is AttemptStatus.SUCCEEDED and attempt.output == payload

        with self._unit.batch():
            if stored is not None:
                self._payloads.put(ref.run_id, stored)
            try:
                row = self._change(caller, token, succeed, same)
            except RefusedError as refused:
                late = self._keep_late(ref, payload)
                if late is None:
                    raise
                answer: RefusedError | None = refused
                self._faults.at("bridge.after_late")
                self._tell(finished_intent(late, self._clock.now_ms()))
                self._queue.remove(late.task, late.finished_at)
            else:
                answer = None
                self._close(row)
        if answer is not None:
            raise answer

    def fail(self, caller: Caller, token: str, failure: Failure) -> None:
        """The work could not be done."""
        if not 1 <= len(failure.code) <= MAX_ERROR_CODE:
            raise invalid("FIELD_INVALID", f"a code has 1 to {MAX_ERROR_CODE} characters", "code")
        _encoded(failure.details, MAX_DETAILS_BYTES, "details")
        error = StepError(clip(failure.code), message_of(failure.message), failure.retryable, failure.details)

        def end(attempt: Attempt, now: int) -> Attempt:
            return msgspec.structs.replace(
                attempt, status=AttemptStatus.FAILED, finished_at=now, error=error, idle=False
            )

        def same(attempt: Attempt) -> bool:
            return attempt.status is AttemptStatus.FAILED and attempt.error == error

        with self._unit.batch():
            self._close(self._change(caller, token, end, same))

    def release(self, caller: Caller, token: str) -> None:
        """The worker stops: another one gets the task at once, and it does not count as one of its three deliveries."""

        def give_back(attempt: Attempt, now: int) -> Attempt:
            if attempt.cancel_requested:
                return msgspec.structs.replace(attempt, status=AttemptStatus.REVOKED, finished_at=now, idle=True)
            return msgspec.structs.replace(attempt, idle=True, lease_until=now - 1, returned=attempt.returned + 1)

        with self._unit.batch():
            row = self._change(caller, token, give_back, lambda attempt: attempt.idle)
            if row.attempt.status.ended:
                self._close(row)
                return
            task = row.attempt.task
            # Before anybody can take the task: or the run may hear of its new worker first, and then that it has none.
            self._tell(started_intent(row.attempt, 0, self._clock.now_ms()))
            self._queue.put(task, task.scheduled_at)
            self._faults.at("bridge.after_release")
            self._queue.remove(task, row.attempt.place)

    def _change(
        self,
        caller: Caller,
        token: str,
        change: Callable[[Attempt, int], Attempt],
        done: Callable[[Attempt], bool],
    ) -> Row:
        """The row after `change`, or as it is when that is `done` already. Raises RefusedError."""
        ref = self._read(caller, token)
        row = self._held(caller, ref)
        while True:
            attempt = row.attempt
            if attempt.deliveries == ref.delivery and done(attempt):
                return row
            _check_holder(ref, attempt)
            changed = msgspec.structs.replace(change(attempt, self._clock.now_ms()), actor=caller.key_id)
            winner = self._attempts.replace(row, changed)
            if winner is None:
                self._faults.at("bridge.after_answer")
                return row
            row = winner

    def _read(self, caller: Caller, token: str) -> TokenRef:
        require(caller, Scope.BRIDGE_WORK)
        ref = read(token)
        if ref is None:
            raise _unknown()
        return ref

    def _held(self, caller: Caller, ref: TokenRef) -> Row:
        row = self._attempts.read(ref.run_id, ref.node, ref.attempt)
        task = row.attempt.task if row else None
        if row is None or task is None or task.tenant != caller.tenant or not genuine(ref, row.attempt):
            raise _unknown()
        if not caller.may_write(task.environment):
            raise _unknown()
        return row

    def _keep_late(self, ref: TokenRef, payload: Payload) -> Attempt | None:
        """Note a success beside the end of an attempt that ended otherwise, once. The row, if there is such an end.

        Until the run was told, the task stands in its queue once more, where the next poll finds and tells it.
        """
        row = self._attempts.read(ref.run_id, ref.node, ref.attempt)
        if row is None or not genuine(ref, row.attempt) or not _may_be_late(ref, row.attempt):
            return None
        if row.attempt.late_output is None:
            late = msgspec.structs.replace(row.attempt, late_output=payload)
            again = placed(late.task, late.finished_at)
            row = self._attempts.replace(row, late, (again,)) or row
        return row.attempt

    def _close(self, row: Row) -> None:
        """Tell the run; after that nothing needs the task's row any more."""
        self._tell(finished_intent(row.attempt, self._clock.now_ms()))
        self._faults.at("bridge.after_send")
        self._queue.remove(row.attempt.task, row.attempt.place)

    def _tell(self, intent: Intent) -> None:
        send_all(self._intents, [intent_message(intent, self._ids)])


def _check_holder(ref: TokenRef, attempt: Attempt) -> None:
    """Refuse a worker that no longer holds the attempt."""
    if attempt.deliveries != ref.delivery or (attempt.idle and not attempt.status.ended):
        message = "this token is over: the task was given to another worker, or was given back. Stop working on it"
        raise precondition(EXPIRED, message, "token")
    if not attempt.status.ended:
        return
    if attempt.status in _BY_WORKER:
        message = f"this task was answered before: it has {attempt.status.value}. The first answer counts"
        raise precondition(ENDED, message, "token")
    why = f" ({attempt.error.code})" if attempt.error else ""
    raise precondition(ENDED, f"the attempt has ended as {attempt.status.value}{why}; nobody waits for it", "token")


def _may_be_late(ref: TokenRef, attempt: Attempt) -> bool:
    """Whether a success is an effect that nobody knows of. A worker that said it failed cannot take that back."""
    ended = attempt.status.ended and attempt.status is not AttemptStatus.SUCCEEDED
    own_failure = attempt.status is AttemptStatus.FAILED and attempt.deliveries == ref.delivery
    return ended and not own_failure


def _encoded(value: JSON, most: int, field: str) -> bytes:
    """The value's JSON; refuses what is over `most` bytes."""
    try:
        data = encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise invalid("FIELD_INVALID", f"this value cannot be kept as JSON: {error}", field) from error
    if len(data) > most:
        message = f"{len(data)} bytes of JSON are over the limit of {most}; pass a reference instead"
        raise refuse(ErrorCode.PAYLOAD_TOO_LARGE, f"{field.upper()}_TOO_LARGE", message, field)
    return data


def _unknown() -> RefusedError:
    return not_found("TASK_NOT_FOUND", "this tenant has no task with this token", "token")
