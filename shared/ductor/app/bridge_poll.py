"""Handing bridge tasks to workers outside: a bounded wait for the oldest task of some types, and its claim.

A claim is one conditional write of the attempt's row, so two workers never hold one delivery. If the answer never
reaches the worker, the task is handed out again once the lease of the lost claim is over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from ductor.app.access import Caller, Scope, require, require_authority, require_queue
from ductor.app.attempts import Attempts, Row, delivered, finished_intent
from ductor.app.bridge_door import started_intent
from ductor.app.bridge_doors import BridgeDoors
from ductor.app.bridge_queue import BridgeQueue, Waiting, moved
from ductor.app.bridge_tokens import issue
from ductor.app.dispatch import intent_message, send_all
from ductor.app.headers import HEAD, run_pk
from ductor.app.payloads import PayloadMissingError
from ductor.app.refusals import invalid
from ductor.model.attempt import Attempt, AttemptStatus, attempt_sk
from ductor.model.enums import RunStatus
from ductor.model.errors import StepError
from ductor.model.intent import Intent
from ductor.model.json import JSON
from ductor.model.payload import Inline
from ductor.steps.bridge import TASK_TYPE_PATTERN

MAX_TASKS: Final = 10
MAX_TYPES: Final = 10
MAX_WAIT_S: Final = 20
"""Longest wait of one poll: with it the whole request stays below the 30 seconds of API Gateway."""

MAX_LEASE_S: Final = 43_200
DEFAULT_LEASE_S: Final = 300
MAX_WORKER: Final = 128
MAX_ENVIRONMENT: Final = 100
MAX_ANSWER_BYTES: Final = 4_000_000
"""Inputs of one answer; a Lambda's answer has at most 6 MB. The first task is always given."""

ROUNDS: Final = 20
"""How often one look goes on behind rows that lead nowhere: a request must end in time, and the next one goes on."""

FIRST_LOOK_MS: Final = 50
RESTS_MS: Final = (10_000, 60_000)
"""How often a task of a run that is paused is looked at: at first, and when it has waited for long."""

LONG_MS: Final = 120_000

_SECRET_BYTES: Final = 24
_TYPE: Final = re.compile(TASK_TYPE_PATTERN)

Pause = Callable[[int], bool]
"""Waits for so many ms. False: wait no longer, the process is about to stop."""


class PollRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker asks for. `environment` None = the key's own; `worker` is a name to show, empty: the key's id.

    `lease_seconds` is how long the worker may be silent where the step does not say (`heartbeat_timeout_ms`).
    """

    task_types: tuple[str, ...]
    max: int = 1
    wait_seconds: float = 0
    lease_seconds: int = DEFAULT_LEASE_S
    worker: str = ""
    environment: str | None = None


class TaskGiven(msgspec.Struct, frozen=True, kw_only=True):
    """A task in the hands of a worker. Times are epoch ms; `deadline_at` None = without limit.

    `heartbeat_within_ms` is how long the worker may be silent; `last_heartbeat` what an earlier worker told last.
    `causation_depth` is the run's: what the worker starts for it says so (`model.causation`).
    """

    task_token: str
    task_type: str
    run_id: str
    node: str
    attempt: int
    delivery: int
    input: JSON
    idempotency_key: str
    scheduled_at: int
    lease_expires_at: int
    heartbeat_within_ms: int
    deadline_at: int | None
    last_heartbeat: JSON
    causation_depth: int = 0


class _Head(msgspec.Struct):
    """The part of a run's header that says whether the run wants its tasks done."""

    status: RunStatus = RunStatus.PENDING
    ending: RunStatus | None = None


class _Round(msgspec.Struct):
    """What one look at the queues brought: tasks, what to tell, and rows that nobody needs any more.

    `left` are rows that are for others only.
    """

    given: list[TaskGiven] = []
    told: list[Intent] = []
    done: list[Waiting] = []
    bytes: int = 0
    left: int = 0


