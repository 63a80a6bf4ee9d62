"""Publications move the schedule: no occurrence is lost or fired twice, and only the newest version fires."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.schedules.desk import MINUTE, Desk, ms

from ductor.app.environments import EnvironmentChanges
from ductor.app.schedule_rows import UNTOLD, next_due, read_schedule
from ductor.model.recurrence import Calendar, Recurrence, ScheduleKey
from ductor.ports import Conflict, Index, UnavailableError
from ductor.testing.memory import MemoryTable

EVERY_TWO = {"cron": "*/2 * * * *", "overlap_policy": "allow_all"}
EVERY_FIVE = {"cron": "*/5 * * * *", "overlap_policy": "allow_all"}


def test_the_same_timetable_published_again_right_before_an_occurrence_fires_it_once_on_the_new_version() -> None:
    desk = Desk("2026-12-01T10:00:30Z")
    desk.publish(EVERY_TWO)
    desk.pass_time(80_000, step=1_000)
    assert desk.clock.now_ms() == ms("2026-12-01T10:01:50Z")
    second = desk.publish(EVERY_TWO, title="Two")
    desk.pass_time(60_000, step=1_000)
    assert [(run.origin.definition_id, run.origin.scheduled_at) for run in desk.started()] == [
        (second, ms("2026-12-01T10:02:00Z"))
    ]


def test_only_the_newest_timetable_fires_and_after_an_archival_none() -> None:
    desk = Desk("2026-12-01T10:00:30Z")
    desk.publish(EVERY_TWO)
    newest = desk.publish(EVERY_FIVE)
    desk.pass_time(11 * MINUTE)
    assert desk.instants() == ["2026-12-01T10:05:00Z", "2026-12-01T10:10:00Z"]
    desk.definitions.archive(desk.caller, newest)
    desk.pass_time(30 * MINUTE)
    assert len(desk.started()) == 2
    assert next_due(desk.table) is None


def test_archiving_an_older_version_changes_nothing() -> None:
    desk = Desk()
    first = desk.publish(EVERY_TWO)
    desk.publish(EVERY_TWO)
    desk.definitions.archive(desk.caller, first)
    desk.pass_time(2 * MINUTE)
    assert len(desk.started()) == 1


def test_an_occurrence_that_had_come_by_the_old_timetable_is_still_fired_by_the_new_version() -> None:
    desk = Desk("2026-12-01T10:00:30Z")
    desk.publish(EVERY_TWO)
    desk.clock.set(ms("2026-12-01T10:02:00Z"))  # nobody has looked yet
    second = desk.publish(EVERY_FIVE)
    desk.pass_time(4 * MINUTE)
    assert desk.instants() == ["2026-12-01T10:02:00Z", "2026-12-01T10:05:00Z"]
    assert {run.origin.definition_id for run in desk.started()} == {second}


def test_a_new_timetable_does_not_fire_for_the_past_however_long_its_window() -> None:
    desk = Desk("2026-12-01T10:00:30Z")
    desk.publish({"cron": "0 9 * * *"})
    desk.clock.set(ms("2026-12-01T15:00:00Z"))
    desk.publish({"cron": "0 12 * * *", "catch_up_window_ms": 86_400_000})
    desk.pass_time(MINUTE)
    assert desk.started() == []


def test_a_version_without_a_schedule_ends_it_and_a_later_one_begins_anew() -> None:
    desk = Desk("2026-12-01T10:00:30Z")
    desk.publish(EVERY_TWO)
    desk.definitions.edit(
        desk.caller,
        desk._draft,
        {"schedule": None, "expected_draft_revision": desk.definitions.get(desk.caller, desk._draft).draft_revision},
    )
    desk.definitions.publish(desk.caller, desk._draft)
    desk.pass_time(5 * MINUTE)
    assert desk.started() == []
    desk.publish(EVERY_TWO)
    desk.pass_time(2 * MINUTE)
    assert desk.instants() == ["2026-12-01T10:06:00Z"]


def test_each_environment_has_the_schedule_of_its_own_newest_version() -> None:
    desk = Desk()
    desk.admin.environments.create(desk.caller, "staging", EnvironmentChanges())
    desk.publish(EVERY_TWO)
    desk.publish(EVERY_FIVE, environment="staging")
    desk.pass_time(5 * MINUTE)
    assert [(run.origin.environment, run.origin.definition_version) for run in desk.started()] == [
        ("default", 1),
        ("default", 1),
        ("staging", 2),
    ]


def test_what_an_operator_paused_a_publication_does_not_resume() -> None:
    desk = Desk()
    desk.publish(EVERY_TWO)
    desk.scheduling.schedules.pause(desk.caller, "hello_world")
    desk.publish(EVERY_TWO, title="Two")
    desk.pass_time(10 * MINUTE)
    assert desk.started() == []


def test_what_a_document_paused_the_next_one_may_resume() -> None:
    desk = Desk("2026-12-01T10:00:30Z")
    desk.publish({**EVERY_TWO, "paused": True})
    desk.pass_time(5 * MINUTE)
    assert desk.started() == []
    desk.publish(EVERY_TWO)
    desk.pass_time(2 * MINUTE)
    assert desk.instants() == ["2026-12-01T10:06:00Z"]


def test_a_publication_that_fails_leaves_the_schedule_as_it_was() -> None:
    class Failing(MemoryTable):
        broken = False

        def write(self, ops: Any) -> Conflict | None:
            if self.broken:
                raise UnavailableError("away")
            return super().write(ops)

    table = Failing()
    desk = Desk("2026-12-01T10:00:30Z", table=table)
    first = desk.publish(EVERY_TWO)
    draft = desk.definitions.get(desk.caller, desk._draft)
    changes = {"schedule": EVERY_FIVE, "expected_draft_revision": draft.draft_revision}
    desk.definitions.edit(desk.caller, draft.id, changes)
    table.broken = True
    with pytest.raises(UnavailableError):
        desk.definitions.publish(desk.caller, draft.id)
    table.broken = False
    desk.pass_time(2 * MINUTE)
    assert [run.origin.definition_id for run in desk.started()] == [first]


class Outside:
    """An outside scheduler that remembers what it was told, and can be away."""

    def __init__(self) -> None:
        self.calls: dict[ScheduleKey, Recurrence] = {}
        self.away = False

    def put(self, key: ScheduleKey, recurrence: Recurrence) -> None:
        self._reached()
        self.calls[key] = recurrence

    def remove(self, key: ScheduleKey) -> None:
        self._reached()
        self.calls.pop(key, None)

    def _reached(self) -> None:
        if self.away:
            raise UnavailableError("away")


def untold(desk: Desk) -> int:
    return len(desk.table.query(UNTOLD, index=Index.I2).items)


def test_the_outside_scheduler_is_told_of_every_move() -> None:
    outside = Outside()
    desk = Desk(outside=outside)
    version = desk.publish(EVERY_TWO)
    minutes = tuple(range(0, 60, 2))
    assert outside.calls == {desk.key: Recurrence((Calendar(minutes=minutes),))}
    desk.scheduling.schedules.pause(desk.caller, "hello_world")
    assert outside.calls == {}
    desk.scheduling.schedules.resume(desk.caller, "hello_world")
    assert list(outside.calls) == [desk.key]
    desk.definitions.archive(desk.caller, version)
    assert outside.calls == {}
    assert untold(desk) == 0


def test_what_the_outside_scheduler_was_not_told_the_sweeper_tells_it() -> None:
    outside = Outside()
    desk = Desk(outside=outside)
    outside.away = True
    desk.publish(EVERY_TWO)
    assert not desk.schedule().told
    assert untold(desk) == 1
    desk.firing.sweep()
    assert untold(desk) == 1
    outside.away = False
    desk.firing.sweep()
    assert list(outside.calls) == [desk.key]
    assert desk.schedule().told
    assert untold(desk) == 0


def test_occurrences_fire_while_the_outside_scheduler_knows_nothing() -> None:
    outside = Outside()
    desk = Desk("2026-12-01T10:00:30Z", outside=outside)
    outside.away = True
    desk.publish(EVERY_FIVE)
    for _ in range(15):
        desk.clock.advance(MINUTE)
        desk.firing.sweep()
    assert desk.instants() == ["2026-12-01T10:05:00Z", "2026-12-01T10:10:00Z"]


def test_a_schedule_that_was_removed_outside_by_hand_is_put_back_once_it_is_missed() -> None:
    outside = Outside()
    desk = Desk("2026-12-01T10:00:30Z", outside=outside)
    desk.publish(EVERY_FIVE)
    outside.calls.clear()
    desk.clock.set(ms("2026-12-01T10:08:00Z"))
    desk.firing.sweep()
    assert list(outside.calls) == [desk.key]
    assert desk.instants() == ["2026-12-01T10:05:00Z"]


def test_after_the_last_occurrence_nobody_calls_any_more() -> None:
    outside = Outside()
    desk = Desk("2026-12-01T10:00:30Z", outside=outside)
    desk.publish({**EVERY_FIVE, "end_at": "2026-12-01T10:07:00Z"})
    desk.clock.set(ms("2026-12-01T10:05:10Z"))
    desk.firing.advance(desk.key, ms("2026-12-01T10:05:00Z"))
    desk.firing.sweep()
    assert outside.calls == {}


def test_a_family_without_a_schedule_has_no_row() -> None:
    desk = Desk()
    desk.publish(None)
    assert read_schedule(desk.table, desk.key) is None


def test_of_two_changes_told_in_the_wrong_order_the_last_one_holds() -> None:
    outside = Outside()
    desk = Desk(outside=outside)
    desk.publish(EVERY_TWO)

    class Slow(Outside):
        """Somebody else publishes and tells while this one is on its way."""

        def put(self, key: ScheduleKey, recurrence: Recurrence) -> None:
            if not self.calls:
                self.calls[key] = recurrence
                desk.publish(EVERY_FIVE)
            super().put(key, recurrence)

    slow = Slow()
    desk.called_by(slow)
    desk.publish(EVERY_TWO, title="Two")
    assert slow.calls[desk.key].calendars[0].minutes == tuple(range(0, 60, 5))
    assert desk.schedule().told
