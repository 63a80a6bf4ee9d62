"""Threads and processes on one data file: nobody meets a lock, nothing is lost, and waiters wake at commit."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ductor.adapters.local.database import Database
from ductor.adapters.local.fifo import SqliteFifoQueue
from ductor.adapters.local.queue import SqliteQueue
from ductor.adapters.local.signals import FairLock
from ductor.adapters.local.system import SystemClock, SystemIds
from ductor.adapters.local.table import SqliteTable
from ductor.adapters.local.timers import SqliteTimers
from ductor.adapters.local.unit import SqliteUnit
from ductor.ports import Item, Message, Outgoing, Put, QueueName

THREADS = 8
ROUNDS = 25
DEADLINE_S = 20.0


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "d.db")


def intents(database: Database) -> SqliteFifoQueue:
    return SqliteFifoQueue(database, QueueName.INTENTS, SystemClock())


def steps(database: Database) -> SqliteQueue:
    return SqliteQueue(database, QueueName.STEPS, SystemClock())


def on_threads(work: Callable[[int], object], threads: int = THREADS) -> None:
    """Run `work(n)` on that many threads; the first exception is raised here."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))


def increment(table: SqliteTable, sk: str) -> None:
    """Add one to a row's version, against others doing the same."""
    while True:
        current = table.get("p", sk)
        assert current is not None
        if table.write([Put(Item(pk="p", sk=sk, version=current.version + 1), current.version)]) is None:
            return


def test_threads_writing_one_row_lose_no_write(database: Database) -> None:
    table = SqliteTable(database)
    table.write([Put(Item(pk="p", sk="a"))])

    def work(_: int) -> None:
        for _ in range(ROUNDS):
            increment(table, "a")

    on_threads(work)
    row = table.get("p", "a")
    assert row is not None
    assert row.version == 1 + THREADS * ROUNDS


def test_batches_of_threads_do_not_mix(database: Database) -> None:
    table, unit, queue = SqliteTable(database), SqliteUnit(database), intents(database)
    table.write([Put(Item(pk="p", sk="a"))])

    def work(number: int) -> None:
        for turn in range(ROUNDS):
            try:
                with unit.batch():
                    increment(table, "a")
                    queue.send([Outgoing(b"", group=str(number), dedup_id=str(turn))])
                    if turn % 5 == 4:
                        raise LookupError
            except LookupError:
                pass

    on_threads(work)
    row = table.get("p", "a")
    assert row is not None
    assert row.version == 1 + THREADS * ROUNDS * 4 // 5
    assert len(queue.receive(10_000, visibility_ms=1000)) == THREADS * ROUNDS * 4 // 5


def test_consumers_get_each_message_once_and_each_group_in_order(database: Database) -> None:
    queue = intents(database)
    seen: list[Message] = []

    def produce(number: int) -> None:
        for turn in range(ROUNDS):
            queue.send([Outgoing(str(turn).encode(), group=f"g{number % 3}-{number}", dedup_id=str(turn))])

    def consume() -> None:
        deadline = time.monotonic() + DEADLINE_S
        while len(seen) < THREADS // 2 * ROUNDS and time.monotonic() < deadline:
            messages = queue.receive(7, visibility_ms=60_000, wait_ms=100)
            seen.extend(messages)
            queue.ack([m.receipt for m in messages])

    on_threads(lambda number: consume() if number % 2 else produce(number))
    assert len(seen) == THREADS // 2 * ROUNDS
    for group in {m.group for m in seen}:
        assert [int(m.body) for m in seen if m.group == group] == list(range(ROUNDS))


def test_a_waiting_receiver_wakes_at_commit_and_not_before(database: Database) -> None:
    queue, unit = steps(database), SqliteUnit(database)
    inside, received = threading.Event(), threading.Event()

    def receive() -> None:
        inside.set()
        assert len(queue.receive(1, visibility_ms=1000, wait_ms=int(DEADLINE_S * 1000))) == 1
        received.set()

    waiter = threading.Thread(target=receive)
    waiter.start()
    assert inside.wait(DEADLINE_S)
    with unit.batch():
        queue.send([Outgoing(b"")])
        assert not received.wait(0.01)
    assert received.wait(DEADLINE_S)
    waiter.join(DEADLINE_S)


def test_an_acknowledgement_wakes_the_receiver_of_the_next_message_of_the_group(database: Database) -> None:
    queue = intents(database)
    signal = database.signal(QueueName.INTENTS)
    queue.send([Outgoing(b"1", group="g", dedup_id="1"), Outgoing(b"2", group="g", dedup_id="2")])
    (first,) = queue.receive(1, visibility_ms=60_000)
    seen = signal.count
    queue.ack([first.receipt])
    assert signal.count == seen + 1


def test_a_receive_without_messages_ends_when_its_wait_is_over(database: Database) -> None:
    started = time.monotonic()
    assert steps(database).receive(1, visibility_ms=1000, wait_ms=30) == ()
    assert 0.03 <= time.monotonic() - started < DEADLINE_S


def test_a_receive_inside_a_batch_never_waits(database: Database) -> None:
    with SqliteUnit(database).batch():
        assert steps(database).receive(1, visibility_ms=1000, wait_ms=10**9) == ()


