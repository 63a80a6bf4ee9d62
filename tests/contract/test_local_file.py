"""The data file itself: what opens, what is refused, and what an outside failure does to a batch."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest

from ductor.adapters.local.database import Database
from ductor.adapters.local.fifo import SqliteFifoQueue
from ductor.adapters.local.schema import SCHEMA_VERSION, ForeignFileError
from ductor.adapters.local.table import SqliteTable
from ductor.adapters.local.unit import SqliteUnit
from ductor.ports import Item, Outgoing, Put, QueueName, UnavailableError
from ductor.testing.memory import VirtualClock


def put(table: SqliteTable, sk: str, body: bytes = b"{}") -> None:
    assert table.write([Put(Item(pk="p", sk=sk, body=body))]) is None


def stored(database: Database) -> str:
    return "".join(item.sk for item in SqliteTable(database).query("p").items)


def test_what_was_written_is_there_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "d.db"
    database = Database(path)
    put(SqliteTable(database), "a")
    database.close()
    assert stored(Database(path)) == "a"


def test_swallowed_ids_and_flights_outlive_the_process(tmp_path: Path) -> None:
    clock = VirtualClock()
    message = Outgoing(b"1", group="g", dedup_id="1")

    def reopened() -> SqliteFifoQueue:
        return SqliteFifoQueue(Database(tmp_path / "d.db"), QueueName.INTENTS, clock)

    reopened().send([message])
    (taken,) = reopened().receive(1, visibility_ms=1000)
    reopened().send([message])
    assert reopened().receive(1, visibility_ms=1000) == ()
    reopened().ack([taken.receipt])
    reopened().send([message])
    assert reopened().depth() == 0


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "d.db"
    put(SqliteTable(Database(path)), "a")
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


def test_commits_are_forced_to_disk(tmp_path: Path) -> None:
    database = Database(tmp_path / "d.db")
    for _ in range(2):
        with database.transaction() as connection:
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        with database.transaction(durable=False) as connection:
            assert connection.execute("PRAGMA synchronous").fetchone() == (1,)


def test_a_file_of_a_newer_layout_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "d.db"
    Database(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(ForeignFileError, match="newer Ductor"):
        Database(path)


def test_another_programs_file_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "d.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    with pytest.raises(ForeignFileError, match="another program"):
        Database(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]


def test_a_file_that_is_no_database_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "d.db"
    path.write_bytes(b"a letter to a friend\n" * 100)
    with pytest.raises(UnavailableError, match="not an SQLite file"):
        Database(path)
    assert path.read_bytes() == b"a letter to a friend\n" * 100


def test_a_directory_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="No such file"):
        Database(tmp_path / "missing" / "d.db")


def test_two_openers_of_a_new_file_share_it(tmp_path: Path) -> None:
    one, two = Database(tmp_path / "d.db"), Database(tmp_path / "d.db")
    put(SqliteTable(one), "a")
    put(SqliteTable(two), "b")
    assert stored(one) == stored(two) == "ab"


def test_a_file_locked_for_too_long_is_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "d.db"
    database = Database(path, busy_timeout_ms=10)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(UnavailableError, match="locked by another process"):
        put(SqliteTable(database), "a")
    assert stored(database) == ""
    other.execute("ROLLBACK")
    put(SqliteTable(database), "a")
    assert stored(database) == "a"


def test_a_full_disk_is_unavailable_and_nothing_is_half_written(tmp_path: Path) -> None:
    database = full(tmp_path)
    with pytest.raises(UnavailableError, match="disk is full"):
        SqliteTable(database).write([Put(Item(pk="p", sk=sk, body=b"x" * 100_000)) for sk in "bcd"])
    assert stored(database) == "a"
    put(SqliteTable(database), "e")
    assert stored(database) == "ae"


def test_a_batch_that_met_a_full_disk_is_lost_whole_even_if_the_failure_was_caught(tmp_path: Path) -> None:
    database = full(tmp_path)
    table, unit = SqliteTable(database), SqliteUnit(database)

    def batch() -> None:
        with unit.batch():
            put(table, "b")
            with suppress(UnavailableError), unit.part():
                put(table, "c", b"x" * 300_000)
            with suppress(UnavailableError):
                put(table, "d")

    with pytest.raises(UnavailableError, match="disk is full"):
        batch()
    assert stored(database) == "a"
    put(table, "e")
    assert stored(database) == "ae"


def full(directory: Path) -> Database:
    """A file with one row that can grow by a few pages only."""
    database = Database(directory / "d.db")
    put(SqliteTable(database), "a")
    with database.reading() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
    with database.transaction() as connection:
        connection.execute(f"PRAGMA max_page_count = {pages + 10}")
    return database


def test_a_closed_file_is_unavailable(tmp_path: Path) -> None:
    database = Database(tmp_path / "d.db")
    table = SqliteTable(database)
    put(table, "a")
    table.get("p", "a")
    database.close()
    with pytest.raises(UnavailableError, match="closed"):
        table.get("p", "a")
    with pytest.raises(UnavailableError, match="closed"):
        put(table, "b")


def test_expired_rows_are_purged_a_few_at_a_time(tmp_path: Path) -> None:
    database = Database(tmp_path / "d.db")
    table = SqliteTable(database)
    for sk, ttl in [("a", 10), ("b", 11), ("c", 12), ("d", None)]:
        table.write([Put(Item(pk="p", sk=sk, ttl=ttl))])
    assert table.purge(11_999, limit=1) == 1
    assert table.purge(11_999) == 1
    assert table.purge(11_999) == 0
    assert stored(database) == "cd"