class BridgePolls:
    """Hands out tasks. `pause` waits between two looks, at most `look_ms` long."""

    def __init__(self, doors: BridgeDoors, *, pause: Pause, look_ms: int) -> None:
        self._table = doors.table
        self._queue = BridgeQueue(doors.table)
        self._attempts = Attempts(doors.table)
        self._payloads = doors.payloads
        self._intents = doors.intents
        self._unit = doors.unit
        self._clock = doors.clock
        self._ids = doors.ids
        self._faults = doors.faults
        self._pause = pause
        self._look_ms = look_ms

    def poll(
        self, caller: Caller, request: PollRequest, gone: Callable[[], bool] = lambda: False
    ) -> tuple[TaskGiven, ...]:
        """Up to `max` tasks, the oldest first, as soon as there is one; none after `wait_seconds`, or if `gone`.

        Refuses a missing scope, another environment than the key's, and queues that the key's roles leave out.
        """
        environment = _check(caller, request)
        began = self._clock.now_ms()
        until = began + int(request.wait_seconds * 1000)
        look = FIRST_LOOK_MS
        while not gone():
            given = self._look(caller, request, environment, began)
            left = until - self._clock.now_ms()
            if given or left <= 0 or not self._pause(min(look, left)):
                return tuple(given)
            look = min(look * 2, self._look_ms)
        return ()

    def _look(self, caller: Caller, request: PollRequest, environment: str, began: int) -> list[TaskGiven]:
        """Take what can be taken now. Rows that lead nowhere are cleared away, some hundreds of them at one look."""
        for _ in range(ROUNDS):
            now, limit = self._clock.now_ms(), 2 * request.max + 8
            rows = self._queue.visible(caller.tenant, environment, request.task_types, now, limit)
            if not rows:
                return []
            with self._unit.batch():
                found = self._take(caller, request, rows, now, began)
            # Every row that was not given stands elsewhere now, or nowhere: there may be others behind them.
            if found.given or found.left or len(rows) < limit:
                return found.given
        return []

    def _take(self, caller: Caller, request: PollRequest, rows: Sequence[Waiting], now: int, began: int) -> _Round:
        keys = [(run_pk(row.task.run_id), sk) for row in rows for sk in (HEAD, _attempt_sk(row))]
        stored = self._table.batch_get(keys)
        found = _Round()
        for row in rows:
            if len(found.given) == request.max or found.bytes > MAX_ANSWER_BYTES:
                break
            head = stored.get((run_pk(row.task.run_id), HEAD))
            attempt = self._attempts.of(stored.get((run_pk(row.task.run_id), _attempt_sk(row))))
            if head is None:
                found.done.append(row)  # its run was removed
            elif attempt is not None and _own_return(attempt.attempt, request.worker or caller.key_id, began):
                found.left += 1
            elif attempt is None and not _wanted(head.body):
                self._queue.move(row, _next_rest(row, now))
            else:
                self._take_one(caller, request, row, attempt, found)
        self._faults.at("bridge.after_claim")
        send_all(self._intents, [intent_message(intent, self._ids) for intent in found.told])
        for row in found.done:
            self._queue.remove(row.task, row.place)
        return found

    def _take_one(self, caller: Caller, request: PollRequest, row: Waiting, known: Row | None, found: _Round) -> None:
        now = self._clock.now_ms()
        if known is not None and not known.attempt.status.ended and known.attempt.lease_until >= now:
            self._queue.move(row, known.attempt.lease_until + 1)
            return
        if known is None or not known.attempt.status.ended:
            known = self._claim(caller, request, row, known, now, found)
        if known is not None and known.attempt.status.ended:
            found.told.append(finished_intent(known.attempt, now))
            found.done.append(row)

    def _claim(
        self, caller: Caller, request: PollRequest, row: Waiting, known: Row | None, now: int, found: _Round
    ) -> Row | None:
        """Claim the attempt; the ended row, if it ends here or somebody else has ended it."""
        wanted = self._next(caller, request, row, known, now)
        value: JSON = None
        if not wanted.status.ended:
            try:
                value = self._payloads.load(row.task.run_id, row.task.input)
            except PayloadMissingError as fault:
                wanted = _ended(wanted, now, StepError("INPUT_MISSING", str(fault), retryable=False))
        also = () if wanted.status.ended else moved(row.task, row.place, wanted.place)
        mine = known or Row(wanted, 1)
        winner = self._attempts.create(wanted, also) if known is None else self._attempts.replace(known, wanted, also)
        if winner is not None:
            return winner if winner.attempt.status.ended else None
        if not wanted.status.ended:
            found.told.append(started_intent(wanted, wanted.task.timeout_ms, now))
            found.given.append(_given(wanted, value))
            found.bytes += 0 if isinstance(row.task.input, Inline) else row.task.input.size
        return mine

    def _next(self, caller: Caller, request: PollRequest, row: Waiting, known: Row | None, now: int) -> Attempt:
        """The attempt as this worker has it or, when nobody may have it any more, as it ends."""
        lease_ms = row.task.heartbeat_timeout_ms or request.lease_seconds * 1000
        worker = request.worker or caller.key_id
        until = now + lease_ms
        if known is None:
            attempt = Attempt(task=row.task, worker=worker, lease_until=until, started_at=now, heartbeat_at=now)
            secret = self._ids.token(_SECRET_BYTES)
        else:
            forsaken = self._attempts.forsaken(known.attempt, now)
            if forsaken is not None:
                return forsaken
            attempt, secret = delivered(known.attempt, worker, now, until), known.attempt.secret
        return msgspec.structs.replace(
            attempt, actor=caller.key_id, lease_ms=lease_ms, place=until + 1, secret=secret, idle=False
        )


