"""`kill -9` at any moment: everything that was reported as done is there, and nothing is half there."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ductor.adapters.local.database import Database
from ductor.adapters.local.fifo import SqliteFifoQueue
from ductor.adapters.local.table import SqliteTable
from ductor.adapters.local.timers import SqliteTimers
from ductor.ports import QueueName
from ductor.testing.memory import VirtualClock

ROWS = 10

# Moves one message per batch and writes ten rows with it, in two writes; says each batch that has returned.
WRITER = """
import sys
from pathlib import Path

from ductor.adapters.local.database import Database
from ductor.adapters.local.fifo import SqliteFifoQueue
from ductor.adapters.local.table import SqliteTable
from ductor.adapters.local.timers import SqliteTimers
from ductor.adapters.local.unit import SqliteUnit
from ductor.ports import Item, Outgoing, Put, QueueName
from ductor.testing.memory import VirtualClock

database = Database(Path(sys.argv[1]))
clock = VirtualClock()
table, unit, timers = SqliteTable(database), SqliteUnit(database), SqliteTimers(database)
queue = SqliteFifoQueue(database, QueueName.INTENTS, clock)
queue.send([Outgoing(b"0", group="g", dedup_id="0")])
number = 0
while True:
    (message,) = queue.receive(10, visibility_ms=1000)
    with unit.batch():
        rows = [Put(Item(pk=f"batch#{number}", sk=str(row), body=b"x" * 500)) for row in range(10)]
        table.write(rows[:5])
        with unit.part():
            table.write(rows[5:])
        timers.arm(f"run-{number}", number)
        queue.ack([message.receipt])
        queue.send([Outgoing(str(number + 1).encode(), group="g", dedup_id=str(number + 1))])
    print(number, flush=True)
    number += 1
"""


@pytest.mark.parametrize("seed", range(6))
def test_a_killed_writer_loses_nothing_it_reported_and_leaves_nothing_half(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "d.db"
    chance = random.Random(seed)
    reported = run_until_killed(path, after=chance.randint(1, 120), seconds=chance.random() * 0.004)

    clock = VirtualClock()
    database = Database(path)
    queue, timers = SqliteFifoQueue(database, QueueName.INTENTS, clock), SqliteTimers(database)
    clock.advance(1000)
    (message,) = queue.receive(10, visibility_ms=1000)
    done = int(message.body)
    assert done in (reported + 1, reported + 2), "the last batch may have committed without having been reported"
    table = SqliteTable(database)
    assert [len(table.query(f"batch#{number}").items) for number in range(done + 1)] == [ROWS] * done + [0]
    assert [at for _, at in timers.due(10**9, limit=10**6)] == list(range(done))


def run_until_killed(path: Path, *, after: int, seconds: float) -> int:
    """The last batch that the writer reported before it was killed, so many reports and seconds after its start."""
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for _ in range(after):
            assert writer.stdout.readline()
        threading.Event().wait(seconds)  # whatever the writer is doing then
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().splitlines()
    assert writer.returncode == -signal.SIGKILL
    return after - 1 + len(rest)
