"""Runs attempts: claims tasks, executes actions, records results in the attempt rows, and tells the runs.

Whoever drives it (a loop, a Lambda handler, the simulator) calls claim, execute and finish. A crash between any two
lines leads to a redelivery that finds the attempt's row and goes on from what it says.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from ductor.actions.connection import Connection
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.actions.execute import failure
from ductor.actions.registry import Action, ActionRegistry
from ductor.app.attempts import Attempts, Row, finished_intent
from ductor.app.claims import NOT_OURS, Claimed, Claims, Finished, overrun
from ductor.app.connected_run import NoConnections, Resolver, execute_connected
from ductor.app.dispatch import intent_message, send_all
from ductor.app.payloads import PayloadMissingError, PayloadStore
from ductor.app.settling import settle
from ductor.model.attempt import Attempt, AttemptStatus, AttemptTask, ModelUse, added
from ductor.model.errors import StepError, raised
from ductor.model.intent import Intent
from ductor.model.json import JSON
from ductor.model.payload import MAX_OUTPUT_BYTES, ROW_BYTES, Inline, Payload, stage
from ductor.ports import Clock, Faults, Ids, Message, Queue, UnavailableError, Unit

DEFAULT_TIMEOUT_MS: Final = 60_000
"""Longest run of one attempt when neither step nor action says."""

BEAT_EVERY_MS: Final = 1_000
"""An action may report progress as often as it likes; the row is written at most this often."""


class WorkerSettings(msgspec.Struct, frozen=True):
    """`lease_ms`: how long a claim holds without a sign of life. `name` must differ between processes.

    `sole_since` (epoch ms): when this process found that no other worker was alive; claims of others from before are
    lost, whatever their leases say. 0 = it does not know.
    """

    name: str
    lease_ms: int = 10_000
    sole_since: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDoors:
    """What a worker works with. `step_actions` are what it runs for step types that are no `action`, by type."""

    attempts: Attempts
    payloads: PayloadStore
    registry: ActionRegistry
    intents: Queue
    steps: Queue
    clock: Clock
    ids: Ids
    unit: Unit
    faults: Faults
    connections: Resolver = field(default_factory=NoConnections)
    step_actions: Mapping[str, Action] = field(default_factory=dict)


class Worker:
    """Claims and finishes may run on several threads; each attempt is handled by one at a time."""

    def __init__(self, doors: WorkerDoors, settings: WorkerSettings) -> None:
        self._attempts = doors.attempts
        self._payloads = doors.payloads
        self._registry = doors.registry
        self._intents = doors.intents
        self._steps = doors.steps
        self._clock = doors.clock
        self._ids = doors.ids
        self._unit = doors.unit
        self._faults = doors.faults
        self._connections = doors.connections
        self._step_actions = doors.step_actions
        self._settings = settings

    def claim(self, messages: Sequence[Message]) -> list[Claimed]:
        """Claim each task by a conditional write; what cannot be run here is acknowledged, told on, or retried."""
        self._faults.at("worker.before_claim")
        claims = Claims()
        for message in messages:
            self._claim_one(message, claims)
        self._faults.at("worker.after_claim")
        send_all(self._intents, [intent_message(intent, self._ids) for intent in claims.replies])
        settle(self._steps, claims)
        return claims.held

    def _claim_one(self, message: Message, claims: Claims) -> None:
        try:
            task = _decode_task(message.body)
        except (msgspec.DecodeError, msgspec.ValidationError) as fault:
            claims.buried.append((message.receipt, f"not a task: {fault}"))
            return
        now = self._clock.now_ms()
        attempt = Attempt(
            task=task,
            worker=self._settings.name,
            lease_until=now + self._settings.lease_ms,
            started_at=now,
            heartbeat_at=now,
        )
        existing = self._attempts.create(attempt)
        if existing is None:
            claims.held.append(self._held(Row(attempt, 1), message.receipt, now))
        else:
            self._claim_again(existing, message.receipt, now, claims)

    def _claim_again(self, row: Row, receipt: str, now: int, claims: Claims) -> None:
        """A second delivery: of an ended attempt only the result is told again; a live one is left alone."""
        if not row.attempt.status.ended and self._is_lost(row.attempt, now):
            mine = self._attempts.take_over(row, self._settings.name, now, now + self._settings.lease_ms)
            won = mine is row and not row.attempt.status.ended
            row = mine
            if won:
                claims.held.append(self._held(row, receipt, now))
                return
        if row.attempt.status.ended:
            claims.replies.append(finished_intent(row.attempt, now))
            claims.done.append(receipt)
        else:
            claims.later.append((receipt, max(1, row.attempt.lease_until - now + 1)))

    def _is_lost(self, attempt: Attempt, now: int) -> bool:
        orphaned = attempt.worker != self._settings.name and attempt.heartbeat_at < self._settings.sole_since
        return orphaned or attempt.lease_until < now

    def _held(self, row: Row, receipt: str, now: int) -> Claimed:
        name = row.attempt.task.action
        action = self._step_actions.get(name) or self._registry.get(name)
        limit = row.attempt.task.timeout_ms or (action.timeout_ms if action else 0) or DEFAULT_TIMEOUT_MS
        return Claimed(row, receipt, action, limit, now)

    def execute(self, claimed: Claimed) -> Finished:
        """Run the action. Everything it may raise becomes an error of the attempt; nothing escapes."""
        claimed.beat_at = self._clock.now_ms()
        claimed.deadline = claimed.beat_at + claimed.limit_ms
        try:
            args = self._payloads.load(claimed.task.run_id, claimed.task.input)
            connection = self._connections.resolve(claimed.task)
        except UnavailableError:
            return Finished(claimed, begun=False)
        except ActionError as fault:
            return Finished(claimed, error=failure(fault))
        except PayloadMissingError as fault:
            return Finished(claimed, error=StepError("INPUT_MISSING", str(fault), retryable=False))
        try:
            output, data = self._run(claimed, args, connection)
        except UnavailableError:
            return Finished(claimed, begun=False)
        except Exception as fault:  # noqa: BLE001 - an action may raise anything; it becomes the attempt's error
            return Finished(claimed, error=failure(fault))
        except SystemExit as fault:
            # Meant for its own process, by code that was not written for a worker.
            return Finished(claimed, error=StepError("ACTION_FAILED", raised(fault)))
        if len(data) > MAX_OUTPUT_BYTES:
            message = f"the output has {len(data)} bytes; at most {MAX_OUTPUT_BYTES} are allowed"
            return Finished(claimed, error=StepError("OUTPUT_TOO_LARGE", message, retryable=False))
        return Finished(claimed, output, data)

    def _run(self, claimed: Claimed, args: JSON, connection: Connection | None) -> tuple[JSON, bytes]:
        task = claimed.task
        action = claimed.action
        if action is None:
            raise ActionError("ACTION_UNKNOWN", f"no action {task.action!r} is registered here", retryable=False)
        key = f"{task.idempotency_key}/{task.attempt}" if action.per_attempt_key else task.idempotency_key
        context = ActionContext(
            run_id=task.run_id,
            tenant=task.tenant,
            node=task.node,
            attempt=task.attempt,
            deliveries=claimed.row.attempt.deliveries,
            idempotency_key=key,
            causation_depth=task.depth,
            deadline=claimed.deadline,
            last_heartbeat=claimed.row.attempt.heartbeat_details,
            on_heartbeat=lambda details: self.beat(claimed, details),
            stop=claimed.stop,
            connection=connection,
            environment=task.environment,
            on_usage=lambda use: self._used(claimed, use),
            held=lambda: self._clock.now_ms() < claimed.row.attempt.lease_until,
        )
        return execute_connected(action, args, context)

    def _used(self, claimed: Claimed, use: ModelUse) -> None:
        with claimed.lock:
            claimed.usage = added(claimed.usage, use)

    def finish(self, results: Sequence[Finished], tell: Callable[[list[Intent]], None] | None = None) -> None:
        """Record each result in its row, tell the runs, acknowledge. What the row says wins over what we found.

        An attempt that goes on elsewhere, or that never began here, is left to its next delivery. `tell` takes what the
        runs are told, instead of the queue: for who has it applied in the unit in which the results become durable.
        """
        self._faults.at("worker.before_finish")
        now = self._clock.now_ms()
        replies: list[Intent] = []
        done: list[str] = []
        for result in results:
            if not result.begun:
                continue
            row = self._record(result, now)
            if row.status.ended:
                replies.append(finished_intent(row, now))
                done.append(result.claimed.receipt)
        self._faults.at("worker.after_finish")
        (tell or self.tell)(replies)
        self._faults.at("worker.after_send")
        self._steps.ack(done)
        self._faults.at("worker.after_ack")

    def tell(self, intents: list[Intent]) -> None:
        """Send them to their runs."""
        send_all(self._intents, [intent_message(intent, self._ids) for intent in intents])

    def _record(self, result: Finished, now: int) -> Attempt:
        """The row afterwards. Any delivery's success ends the attempt; a failure only that of the present one."""
        claimed = result.claimed
        output = self._stored(result)
        with claimed.lock:
            # A copy: if the unit around this is undone, the next try must start from what is stored.
            row = Row(claimed.row.attempt, claimed.row.version)
            while not row.attempt.status.ended:
                if result.error is not None and not self._is_ours(claimed, row):
                    break
                status = AttemptStatus.FAILED if result.error else AttemptStatus.SUCCEEDED
                ended = msgspec.structs.replace(
                    row.attempt,
                    status=status,
                    finished_at=now,
                    output=output,
                    error=result.error,
                    usage=claimed.usage,
                )
                winner = self._attempts.replace(row, ended)
                if winner is None:
                    return ended
                row = winner
            if result.error is None and row.attempt.status is not AttemptStatus.SUCCEEDED:
                late = msgspec.structs.replace(row.attempt, late_output=output)
                self._attempts.replace(row, late)
            return row.attempt

    def _is_ours(self, claimed: Claimed, row: Row) -> bool:
        """Whether the attempt still runs, and under this claim."""
        attempt = row.attempt
        mine = attempt.worker == self._settings.name and attempt.deliveries == claimed.delivery
        return mine and not attempt.status.ended

    def _stored(self, result: Finished) -> Payload:
        """Up to 8 KB stand in the attempt row itself, more goes to the blobs first."""
        if len(result.data) <= ROW_BYTES:
            return Inline(result.output)
        task = result.claimed.task
        payload, stored = stage(task.run_id, result.output, data=result.data)
        if stored is not None:
            self._payloads.put(task.run_id, stored)
        return payload

    def beat(self, claimed: Claimed, details: JSON) -> bool:
        """A sign of life from the action. False when the attempt is to stop: cancelled, or no longer ours.

        None keeps the details reported before. A beat that cannot be stored now is stored with the next one.
        """
        now = self._clock.now_ms()
        with claimed.lock:
            claimed.beat_at = now
            claimed.details = claimed.details if details is None else details
            due = now - claimed.written_at >= BEAT_EVERY_MS
        if due:
            with contextlib.suppress(UnavailableError), self._unit.batch():
                self.renew([claimed])
        return not claimed.stop.is_set()

    def renew(self, held: Sequence[Claimed]) -> None:
        """Extend the leases of attempts that still run, and learn which of them are to stop."""
        now = self._clock.now_ms()
        for claimed in held:
            with claimed.lock:
                self._renew_one(claimed, now)
        self._steps_keep([claimed.receipt for claimed in held if not claimed.stop.is_set()])

    def _renew_one(self, claimed: Claimed, now: int) -> None:
        row = claimed.row
        while self._is_ours(claimed, row):
            if row.attempt.cancel_requested:
                claimed.stop.set()
            renewed = msgspec.structs.replace(
                row.attempt,
                lease_until=now + self._settings.lease_ms,
                heartbeat_at=claimed.beat_at,
                heartbeat_details=claimed.details,
                usage=claimed.usage,
            )
            winner = self._attempts.replace(row, renewed)
            if winner is None:
                claimed.written_at = now
                return
            row = claimed.row = winner
        claimed.stop.set()

    def _steps_keep(self, receipts: list[str]) -> None:
        if receipts:
            self._steps.retry(receipts, delay_ms=self._settings.lease_ms)

    def wants_renewal(self, claimed: Claimed) -> bool:
        """Whether a third of the lease has passed since the row was last written."""
        return self._clock.now_ms() - claimed.written_at >= self._settings.lease_ms // 3

    def expire(self, held: Sequence[Claimed]) -> list[Claimed]:
        """End attempts that ran past their timeout, or past their heartbeat timeout without a beat: those attempts.

        One that was meanwhile delivered to another worker goes on there. Their actions may still be running;
        whatever they return later is recorded beside the end, never as the end.
        """
        now = self._clock.now_ms()
        expired = [(claimed, error) for claimed in held if (error := overrun(claimed, now)) is not None]
        ended: list[Claimed] = []
        for claimed, error in expired:
            with claimed.lock:
                self._time_out(claimed, now, error)
            claimed.stop.set()
            if claimed.row.attempt.status.ended:
                ended.append(claimed)
        replies = [finished_intent(claimed.row.attempt, now) for claimed in ended]
        send_all(self._intents, [intent_message(intent, self._ids) for intent in replies])
        if ended:
            self._steps.ack([claimed.receipt for claimed in ended])
        return [claimed for claimed, _ in expired]

    def _time_out(self, claimed: Claimed, now: int, error: StepError) -> None:
        while self._is_ours(claimed, claimed.row):
            ended = msgspec.structs.replace(
                claimed.row.attempt,
                status=AttemptStatus.TIMED_OUT,
                finished_at=now,
                error=error,
                usage=claimed.usage,
            )
            winner = self._attempts.replace(claimed.row, ended)
            if winner is None:
                return
            claimed.row = winner

    def overdue(self, held: Sequence[Claimed]) -> bool:
        """Whether `expire` would end any of them."""
        now = self._clock.now_ms()
        return any(overrun(claimed, now) is not None for claimed in held)

    def reload(self, held: Sequence[Claimed]) -> None:
        """Read the rows again: what was remembered of them was written in a unit that failed."""
        for claimed in held:
            task = claimed.task
            row = self._attempts.read(task.run_id, task.node, task.attempt)
            with claimed.lock:
                if row is not None:
                    claimed.row = row

    def give_back(self, held: Sequence[Claimed]) -> None:
        """Stopping: attempts that did not end here run elsewhere at once, as another delivery of the same attempt.

        Their actions are asked to stop; a success that comes all the same still counts. No worker was lost, so this
        delivery is not one of the attempt's three: any number of deployments may pass during a long attempt.
        """
        now = self._clock.now_ms()
        for claimed in held:
            with claimed.lock:
                attempt = claimed.row.attempt
                returned = msgspec.structs.replace(
                    attempt, lease_until=now - 1, returned=attempt.returned + 1, usage=claimed.usage
                )
                self._attempts.replace(claimed.row, returned)
                claimed.delivery = NOT_OURS
            claimed.stop.set()
        if held:
            self._steps.retry([claimed.receipt for claimed in held], delay_ms=0)


_decode_task = msgspec.json.Decoder(AttemptTask).decode
