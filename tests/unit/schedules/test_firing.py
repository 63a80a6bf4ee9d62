"""Firing: each occurrence is decided once, in order, whoever calls, how late and how often."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from tests.unit.app.world import HELLO
from tests.unit.schedules.desk import HOUR, MINUTE, Desk, ms, shown

from ductor.app.environments import EnvironmentChanges
from ductor.app.refusals import aborted
from ductor.app.schedule_firing import OVERDUE_MS, occurrence_run_id
from ductor.app.schedule_rows import jitter, next_due, read_schedule, schedule_put
from ductor.model.lineage import SUCCESSOR_DUTY, Successor
from ductor.model.payload import NULL, Inline
from ductor.model.recurrence import ScheduleKey
from ductor.ports import Conflict, Op, UnavailableError
from ductor.testing.memory import MemoryTable

EVERY_MINUTE = {"cron": "* * * * *", "overlap_policy": "allow_all"}


def test_an_occurrence_starts_one_run_of_the_newest_version_that_knows_its_instant() -> None:
    desk = Desk()
    version = desk.publish({"cron": "0 11 * * *", "input": {"for": "morning"}})
    desk.pass_time(2 * HOUR)
    (run,) = desk.started()
    assert run.origin.definition_id == version
    assert run.origin.scheduled_at == ms("2026-12-01T11:00:00Z")
    assert run.origin.input == Inline({"for": "morning"})
    assert run.origin.created_by == "schedule"
    assert [intent.run_id for intent in desk.sent()] == [run.run_id]


def test_nothing_fires_before_its_instant() -> None:
    desk = Desk()
    desk.publish({"cron": "1 10 * * *"})
    desk.pass_time(29_999, step=29_999)
    assert desk.started() == []
    desk.pass_time(1)
    assert desk.instants() == ["2026-12-01T10:01:00Z"]


def test_the_loop_waits_until_the_next_occurrence_and_no_longer_than_a_second() -> None:
    desk = Desk("2026-12-01T10:00:58.300Z")
    assert desk.scheduling.loop.step() == 1_000
    desk.publish({"cron": "1 10 * * *"})
    assert desk.scheduling.loop.step() == 1_000
    desk.clock.advance(1_000)
    assert desk.scheduling.loop.step() == 700


def test_firing_again_for_the_same_instant_starts_nothing() -> None:
    desk = Desk()
    desk.publish(EVERY_MINUTE)
    desk.clock.advance(MINUTE)
    for _ in range(3):
        assert desk.firing.advance(desk.key, ms("2026-12-01T10:01:00Z")) == 0
    assert desk.instants() == ["2026-12-01T10:01:00Z"]


def test_a_late_call_decides_what_came_before_it_first_and_an_early_one_of_the_past_nothing() -> None:
    desk = Desk()
    desk.publish(EVERY_MINUTE)
    desk.clock.set(ms("2026-12-01T10:02:00Z"))
    desk.firing.advance(desk.key, ms("2026-12-01T10:02:00Z"))
    desk.firing.advance(desk.key, ms("2026-12-01T10:01:00Z"))
    assert desk.instants() == ["2026-12-01T10:01:00Z", "2026-12-01T10:02:00Z"]


def test_a_call_says_how_far_to_go_not_the_clock() -> None:
    desk = Desk()
    desk.publish(EVERY_MINUTE)
    desk.clock.set(ms("2026-12-01T10:02:00Z"))
    desk.firing.advance(desk.key, ms("2026-12-01T10:01:00Z"))
    assert desk.instants() == ["2026-12-01T10:01:00Z"]


@pytest.mark.parametrize("status", ["waiting", "paused"])
def test_skip_drops_occurrences_while_a_run_is_active_in_any_state_and_shows_them(status: str) -> None:
    desk = Desk()
    desk.publish({"cron": "* * * * *"})
    desk.pass_time(MINUTE)
    (first,) = desk.started()
    state = desk.header(first.run_id)
    state.paused_at = desk.clock.now_ms() if status == "paused" else 0
    desk.store(state)
    desk.pass_time(3 * MINUTE)
    assert len(desk.started()) == 1
    desk.end_run(first.run_id)
    desk.pass_time(MINUTE)
    assert desk.outcomes() == [
        ("10:01", "fired"),
        ("10:02", "skipped"),
        ("10:03", "skipped"),
        ("10:04", "skipped"),
        ("10:05", "fired"),
    ]
    assert {one.run_id for one in desk.decided()[1:4]} == {first.run_id}
    assert (desk.schedule().fired, desk.schedule().skipped) == (2, 3)


def test_allow_all_starts_one_run_per_occurrence_whatever_runs() -> None:
    desk = Desk()
    desk.publish(EVERY_MINUTE)
    desk.pass_time(3 * MINUTE)
    assert len(desk.started()) == 3


def test_a_run_that_went_on_as_another_one_is_active_until_that_one_ends() -> None:
    desk = Desk()
    desk.publish({"cron": "* * * * *"})
    desk.pass_time(MINUTE)
    (first,) = desk.started()
    desk.end_run(first.run_id)
    state = desk.header(first.run_id)
    state.successor, state.duties = Successor("next", NULL), (SUCCESSOR_DUTY,)
    desk.store(state)
    desk.pass_time(MINUTE)
    assert desk.outcomes()[-1] == ("10:02", "skipped")


def test_a_run_whose_successor_was_removed_after_its_end_is_active_no_more() -> None:
    desk = Desk()
    desk.publish({"cron": "* * * * *"})
    desk.pass_time(MINUTE)
    (first,) = desk.started()
    desk.end_run(first.run_id)
    state = desk.header(first.run_id)
    state.successor = Successor("removed", NULL)
    desk.store(state)
    desk.pass_time(MINUTE)
    assert desk.outcomes()[-1] == ("10:02", "fired")


def test_jitter_is_the_same_at_every_look_within_its_bound_and_before_the_next_occurrence() -> None:
    desk = Desk()
    desk.publish({"cron": "*/2 * * * *", "jitter_ms": HOUR, "overlap_policy": "allow_all"})
    schedule = desk.schedule()
    delays = [jitter(schedule, at) for at in range(schedule.next_at, schedule.next_at + HOUR, 2 * MINUTE)]
    assert delays == [jitter(schedule, at) for at in range(schedule.next_at, schedule.next_at + HOUR, 2 * MINUTE)]
    assert all(0 <= delay < 2 * MINUTE for delay in delays)
    assert len(set(delays)) > 20


def test_an_occurrence_waits_for_its_jitter_and_keeps_its_instant() -> None:
    desk = Desk()
    desk.publish({"cron": "0 11 * * *", "jitter_ms": HOUR})
    schedule = desk.schedule()
    assert schedule.due_at > schedule.next_at == ms("2026-12-01T11:00:00Z")
    desk.clock.set(schedule.due_at - 1)
    assert desk.firing.advance(desk.key, schedule.next_at) == schedule.due_at
    desk.fire()
    assert desk.started() == []
    desk.clock.advance(1)
    desk.fire()
    assert desk.instants() == ["2026-12-01T11:00:00Z"]


def test_after_downtime_what_is_within_the_catch_up_window_fires_in_order_and_the_rest_is_missed() -> None:
    desk = Desk()
    desk.publish({**EVERY_MINUTE, "catch_up_window_ms": 10 * MINUTE})
    desk.clock.set(ms("2026-12-01T12:00:30Z"))
    desk.fire()
    assert desk.instants()[0] == "2026-12-01T11:51:00Z"
    assert len(desk.instants()) == 10
    missed = desk.decided()[0]
    assert (missed.outcome, missed.count) == ("missed", 110)
    assert shown([missed.scheduled_at]) == ["2026-12-01T10:01:00Z"]
    assert desk.schedule().missed == 110


def test_without_a_window_downtime_is_not_caught_up_but_a_moment_of_lateness_is() -> None:
    desk = Desk()
    desk.publish(EVERY_MINUTE)
    desk.clock.set(ms("2026-12-01T12:00:30Z"))
    desk.fire()
    assert desk.instants() == ["2026-12-01T12:00:00Z"]


def test_years_of_downtime_are_passed_over_at_once() -> None:
    desk = Desk()
    desk.publish(EVERY_MINUTE)
    desk.clock.set(ms("2031-12-01T12:00:30Z"))
    desk.fire()
    assert [one.outcome for one in desk.decided()] == ["missed", "fired"]


def test_after_the_last_occurrence_nothing_is_due_any_more() -> None:
    desk = Desk()
    desk.publish({"cron": "0 * * * *", "end_at": "2026-12-01T13:00:00Z", "overlap_policy": "allow_all"})
    desk.pass_time(6 * HOUR)
    assert desk.instants() == ["2026-12-01T11:00:00Z", "2026-12-01T12:00:00Z"]
    assert next_due(desk.table) is None


def test_a_run_that_may_not_start_is_recorded_and_the_schedule_goes_on() -> None:
    desk = Desk()
    desk.admin.environments.create(desk.caller, "staging", EnvironmentChanges())
    desk.key = ScheduleKey(desk.tenant, "hello_world", "staging")
    desk.publish({"cron": "0 * * * *"}, environment="staging")
    desk.admin.environments.update(desk.caller, "staging", EnvironmentChanges(active=False))
    desk.pass_time(HOUR)
    desk.admin.environments.update(desk.caller, "staging", EnvironmentChanges(active=True))
    desk.pass_time(HOUR)
    assert desk.outcomes() == [("11:00", "refused"), ("12:00", "fired")]
    refused = desk.decided()[0]
    assert refused.code == "ENVIRONMENT_INACTIVE"
    assert refused.message


def test_a_start_that_lost_too_many_races_is_tried_again_and_not_refused_for_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk()
    desk.publish(EVERY_MINUTE)
    desk.clock.advance(MINUTE)
    with monkeypatch.context() as busy:

        def lose(*_: object) -> None:
            raise aborted("TRIGGER_BUSY", "try again")

        busy.setattr(desk.triggers, "start_with", lose)
        with pytest.raises(UnavailableError):
            desk.fire()
    desk.fire()
    assert desk.outcomes() == [("10:01", "fired")]


class Watched(MemoryTable):
    """A table whose writes a test can fail, before or after they happen."""

    def __init__(self) -> None:
        super().__init__()
        self.fail = ""

    def write(self, ops: Any) -> Conflict | None:
        if self.fail == "before":
            self.fail = ""
            raise UnavailableError("away")
        lost = super().write(ops)
        if self.fail == "after":
            self.fail = ""
            raise UnavailableError("the reply was lost")
        return lost


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_crash_around_the_write_of_an_occurrence_neither_loses_nor_doubles_it(moment: str) -> None:
    table = Watched()
    desk = Desk(table=table)
    desk.publish(EVERY_MINUTE)
    desk.clock.advance(MINUTE)
    table.fail = moment
    with pytest.raises(UnavailableError):
        desk.fire()
    desk.fire()
    assert desk.instants() == ["2026-12-01T10:01:00Z"]
    run = desk.started()[0]
    assert run.wake_at <= desk.clock.now_ms() + MINUTE  # if nobody sent its start, the sweeper does
    assert [one.run_id for one in desk.decided()] == [run.run_id]


class Racing(MemoryTable):
    """A table on which somebody else is faster with the next write of a kind."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Any = None

    def write(self, ops: Sequence[Op]) -> Conflict | None:
        other, self.meanwhile = self.meanwhile, None
        if other is not None:
            other()
        return super().write(ops)


