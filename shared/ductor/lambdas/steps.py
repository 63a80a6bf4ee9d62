"""A batch of the steps queue on Lambda: claims, runs and records attempts, and gives back what it has no time for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Final, Protocol

from ductor.app.claims import Claimed, Finished
from ductor.app.worker import Worker
from ductor.lambdas.telemetry import Telemetry
from ductor.ports import Message, Outgoing, UnavailableError

WATCH_S: Final = 0.25
MARGIN_MS: Final = 5_000
"""With less time than this left, attempts that still run are given back: the next invocation runs them again."""

AGAIN_MS: Final = 31_000
"""When what a failed batch had claimed is delivered again: its leases have just run out then."""

RECORD_TRIES: Final = 5
PAUSE_S: Final = 0.5

Remaining = Callable[[], int]
"""How many milliseconds this invocation may still take."""


class StepsEnd(Protocol):
    """The steps queue as SQS has it."""

    def send(self, messages: Sequence[Outgoing]) -> tuple[int, ...]: ...

    def retry(self, receipts: Sequence[str], *, delay_ms: int) -> None: ...

    def bury(self, messages: Sequence[Message], reason: str) -> None: ...


class InvocationQueue:
    """`ports.Queue` for the worker, around the records of one invocation: Lambda itself removes what was acknowledged.

    `begin` starts an invocation and forgets the one before.
    """

    def __init__(self, queue: StepsEnd) -> None:
        self._queue = queue
        self._open: dict[str, Message] = {}

    def begin(self, messages: Sequence[Message]) -> None:
        self._open = {message.receipt: message for message in messages}

    def left(self) -> list[str]:
        """The ids of messages that nobody acknowledged: they come again."""
        return [message.id for message in self._open.values()]

    def hand_back(self, delay_ms: int) -> None:
        """Make what nobody acknowledged visible after `delay_ms`, long before the queue would by itself."""
        self._later(list(self._open), delay_ms)

    def send(self, messages: Sequence[Outgoing]) -> tuple[int, ...]:
        return self._queue.send(messages)

    def receive(self, limit: int, *, visibility_ms: int, wait_ms: int = 0) -> tuple[Message, ...]:
        """Nothing: Lambda receives."""
        return ()

    def ack(self, receipts: Sequence[str]) -> None:
        for receipt in receipts:
            self._open.pop(receipt, None)

    def retry(self, receipts: Sequence[str], *, delay_ms: int) -> None:
        self._later([receipt for receipt in receipts if receipt in self._open], delay_ms)

    def _later(self, receipts: list[str], delay_ms: int) -> None:
        """Lambda gave us these receipts, so one that nobody knows is one of the past: its message was delivered again.

        An action that gives a sign of life must not fail for that: whose the attempt is, its row says.
        """
        with suppress(ValueError):
            self._queue.retry(receipts, delay_ms=delay_ms)

    def dead_letter(self, receipts: Sequence[str], reason: str) -> None:
        self._queue.bury([self._open[receipt] for receipt in receipts if receipt in self._open], reason)
        self.ack(receipts)

    def oldest_age_ms(self) -> int:
        """Of this invocation nothing has an age."""
        return 0


class StepBatches:
    """Handles the batches of one function, one at a time. Actions that wait run side by side."""

    def __init__(self, worker: Worker, queue: InvocationQueue, telemetry: Telemetry) -> None:
        self._worker = worker
        self._queue = queue
        self._telemetry = telemetry

    def handle(self, messages: Sequence[Message], remaining: Remaining) -> list[str]:
        """The ids of the messages that must come again; Lambda removes all others."""
        self._queue.begin(messages)
        try:
            parts = _parts(messages)
            for place, part in enumerate(parts):
                if remaining() < MARGIN_MS:
                    self._queue.retry([message.receipt for late in parts[place:] for message in late], delay_ms=0)
                    break
                self._run(self._worker.claim(part), remaining)
        except UnavailableError as fault:
            self._telemetry.log.warning("attempts come again: %s", fault)
            self._hand_back()
        except Exception:
            self._telemetry.log.exception("a batch failed; what is left of it comes again")
            self._hand_back()
        left = self._queue.left()
        self._telemetry.count("AttemptsHandled", len(messages) - len(left))
        self._telemetry.count("AttemptsReturned", len(left))
        self._telemetry.flush()
        return left

    def _hand_back(self) -> None:
        with suppress(UnavailableError):
            self._queue.hand_back(AGAIN_MS)

    def _run(self, held: Sequence[Claimed], remaining: Remaining) -> None:
        waiting = [claimed for claimed in held if claimed.action is not None and claimed.action.blocking]
        # Not `with`: an action that ran past its time must not hold up the others' answers.
        pool = ThreadPoolExecutor(max(1, len(waiting)), thread_name_prefix="action")
        try:
            running = {pool.submit(self._execute, claimed): claimed for claimed in waiting}
            self._record([self._execute(claimed) for claimed in held if claimed not in waiting], remaining)
            self._watch(running, remaining)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _execute(self, claimed: Claimed) -> Finished:
        task = claimed.task
        with self._telemetry.about(task.run_id):
            self._telemetry.tenant(task.tenant)
            finished = self._worker.execute(claimed)
            if finished.error is not None:
                code = finished.error.code
                self._telemetry.log.info("attempt %s of %s failed: %s", task.attempt, task.node, code)
            return finished

    def _watch(self, running: dict[Future[Finished], Claimed], remaining: Remaining) -> None:
        while running:
            ended, _ = wait(running, timeout=WATCH_S, return_when=FIRST_COMPLETED)
            self._record([future.result() for future in ended], remaining)
            for future in ended:
                del running[future]
            self._look_after(running)
            if running and remaining() < MARGIN_MS:
                self._worker.give_back(list(running.values()))
                return

    def _look_after(self, running: dict[Future[Finished], Claimed]) -> None:
        """Renew leases, and end what runs too long: its thread goes on, but nobody waits for it any more."""
        stale = [claimed for claimed in running.values() if self._worker.wants_renewal(claimed)]
        if stale:
            self._worker.renew(stale)
        held = list(running.values())
        if held and self._worker.overdue(held):
            expired = self._worker.expire(held)
            for future in [future for future, claimed in running.items() if claimed in expired]:
                del running[future]

    def _record(self, results: list[Finished], remaining: Remaining) -> None:
        """A finished action is not run again for a moment's outage, so its result is worth several tries."""
        if not results:
            return
        for _ in self._tries(remaining):
            try:
                self._worker.finish(results)
            except UnavailableError as fault:
                self._telemetry.log.warning("results wait for the storage: %s", fault)
                time.sleep(PAUSE_S)
            else:
                return
        self._worker.finish(results)

    def _tries(self, remaining: Remaining) -> Iterator[int]:
        for number in range(RECORD_TRIES):
            if remaining() < MARGIN_MS:
                return
            yield number


def _parts(messages: Sequence[Message]) -> list[Sequence[Message]]:
    """Together; but one by one when any comes again, because it may have killed the process that ran it.

    A claim counts as a delivery of its attempt, and after the last one the worker is held to be lost: an attempt must
    not run out of them because of another one in its batch.
    """
    if any(message.receives > 1 for message in messages):
        return [[message] for message in messages]
    return [messages]