def test_a_delayed_message_ends_the_wait_when_its_time_comes(database: Database) -> None:
    queue = steps(database)
    queue.send([Outgoing(b"", delay_ms=20)])
    assert len(queue.receive(1, visibility_ms=1000, wait_ms=int(DEADLINE_S * 1000))) == 1


def test_arming_an_earlier_timer_ends_the_wait_for_a_later_one(database: Database) -> None:
    timers = SqliteTimers(database)
    timers.arm("late", 10**6)
    done = threading.Event()

    def wait() -> None:
        while timers.next_at() != 5:
            timers.wait(0, int(DEADLINE_S * 1000))
        done.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    timers.arm("later", 2 * 10**6)
    timers.arm("early", 5)
    assert done.wait(DEADLINE_S)
    waiter.join(DEADLINE_S)


def test_the_write_lock_is_passed_on_in_order() -> None:
    lock, order = FairLock(), list[int]()
    lock.acquire()
    threads = []
    for number in range(5):

        def work(number: int = number) -> None:
            lock.acquire()
            order.append(number)
            lock.release()

        threads.append(threading.Thread(target=work))
        threads[-1].start()
        deadline = time.monotonic() + DEADLINE_S
        while lock.waiting <= number and time.monotonic() < deadline:
            threading.Event().wait(0.001)
    lock.release()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert order == list(range(5))


CONSUMER = """
import sys
from pathlib import Path

from ductor.adapters.local.database import Database
from ductor.adapters.local.fifo import SqliteFifoQueue
from ductor.adapters.local.system import SystemClock
from ductor.ports import QueueName

queue = SqliteFifoQueue(Database(Path(sys.argv[1])), QueueName.INTENTS, SystemClock())
print("ready", flush=True)
while messages := queue.receive(3, visibility_ms=60_000, wait_ms=10_000):
    queue.ack([message.receipt for message in messages])
    for message in messages:
        print(message.group, message.body.decode(), flush=True)
    if any(message.body == b"end" for message in messages):
        break
"""


def test_two_processes_share_the_messages_of_a_third(database: Database) -> None:
    queue = intents(database)
    command = [sys.executable, "-c", CONSUMER, str(database.path)]
    consumers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [consumer.stdout for consumer in consumers if consumer.stdout is not None]
    assert [output.readline() for output in outputs] == ["ready\n"] * 2
    for turn in range(ROUNDS):
        queue.send([Outgoing(str(turn).encode(), group=group, dedup_id=str(turn)) for group in "abcd"])
    wait_until_empty(queue)
    for number, _ in enumerate(consumers):
        queue.send([Outgoing(b"end", group="end", dedup_id=f"end{number}")])
        wait_until_empty(queue)
    lines = [line.split() for output in outputs for line in output.read().splitlines()]
    assert sorted(line for line in lines if line[0] != "end") == sorted(
        [group, str(turn)] for group in "abcd" for turn in range(ROUNDS)
    )
    assert [consumer.wait(DEADLINE_S) for consumer in consumers] == [0, 0]


def wait_until_empty(queue: SqliteFifoQueue) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while queue.depth():
        assert time.monotonic() < deadline, "messages are left"
        threading.Event().wait(0.005)


def test_uuids_of_many_threads_are_distinct_version_7_and_in_order_per_thread() -> None:
    ids = SystemIds()
    made: list[list[str]] = [[] for _ in range(4)]

    def work(number: int) -> None:
        made[number] = [ids.uuid() for _ in range(2000)]

    on_threads(work, 4)
    assert all(series == sorted(series) for series in made)
    everything = {uuid for series in made for uuid in series}
    assert len(everything) == 8000
    assert all(uuid[14] == "7" and uuid[19] in "89ab" and len(uuid) == 36 for uuid in everything)


def test_threads_that_wait_share_one_commit_and_a_failed_one_undoes_only_itself(database: Database) -> None:
    table, unit = SqliteTable(database), SqliteUnit(database)
    commits: list[str] = []
    database.writer().set_trace_callback(lambda text: commits.append(text) if text == "COMMIT" else None)

    def work(number: int) -> None:
        for turn in range(ROUNDS):
            try:
                with unit.batch():
                    table.write([Put(Item(pk=f"t{number}", sk=f"{turn:03d}"))])
                    if turn % 5 == 4:
                        raise ValueError("undo this one")
            except ValueError:
                continue

    on_threads(work)
    stored = [len(table.query(f"t{number}").items) for number in range(THREADS)]
    assert stored == [ROUNDS - ROUNDS // 5] * THREADS
    assert len(commits) < THREADS * ROUNDS


def test_a_close_commits_what_waits_for_the_next_thread(tmp_path: Path) -> None:
    database = Database(tmp_path / "d.db")
    table = SqliteTable(database)
    began, closing = threading.Event(), threading.Event()

    def write() -> None:
        with SqliteUnit(database).batch():
            table.write([Put(Item(pk="p", sk="a"))])
            began.set()
            closing.wait(DEADLINE_S)
            deadline = time.monotonic() + DEADLINE_S
            while not database.contended and time.monotonic() < deadline:
                threading.Event().wait(0.001)

    writer = threading.Thread(target=write)
    writer.start()
    began.wait(DEADLINE_S)
    closer = threading.Thread(target=database.close)
    closer.start()
    closing.set()
    writer.join(DEADLINE_S)
    closer.join(DEADLINE_S)
    assert not writer.is_alive()
    assert SqliteTable(Database(tmp_path / "d.db")).get("p", "a") is not None
