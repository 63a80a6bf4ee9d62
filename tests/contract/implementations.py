"""The implementations that every contract suite runs against. A new one is a factory in `implementations`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ductor.adapters.local.blobs import SqliteBlobs
from ductor.adapters.local.database import Database
from ductor.adapters.local.fifo import SqliteFifoQueue
from ductor.adapters.local.queue import SqliteQueue
from ductor.adapters.local.table import SqliteTable
from ductor.adapters.local.timers import SqliteTimers
from ductor.adapters.local.unit import SqliteUnit
from ductor.ports import Blobs, Queue, QueueName, Table, Unit
from ductor.testing.memory import MemoryBlobs, MemoryQueue, MemoryTable, MemoryTimers, NullUnit, VirtualClock


class ReadTimers(Protocol):
    """`ports.Timers` with its reading end."""

    def arm(self, run_id: str, at: int) -> None: ...

    def due(self, now: int, limit: int = 100) -> tuple[tuple[str, int], ...]: ...

    def fired(self, timers: Sequence[tuple[str, int]]) -> None: ...

    def next_at(self) -> int | None: ...


def nothing() -> None:
    """Nothing to close."""


@dataclass(frozen=True)
class Backend:
    """One implementation of every port, on a clock that the test moves.

    `groups` says whether its Unit really groups writes. None for a port that the implementation does not have.
    """

    clock: VirtualClock
    table: Table
    blobs: Blobs
    intents: Queue
    steps: Queue
    unit: Unit
    timers: ReadTimers
    groups: bool
    close: Callable[[], None] = nothing


def implementations() -> dict[str, Callable[[Path], Backend]]:
    """Factories by name; each takes an empty directory of its own."""
    from tests.contract.moto_backend import moto_backend

    return {"sqlite": sqlite, "memory": memory, "moto": moto_backend}


def sqlite(directory: Path) -> Backend:
    """The local ports on a fresh file."""
    clock = VirtualClock()
    database = Database(directory / "ductor.db")
    return Backend(
        clock=clock,
        table=SqliteTable(database),
        blobs=SqliteBlobs(database),
        intents=SqliteFifoQueue(database, QueueName.INTENTS, clock),
        steps=SqliteQueue(database, QueueName.STEPS, clock),
        unit=SqliteUnit(database),
        timers=SqliteTimers(database),
        groups=True,
        close=database.close,
    )


def memory(_: Path) -> Backend:
    """The in-memory ports."""
    clock = VirtualClock()
    return Backend(
        clock=clock,
        table=MemoryTable(),
        blobs=MemoryBlobs(),
        intents=MemoryQueue(QueueName.INTENTS, clock),
        steps=MemoryQueue(QueueName.STEPS, clock),
        unit=NullUnit(),
        timers=MemoryTimers(),
        groups=False,
    )