def test_of_two_processes_that_decide_the_same_occurrence_one_does() -> None:
    table = Racing()
    desk = Desk(table=table)
    desk.publish(EVERY_MINUTE)
    desk.clock.advance(MINUTE)
    table.meanwhile = desk.firing.fire_due
    desk.firing.fire_due()
    assert desk.instants() == ["2026-12-01T10:01:00Z"]
    assert desk.schedule().fired == 1
    assert len({intent.id for intent in desk.sent()}) == 1  # the same one, sent again, is applied once


def test_an_archival_in_the_middle_of_an_occurrence_wins_or_loses_whole() -> None:
    table = Racing()
    desk = Desk(table=table)
    version = desk.publish(EVERY_MINUTE)
    desk.clock.advance(MINUTE)
    table.meanwhile = lambda: desk.definitions.archive(desk.caller, version)
    desk.firing.fire_due()
    assert desk.started() == []
    assert next_due(table) is None


def test_a_publication_in_the_middle_of_an_occurrence_gets_it() -> None:
    table = Racing()
    desk = Desk(table=table)
    desk.publish(EVERY_MINUTE)
    desk.clock.advance(MINUTE)
    newest: list[str] = []
    table.meanwhile = lambda: newest.append(desk.publish(EVERY_MINUTE, title="Two"))
    desk.firing.fire_due()
    assert [run.origin.definition_id for run in desk.started()] == newest


