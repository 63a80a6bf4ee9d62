"""Schedules on the data file: two servers share it, either may be killed, and the file remembers what was decided."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.schedules.desk import MINUTE, Desk, ms

from ductor.adapters.local.database import Database
from ductor.adapters.local.table import SqliteTable
from ductor.adapters.local.unit import SqliteUnit
from ductor.app.library import Library
from ductor.app.scheduling import Scheduling
from ductor.app.trigger import Triggers

EVERY_MINUTE = {"cron": "* * * * *", "overlap_policy": "allow_all", "catch_up_window_ms": 60 * MINUTE}


class Servers:
    """Handles on one data file, each as a server of its own has it; `desk` works on the first."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ductor.db"
        self._databases: list[Database] = []
        self.desk = Desk(table=SqliteTable(self._opened()))

    def _opened(self) -> Database:
        database = Database(self._path)
        self._databases.append(database)
        return database

    def another(self) -> Scheduling:
        """The schedules of one more server."""
        database, desk = self._opened(), self.desk
        table = SqliteTable(database)
        library = Library(table)
        triggers = Triggers(
            table=table,
            payloads=desk.payloads,
            intents=desk.intents,
            unit=SqliteUnit(database),
            clock=desk.clock,
            ids=desk.ids,
            library=library,
        )
        return Scheduling(table=table, triggers=triggers, library=library, clock=desk.clock, ids=desk.ids)

    def close(self) -> None:
        for database in self._databases:
            database.close()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    made = Servers(tmp_path)
    yield made
    made.close()


def test_two_servers_on_one_file_fire_each_occurrence_once(servers: Servers) -> None:
    desk = servers.desk
    desk.publish(EVERY_MINUTE)
    desk.clock.set(ms("2026-12-01T10:40:00Z"))
    loops = [servers.another().loop, servers.another().loop]

    def drive(step: int) -> None:
        while loops[step].step() == 0:
            pass

    threads = [threading.Thread(target=drive, args=(place,)) for place in range(len(loops))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert desk.instants() == [f"2026-12-01T10:{minute:02}:00Z" for minute in range(1, 41)]
    assert desk.schedule().fired == 40


def test_a_server_that_starts_later_goes_on_where_the_file_says(servers: Servers) -> None:
    desk = servers.desk
    desk.publish(EVERY_MINUTE)
    desk.pass_time(2 * MINUTE)
    desk.clock.advance(3 * MINUTE)
    servers.another().firing.fire_due()
    assert desk.instants() == [f"2026-12-01T10:0{minute}:00Z" for minute in range(1, 6)]