def _check(caller: Caller, request: PollRequest) -> str:
    """Refuse what is wrong with the request; the environment whose tasks are meant."""
    require(caller, Scope.BRIDGE_WORK)
    if not 1 <= len(request.task_types) <= MAX_TYPES:
        raise invalid("FIELD_INVALID", f"name 1 to {MAX_TYPES} task types", "task_types")
    for place, task_type in enumerate(request.task_types):
        if not _TYPE.match(task_type) or task_type in request.task_types[:place]:
            message = "each task type once; it starts with a letter, then at most 127 letters, digits, '.', '_' and '-'"
            raise invalid("FIELD_INVALID", message, f"task_types[{place}]")
        require_queue(caller, task_type, f"task_types[{place}]")
    environment = request.environment or caller.default_environment
    for name, value, low, high in (
        ("max", request.max, 1, MAX_TASKS),
        ("wait_seconds", request.wait_seconds, 0, MAX_WAIT_S),
        ("lease_seconds", request.lease_seconds, 1, MAX_LEASE_S),
        ("worker", len(request.worker), 0, MAX_WORKER),
        ("environment", len(environment), 1, MAX_ENVIRONMENT),
    ):
        if not low <= value <= high:
            unit = " characters" if name in ("worker", "environment") else ""
            raise invalid("FIELD_INVALID", f"from {low} to {high}{unit}", name)
    require_authority(caller, environment)
    return environment


def _own_return(attempt: Attempt, worker: str, began: int) -> bool:
    """Whether this very worker gave the task back while its poll was out: it is about to stop."""
    return attempt.idle and attempt.worker == worker and attempt.lease_until >= began


def _next_rest(row: Waiting, now: int) -> int:
    """On a grid, so that several rows of one task, which a run may have put there meanwhile, become one again."""
    rest = RESTS_MS[now - row.task.scheduled_at > LONG_MS]
    return (now // rest + 1) * rest


def _wanted(header: bytes) -> bool:
    """Whether the run goes on. One that this release cannot read may: whoever mends it counts on its attempts."""
    try:
        head = _head(header)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return True
    return head.status is not RunStatus.PAUSED and head.ending is None and not head.status.terminal


def _ended(attempt: Attempt, now: int, error: StepError) -> Attempt:
    return msgspec.structs.replace(attempt, status=AttemptStatus.FAILED, finished_at=now, error=error)


def _given(attempt: Attempt, value: JSON) -> TaskGiven:
    task = attempt.task
    return TaskGiven(
        task_token=issue(attempt),
        task_type=task.action,
        run_id=task.run_id,
        node=task.node,
        attempt=task.attempt,
        delivery=attempt.deliveries,
        input=value,
        idempotency_key=task.idempotency_key,
        scheduled_at=task.scheduled_at,
        lease_expires_at=attempt.lease_until,
        heartbeat_within_ms=attempt.lease_ms,
        deadline_at=attempt.started_at + task.timeout_ms if task.timeout_ms else None,
        last_heartbeat=attempt.heartbeat_details,
        causation_depth=task.depth,
    )


def _attempt_sk(row: Waiting) -> str:
    return attempt_sk(row.task.node, row.task.attempt)


_head = msgspec.json.Decoder(_Head).decode