def test_a_fault_in_one_schedule_stops_no_other_and_is_tried_again() -> None:
    desk = Desk()
    desk.publish(EVERY_MINUTE)
    document = {**HELLO, "family_slug": "other", "schedule": EVERY_MINUTE}
    other = desk.definitions.create(desk.caller, document).definition
    desk.definitions.publish(desk.caller, other.id)
    known = read_schedule(desk.table, desk.key)
    assert known is not None
    broken = msgspec.structs.replace(known[0], definition_id="no-such-definition")
    desk.table.write([schedule_put(broken, known[1])])
    desk.clock.advance(MINUTE)
    desk.firing.fire_due()
    assert {run.origin.family_slug for run in desk.started()} == {"other"}


def test_a_schedule_that_cannot_start_its_run_now_does_not_keep_the_others_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk()
    desk.publish(EVERY_MINUTE)
    document = {**HELLO, "family_slug": "other", "schedule": EVERY_MINUTE}
    other = desk.definitions.create(desk.caller, document).definition
    desk.definitions.publish(desk.caller, other.id)
    desk.clock.advance(MINUTE)
    start = desk.triggers.start_with

    def busy(tenant: str, definition_id: str, *rest: Any) -> Any:
        if definition_id == desk.schedule().definition_id:
            raise UnavailableError("busy")
        return start(tenant, definition_id, *rest)

    monkeypatch.setattr(desk.triggers, "start_with", busy)
    desk.firing.fire_due()
    assert {run.origin.family_slug for run in desk.started()} == {"other"}


def test_what_nobody_called_for_is_fired_by_the_sweeper() -> None:
    desk = Desk()
    desk.publish(EVERY_MINUTE)
    desk.clock.set(ms("2026-12-01T10:01:00Z") + OVERDUE_MS - 1)
    assert desk.firing.fire_due(OVERDUE_MS) == []
    desk.clock.advance(1)
    assert desk.firing.fire_due(OVERDUE_MS) == [desk.key]


def test_the_run_of_an_occurrence_has_the_same_id_for_every_version() -> None:
    desk = Desk()
    desk.publish(EVERY_MINUTE)
    desk.pass_time(MINUTE)
    (run,) = desk.started()
    assert run.run_id == occurrence_run_id(desk.key, ms("2026-12-01T10:01:00Z"))


def test_the_loop_ends_when_it_is_told_to() -> None:
    desk, stop = Desk(), threading.Event()
    thread = threading.Thread(target=desk.scheduling.loop.run, args=(stop,))
    thread.start()
    stop.set()
    thread.join(10)
    assert not thread.is_alive()
