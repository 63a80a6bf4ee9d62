"""Schedules in a world where everything fails: each occurrence of the timetable in force is fired exactly once.

Two processes fire, versions come and go, every call of the table may fail before or after it happened, and the process
may die there. What must come out follows from the rows as they were between the faults.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.unit.schedules.desk import MINUTE, Desk

from ductor.app.schedule_rows import Schedule, read_schedule
from ductor.model.errors import RefusedError
from ductor.ports import UnavailableError
from ductor.schedules import preview
from ductor.testing.chaos import Chances, Chaos, Crash
from ductor.testing.faulty import FaultyTable
from ductor.testing.ledger import Ledger
from ductor.testing.memory import MemoryTable

SEEDS = range(25)
STEPS = 60
CHANCES = Chances(crash_call=0.03, lost_reply=0.05, unavailable=0.05, meanwhile=0.3)
CRONS = ("* * * * *", "*/2 * * * *", "*/5 * * * *", "3-59/7 * * * *")


class Stormy:
    """One family under a faulty table, and what its schedule must have fired by now."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.inner = MemoryTable()
        self.chaos = Chaos(self.rng, CHANCES)
        self.chaos.on = False
        self.desk = Desk(table=FaultyTable(self.inner, self.chaos, Ledger()))
        self.expected: set[int] = set()
        self.chaos.meanwhile = self._fire_meanwhile
        self._nested = False

    def _fire_meanwhile(self) -> None:
        """Another process, in the middle of whatever this one does."""
        if not self._nested:
            self._nested = True
            try:
                self.desk.firing.fire_due()
            except (UnavailableError, Crash):
                pass
            finally:
                self._nested = False

    def row(self) -> Schedule | None:
        known = read_schedule(self.inner, self.desk.key)
        return known[0] if known is not None else None

    def step(self) -> None:
        self._try(self.rng.choice((self._publish, self._publish, self._fire, self._fire, self._archive, self._pause)))
        self._pass_time(self.rng.choice((1_000, 20_000, MINUTE, 3 * MINUTE)))
        self._try(self._fire)

    def _try(self, what: Any) -> None:
        self.chaos.on = True
        try:
            what()
        except (UnavailableError, Crash, RefusedError):
            pass
        finally:
            self.chaos.on = False

    def _pass_time(self, milliseconds: int) -> None:
        now, row = self.desk.clock.now_ms(), self.row()
        self.desk.clock.advance(milliseconds)
        if row is not None and row.live:
            self.expected |= {at for at in preview(row.spec, now, 10) if at <= now + milliseconds}

    def _fire(self) -> None:
        self.desk.firing.fire_due()

    def _publish(self) -> None:
        schedule = {"cron": self.rng.choice(CRONS), "overlap_policy": "allow_all", "catch_up_window_ms": 36_000_000}
        self.desk.publish(schedule, title=str(self.rng.random()))

    def _calm(self) -> None:
        """Decide what has come, without faults: what a pause or an archival would drop."""
        faults, self.chaos.on = self.chaos.on, False
        self.desk.fire()
        self.chaos.on = faults

    def _archive(self) -> None:
        self._calm()
        row = self.row()
        if row is not None and row.definition_id:
            self.desk.definitions.archive(self.desk.caller, row.definition_id)

    def _pause(self) -> None:
        self._calm()
        schedules = self.desk.scheduling.schedules
        operate = self.rng.choice((schedules.pause, schedules.resume))
        operate(self.desk.caller, "hello_world")


@pytest.mark.parametrize("seed", SEEDS)
def test_each_occurrence_of_the_timetable_in_force_fires_exactly_once(seed: int) -> None:
    storm = Stormy(seed)
    storm.desk.publish({"cron": "* * * * *", "overlap_policy": "allow_all", "catch_up_window_ms": 36_000_000})
    for _ in range(STEPS):
        storm.step()
    storm.desk.fire()
    fired = [run.origin.scheduled_at for run in storm.desk.started()]
    assert fired == sorted(storm.expected)
    assert len({run.run_id for run in storm.desk.started()}) == len(fired)
