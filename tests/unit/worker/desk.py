"""One worker and more over in-memory ports on virtual time, with the actions that a test brings along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ductor.actions.action import Action
from ductor.actions.context import ActionContext
from ductor.actions.registry import ActionRegistry
from ductor.app.attempts import Attempts, Row
from ductor.app.claims import Claimed
from ductor.app.payloads import PayloadStore
from ductor.app.worker import Worker, WorkerDoors, WorkerSettings
from ductor.model.attempt import Attempt, AttemptStatus, AttemptTask
from ductor.model.intent import Intent
from ductor.model.payload import Inline, Payload
from ductor.ports import Outgoing, QueueName
from ductor.testing.chaos import Crash
from ductor.testing.memory import MemoryBlobs, MemoryQueue, MemoryTable, NullUnit, SeededIds, VirtualClock

RUN = "run-1"
LEASE_MS = 10_000


class CrashOnce:
    """`ports.Faults` that kills the process at the first passing of one point, and counts its executions."""

    def __init__(self, point: str = "") -> None:
        self.point = point

    def at(self, point: str) -> None:
        if point == self.point:
            self.point = ""
            raise Crash(point)


class Desk:
    """The ports that workers share, and what happened at them."""

    def __init__(self, *actions: Action, point: str = "", table: MemoryTable | None = None) -> None:
        self.clock = VirtualClock()
        self.table = table or MemoryTable()
        self.blobs = MemoryBlobs()
        self.intents = MemoryQueue(QueueName.INTENTS, self.clock)
        self.steps = MemoryQueue(QueueName.STEPS, self.clock)
        self.attempts = Attempts(self.table)
        self.payloads = PayloadStore(self.table, self.blobs)
        self.faults = CrashOnce(point)
        self.registry = ActionRegistry(actions)
        self._ids = SeededIds(1, self.clock)

    def worker(self, name: str = "a", sole_since: int = 0, **more: Any) -> Worker:
        """A worker process; `more` are further doors."""
        doors = WorkerDoors(
            attempts=self.attempts,
            payloads=self.payloads,
            registry=self.registry,
            intents=self.intents,
            steps=self.steps,
            clock=self.clock,
            ids=self._ids,
            unit=NullUnit(),
            faults=self.faults,
            **more,
        )
        return Worker(doors, WorkerSettings(name=name, lease_ms=LEASE_MS, sole_since=sole_since))

    def send(self, action: str = "do", args: Payload = Inline({}), **changes: Any) -> AttemptTask:  # noqa: B008 - frozen
        """Put a task on the steps queue."""
        fields: dict[str, Any] = {"node": "n", "attempt": 1, "idempotency_key": f"{RUN}/n", **changes}
        task = AttemptTask(run_id=RUN, tenant="t", generation=7, action=action, input=args, **fields)
        self.steps.send([Outgoing(msgspec.json.encode(task))])
        return task

    def claim(self, worker: Worker) -> list[Claimed]:
        """Receive what there is and claim it."""
        return worker.claim(self.steps.receive(100, visibility_ms=LEASE_MS))

    def claim_one(self, worker: Worker) -> Claimed:
        (claimed,) = self.claim(worker)
        return claimed

    def work(self, worker: Worker) -> None:
        """Claim, execute and finish one batch."""
        worker.finish([worker.execute(claimed) for claimed in self.claim(worker)])

    def lose_lease(self) -> None:
        """Let so much time pass that whoever holds an attempt counts as lost and its task is delivered again."""
        self.clock.advance(LEASE_MS + 1)

    def row(self, node: str = "n", attempt: int = 1) -> Attempt:
        return self.stored(node, attempt).attempt

    def stored(self, node: str = "n", attempt: int = 1) -> Row:
        row = self.attempts.read(RUN, node, attempt)
        assert row is not None
        return row

    def end(self, status: AttemptStatus) -> None:
        """End the attempt from outside."""
        row = self.stored()
        ended = msgspec.structs.replace(row.attempt, status=status, finished_at=self.clock.now)
        assert self.attempts.replace(row, ended) is None

    def told(self) -> list[Intent]:
        """What the runs have been told since the last time."""
        intents: list[Intent] = []
        while messages := self.intents.receive(100, visibility_ms=1_000):
            self.intents.ack([message.receipt for message in messages])
            intents.extend(msgspec.json.decode(message.body, type=Intent) for message in messages)
        return intents


def does(function: Callable[[dict[str, Any], ActionContext], Any], **options: Any) -> Action:
    """The action `do`."""
    return Action(name="do", function=function, **options)


def returns(output: Any) -> Action:
    """`do` that returns `output`."""
    return does(lambda args, ctx: output)


def raises(fault: BaseException) -> Action:
    """`do` that raises `fault`."""

    def run(args: dict[str, Any], ctx: ActionContext) -> Any:
        raise fault

    return does(run)


def takes(outputs: Sequence[Any]) -> Action:
    """`do` that returns the next of `outputs` at each execution."""
    left = iter(outputs)
    return does(lambda args, ctx: next(left))
