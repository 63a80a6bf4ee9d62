"""The AWS ports against MiniStack, over HTTP. Its queues live on the clock that the test moves."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from unittest import mock

from tests.contract.implementations import Backend
from tests.contract.moto_backend import FIFO, MAX_BYTES, ReadableTimers
from tests.deployed.emulator import MiniStack

from ductor.adapters.aws.blobs import S3Blobs
from ductor.adapters.aws.clients import Clients
from ductor.adapters.aws.queue import SqsQueue
from ductor.adapters.aws.rows import row_class
from ductor.adapters.aws.scheduler import ScheduleTarget
from ductor.adapters.aws.table import DynamoTable
from ductor.adapters.aws.timers import AwsTimers
from ductor.adapters.aws.unit import SeparateUnit
from ductor.testing.memory import VirtualClock

_names = itertools.count()


class SharedClock(VirtualClock):
    """A clock whose every change the emulator reads from a file."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file
        self._tell()

    def advance(self, milliseconds: int) -> None:
        super().advance(milliseconds)
        self._tell()

    def set(self, now: int) -> None:
        super().set(now)
        self._tell()

    def _tell(self) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(str(self.now))
        new.rename(self._file)


class Resources:
    """A table, a bucket, queues and a group of schedules of their own in a running emulator. `close` forgets it."""

    def __init__(self, aws: MiniStack, clock: VirtualClock) -> None:
        self.clock = clock
        self._environment = mock.patch.dict("os.environ", aws.credentials)
        self._environment.start()
        self.clients = clients_of(aws.url)
        self._name = f"contract-{next(_names)}"
        self.table = DynamoTable(self._name, pause=lambda _: None)
        row_class(self._name).create_table(wait=False)  # it is there at once, and waiting takes two seconds
        self.clients("s3").create_bucket(Bucket=self._name)
        self.clients("scheduler").create_schedule_group(Name=self._name)
        self.intents, self.steps = self._queue("intents.fifo"), self._queue("steps")
        self.timers_url = self._make("timers", MAX_BYTES)
        arn = f"arn:aws:sqs:us-east-1:000000000000:{self._name}-timers"
        role = "arn:aws:iam::000000000000:role/scheduler"
        target = ScheduleTarget(queue_arn=arn, group=self._name, role_arn=role)
        self.timers = AwsTimers(target, self.timers_url, self.clients, clock)
        self.blobs = S3Blobs(self._name, self.clients)

    def close(self) -> None:
        self.clients("dynamodb").delete_table(TableName=self._name)
        self._environment.stop()

    def _queue(self, name: str) -> SqsQueue:
        attributes = MAX_BYTES | (FIFO if name.endswith(".fifo") else {})
        return SqsQueue(self._make(name, attributes), self._make(f"dead-{name}", attributes), self.clients, self.clock)

    def _make(self, name: str, attributes: dict[str, str]) -> str:
        name = f"{self._name}-{name}"
        return str(self.clients("sqs").create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])


@functools.cache
def clients_of(url: str) -> Clients:
    """Made once per emulator: making clients is what takes the longest. Call it with the emulator's environment set."""
    return Clients()


def ministack_backend(aws: MiniStack) -> Backend:
    """The AWS ports on new resources."""
    clock = SharedClock(aws.clock_file)
    made = Resources(aws, clock)
    return Backend(
        clock=clock,
        table=made.table,
        blobs=made.blobs,
        intents=made.intents,
        steps=made.steps,
        unit=SeparateUnit(),
        timers=ReadableTimers(made),
        groups=False,
        close=made.close,
    )
