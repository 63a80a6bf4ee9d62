"""Threads that wait for their turn share one commit: none returns before it, none suffers for another's error."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from ductor.adapters.local.bell import MessageBell
from ductor.adapters.local.database import MAX_CHAIN, Database
from ductor.adapters.local.fifo import SqliteFifoQueue
from ductor.adapters.local.queue import SqliteQueue
from ductor.adapters.local.system import SystemClock
from ductor.adapters.local.table import SqliteTable
from ductor.adapters.local.unit import SqliteUnit
from ductor.ports import Item, Outgoing, Put, QueueName, UnavailableError

DEADLINE_S = 20.0


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "d.db")


def put(database: Database, sk: str, body: bytes = b"{}") -> None:
    assert SqliteTable(database).write([Put(Item(pk="p", sk=sk, body=body))]) is None


def stored(database: Database) -> str:
    return "".join(item.sk for item in SqliteTable(database).query("p").items)


def one_after_the_other(database: Database, *works: Callable[[], object]) -> list[Future[object]]:
    """Run each on a thread of its own; they all wait for the first, which writes `a`, in the order given."""
    with ThreadPoolExecutor(len(works)) as pool, SqliteUnit(database).batch():
        put(database, "a")
        futures = []
        for number, work in enumerate(works, 1):
            futures.append(pool.submit(work))
            wait_for_waiting(database, number)
    return futures


def wait_for_waiting(database: Database, threads: int) -> None:
    """Until that many threads wait for their turn to write."""
    deadline = time.monotonic() + DEADLINE_S
    while database._lock.waiting < threads:
        assert time.monotonic() < deadline
        threading.Event().wait(0.001)


def commits(database: Database) -> list[str]:
    """The commits from now on."""
    statements: list[str] = []
    database.writer().set_trace_callback(lambda sql: statements.append(sql) if sql == "COMMIT" else None)
    return statements


def test_threads_that_waited_return_after_one_commit_for_all(database: Database) -> None:
    other = Database(database.path)
    counted = commits(database)

    def work(sk: str) -> str:
        put(database, sk)
        return stored(other)

    futures = one_after_the_other(database, *[lambda sk=sk: work(sk) for sk in "bcd"])
    assert [future.result() for future in futures] == ["abcd"] * 3
    assert len(counted) == 1


def test_a_commit_carries_no_more_than_its_share(database: Database) -> None:
    counted = commits(database)
    one_after_the_other(database, *[lambda n=n: put(database, f"b{n}") for n in range(MAX_CHAIN)])
    assert len(counted) == 2


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_exception_undoes_its_own_thread_alone(database: Database, place: int) -> None:
    def fail() -> None:
        with SqliteUnit(database).batch():
            put(database, "x")
            raise LookupError

    works: list[Callable[[], object]] = [lambda: put(database, "b"), lambda: put(database, "c")]
    works.insert(place, fail)
    futures = one_after_the_other(database, *works)
    assert [type(future.exception()) for future in futures].count(LookupError) == 1
    assert [type(future.exception()) for future in futures].count(type(None)) == 2
    assert stored(database) == stored(Database(database.path)) == "abc"


def test_a_full_disk_fails_every_thread_that_shared_the_commit(database: Database) -> None:
    with database.transaction() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 10}")
    futures: list[Future[object]] = []

    def run() -> None:
        with ThreadPoolExecutor(2) as pool, SqliteUnit(database).batch():
            put(database, "a")
            futures.append(pool.submit(put, database, "b"))
            wait_for_waiting(database, 1)
            futures.append(pool.submit(put, database, "c", b"x" * 300_000))
            wait_for_waiting(database, 2)

    with pytest.raises(UnavailableError, match="disk is full"):
        run()
    for future in futures:
        with pytest.raises(UnavailableError, match="disk is full"):
            future.result()
    assert stored(database) == ""
    put(database, "e")
    assert stored(database) == "e"


def test_the_bell_rings_for_any_of_its_queues_and_not_for_nothing(database: Database) -> None:
    clock = SystemClock()
    intents = SqliteFifoQueue(database, QueueName.INTENTS, clock)
    steps = SqliteQueue(database, QueueName.STEPS, clock)
    bell = MessageBell(database, [intents, steps])
    started = time.monotonic()
    bell.wait(20)
    assert time.monotonic() - started >= 0.02
    ringer = threading.Thread(target=lambda: steps.send([Outgoing(b"")]))
    ringer.start()
    bell.wait(int(DEADLINE_S * 1000))
    ringer.join(DEADLINE_S)
    assert len(steps.receive(1, visibility_ms=1000)) == 1
    assert time.monotonic() - started < DEADLINE_S


def test_what_is_released_comes_again_in_its_order(database: Database) -> None:
    queue = SqliteFifoQueue(database, QueueName.INTENTS, SystemClock())
    queue.send([Outgoing(body, group="g", dedup_id=body.decode()) for body in (b"1", b"2", b"3")])
    queue.receive(2, visibility_ms=60_000)
    assert queue.receive(10, visibility_ms=60_000) == ()
    queue.release()
    again = queue.receive(10, visibility_ms=60_000)
    assert [(m.body, m.receives) for m in again] == [(b"1", 2), (b"2", 2), (b"3", 1)]
