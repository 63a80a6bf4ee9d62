"""Rule 11: with `skip` an occurrence, its run and the pointer to the active run are one write, upon the old pointer."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.schedules.desk import MINUTE, Desk
from tests.unit.schedules.test_firing import Racing, Watched

from ductor.app.schedule_firing import OVERDUE_MS
from ductor.app.schedule_rows import Decided
from ductor.ports import UnavailableError

SKIP: dict[str, Any] = {"cron": "* * * * *", "overlap_policy": "skip"}


def scheduled(desk: Desk) -> Desk:
    desk.publish(SKIP)
    desk.clock.advance(MINUTE)
    return desk


@pytest.mark.parametrize("moment", ["before", "after"])
def test_rule_11_a_death_around_the_write_leaves_one_active_run(moment: str) -> None:
    table = Watched()
    desk = scheduled(Desk(table=table))
    table.fail = moment
    with pytest.raises(UnavailableError):
        desk.fire()
    desk.fire()
    desk.pass_time(3 * MINUTE)
    assert len(desk.started()) == 1
    assert [one.outcome for one in desk.decided()] == [Decided.FIRED, *[Decided.SKIPPED] * 3]
    assert desk.schedule().active_run == desk.started()[0].run_id


def test_rule_11_of_two_processes_with_different_clocks_one_starts_a_run() -> None:
    table = Racing()
    desk = scheduled(Desk(table=table))

    def ahead() -> None:
        """Somebody whose clock is a minute ahead decides this occurrence and the next in between."""
        desk.clock.advance(MINUTE)
        desk.firing.fire_due()

    table.meanwhile = ahead
    desk.firing.fire_due()
    assert [one.outcome for one in desk.decided()].count(Decided.FIRED) == 1
    assert len(desk.started()) == 1


def test_rule_11_a_run_started_by_hand_is_what_the_next_occurrence_looks_at() -> None:
    desk = Desk()
    desk.publish(SKIP)
    desk.scheduling.schedules.trigger_now(desk.caller, "hello_world")
    desk.pass_time(MINUTE)
    assert desk.outcomes()[-1] == ("10:01", "skipped")
    desk.end_all()
    desk.pass_time(MINUTE)
    assert desk.outcomes()[-1] == ("10:02", "fired")


def test_rule_11_the_sweeper_fires_an_instant_that_nobody_decided_and_no_second_run() -> None:
    desk = Desk()
    desk.publish({**SKIP, "catch_up_window_ms": 10 * MINUTE})
    desk.clock.advance(2 * MINUTE + OVERDUE_MS)
    assert desk.firing.fire_due(OVERDUE_MS) == [desk.key]
    assert desk.outcomes()[:2] == [("10:01", "fired"), ("10:02", "skipped")]
    assert len(desk.started()) == 1
    assert desk.firing.fire_due(OVERDUE_MS) == []
