"""The AWS ports against moto, in this process, on the clock that the test moves."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol
from unittest import mock

import moto
from tests.contract.implementations import Backend

from ductor.adapters.aws.blobs import S3Blobs
from ductor.adapters.aws.clients import Clients
from ductor.adapters.aws.cron import AwsCronSchedules
from ductor.adapters.aws.queue import SqsQueue
from ductor.adapters.aws.scheduler import ScheduleTarget
from ductor.adapters.aws.table import DynamoTable
from ductor.adapters.aws.timers import AwsTimers, read_wake
from ductor.adapters.aws.unit import SeparateUnit
from ductor.testing.memory import VirtualClock

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
FIFO = {
    "FifoQueue": "true",
    "DeduplicationScope": "messageGroup",
    "FifoThroughputLimit": "perMessageGroupId",
}
MAX_BYTES = {"MaximumMessageSize": "1048576"}
CLIENTS = Clients()
"""Made once: making clients is what takes the longest, and moto answers them in every test anew."""


class Emulator:
    """moto with one stack of resources. `close` ends it."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self._ends: list[Callable[[], Any]] = []
        self._enter(mock.patch.dict("os.environ", CREDENTIALS))
        aws = moto.mock_aws()
        aws.start()
        self._ends.append(aws.stop)
        self._set_time()
        self.clients = CLIENTS
        self.table = DynamoTable("ductor", pause=lambda _: None)
        self.table.create()
        self.clients("s3").create_bucket(Bucket="payloads")
        self.clients("scheduler").create_schedule_group(Name="ductor")
        self.intents, self.steps = self._queue("intents.fifo"), self._queue("steps")
        self.timers_url = self._make("timers", MAX_BYTES)
        self.target = ScheduleTarget(
            queue_arn="arn:aws:sqs:us-east-1:123456789012:timers",
            group="ductor",
            role_arn="arn:aws:iam::123456789012:role/scheduler",
        )
        self.timers = AwsTimers(self.target, self.timers_url, self.clients, clock)
        self.clients("scheduler").create_schedule_group(Name="cron")
        self.schedule_url = self._make("schedule", MAX_BYTES)
        self.cron_target = ScheduleTarget(
            queue_arn="arn:aws:sqs:us-east-1:123456789012:schedule",
            group="cron",
            role_arn="arn:aws:iam::123456789012:role/cron",
        )
        self.cron = AwsCronSchedules(self.cron_target, self.clients, clock)
        self.blobs = S3Blobs("payloads", self.clients)

    def close(self) -> None:
        for end in reversed(self._ends):
            end()

    def _enter(self, patch: Any) -> None:
        patch.start()
        self._ends.append(patch.stop)

    def _set_time(self) -> None:
        """moto's queues live on the test's clock, which for them moves on a little whenever they look at it."""
        ticks = itertools.count(1)

        def milliseconds(_: object = None) -> float:
            return self.clock.now_ms() + next(ticks) * 1e-3

        def seconds(_: object = None) -> float:
            return milliseconds() / 1000

        self._enter(mock.patch("moto.sqs.models.unix_time_millis", milliseconds))
        self._enter(mock.patch("moto.sqs.models.unix_time", seconds))

    def _queue(self, name: str) -> SqsQueue:
        attributes = MAX_BYTES | (FIFO if name.endswith(".fifo") else {})
        return SqsQueue(self._make(name, attributes), self._make(f"dead-{name}", attributes), self.clients, self.clock)

    def _make(self, name: str, attributes: dict[str, str]) -> str:
        return str(self.clients("sqs").create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])


class TimersEnd(Protocol):
    """What `ReadableTimers` reads: the timers, their queue, and what belongs to them."""

    timers: AwsTimers
    timers_url: str
    clients: Clients
    clock: VirtualClock


class ReadableTimers:
    """`AwsTimers` and what the timer function does with the queue: early messages wait, repeated ones count once."""

    def __init__(self, emulator: TimersEnd) -> None:
        self._emulator = emulator
        self._queue = SqsQueue(emulator.timers_url, emulator.timers_url, emulator.clients, emulator.clock)
        self._held: dict[tuple[str, int], list[str]] = {}

    def arm(self, run_id: str, at: int) -> None:
        self._emulator.timers.arm(run_id, at)

    def due(self, now: int, limit: int = 100) -> tuple[tuple[str, int], ...]:
        if limit < 1:
            raise ValueError("the limit must be at least 1")
        self._receive()
        return tuple(sorted((pair for pair in self._held if pair[1] <= now), key=lambda pair: pair[::-1])[:limit])

    def fired(self, timers: Sequence[tuple[str, int]]) -> None:
        for pair in timers:
            self._queue.ack(self._held.pop(pair, []))

    def next_at(self) -> int | None:
        self._receive()
        return min((at for _, at in self._held), default=None)

    def _receive(self) -> None:
        for message in self._queue.receive(100, visibility_ms=60_000):
            wake = read_wake(message.body)
            self._held.setdefault((wake.run_id, wake.at), []).append(message.receipt)


def moto_backend(_: Path) -> Backend:
    """The AWS ports on a fresh account."""
    clock = VirtualClock()
    emulator = Emulator(clock)
    return Backend(
        clock=clock,
        table=emulator.table,
        blobs=emulator.blobs,
        intents=emulator.intents,
        steps=emulator.steps,
        unit=SeparateUnit(),
        timers=ReadableTimers(emulator),
        groups=False,
        close=emulator.close,
    )
