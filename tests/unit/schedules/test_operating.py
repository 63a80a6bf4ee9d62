"""What operators do with schedules: pausing, starting now, backfilling; rights, repeats and the audit trail."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.app.world import HELLO
from tests.unit.schedules.desk import HOUR, MINUTE, Desk, ms, refused, shown

from ductor.app.backfills import BackfillRequest, BackfillStatus, Range
from ductor.app.schedule_requests import ScheduleRequest
from ductor.app.schedules import Schedules

HOURLY = {"cron": "0 * * * *", "overlap_policy": "allow_all"}
FAMILY = "hello_world"


def backfill(start: str, end: str, request_id: str = "b1", overlap: str = "") -> BackfillRequest:
    return BackfillRequest(range=Range(ms(start), ms(end)), request_id=request_id, overlap_policy=overlap)


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def schedules(desk: Desk) -> Schedules:
    desk.publish(HOURLY)
    return desk.scheduling.schedules


def test_what_lies_in_a_pause_is_not_caught_up(desk: Desk, schedules: Schedules) -> None:
    schedules.pause(desk.caller, FAMILY)
    desk.pass_time(90 * MINUTE)
    schedules.resume(desk.caller, FAMILY)
    desk.fire()
    assert desk.started() == []
    desk.pass_time(HOUR)
    assert desk.instants() == ["2026-12-01T12:00:00Z"]


def test_a_repeated_request_does_nothing(desk: Desk, schedules: Schedules) -> None:
    schedules.pause(desk.caller, FAMILY, request_id="p1", reason="maintenance")
    schedules.resume(desk.caller, FAMILY)
    assert not schedules.pause(desk.caller, FAMILY, request_id="p1", reason="again").paused
    assert desk.schedule().live


def test_an_id_stands_for_one_request(desk: Desk, schedules: Schedules) -> None:
    schedules.pause(desk.caller, FAMILY, request_id="p1")
    assert refused(lambda: schedules.resume(desk.caller, FAMILY, request_id="p1")) == "REQUEST_ID_REUSED"


def test_the_audit_trail_says_who_did_what_and_why(desk: Desk, schedules: Schedules) -> None:
    schedules.pause(desk.caller, FAMILY, request_id="p1", reason="maintenance")
    desk.clock.advance(1)
    started = schedules.trigger_now(desk.caller, FAMILY, request_id="n1")
    newest, oldest = schedules.audit(desk.caller, FAMILY, "", None, None).items
    assert isinstance(newest, ScheduleRequest)
    assert isinstance(oldest, ScheduleRequest)
    assert (newest.operation, newest.run_id) == ("triggerNow", started.run_id)
    assert (oldest.operation, oldest.reason, oldest.actor) == ("pause", "maintenance", desk.caller.key_id)


def test_a_run_can_be_started_now_also_while_paused_and_only_once_per_request(desk: Desk, schedules: Schedules) -> None:
    schedules.pause(desk.caller, FAMILY)
    first = schedules.trigger_now(desk.caller, FAMILY, request_id="n1")
    again = schedules.trigger_now(desk.caller, FAMILY, request_id="n1")
    assert (first.run_id, again.run_id) == (again.run_id, first.run_id)
    assert (first.repeated, again.repeated) == (False, True)
    (run,) = desk.started()
    assert run.origin.scheduled_at == desk.clock.now_ms()
    assert run.origin.created_by == desk.caller.key_id


def test_a_run_started_now_at_the_very_instant_of_an_occurrence_does_not_take_its_place() -> None:
    desk = Desk("2026-12-01T10:59:59Z")
    desk.publish(HOURLY)
    desk.clock.advance(1_000)
    desk.scheduling.schedules.trigger_now(desk.caller, FAMILY)
    desk.fire()
    assert desk.instants() == ["2026-12-01T11:00:00Z", "2026-12-01T11:00:00Z"]


def test_starting_now_follows_the_overlap_policy_unless_told_otherwise(desk: Desk) -> None:
    desk.publish({"cron": "0 * * * *"})
    schedules = desk.scheduling.schedules
    schedules.trigger_now(desk.caller, FAMILY)
    assert refused(lambda: schedules.trigger_now(desk.caller, FAMILY)) == "SCHEDULE_RUN_ACTIVE"
    schedules.trigger_now(desk.caller, FAMILY, overlap_policy="allow_all")
    assert len(desk.started()) == 2
    desk.pass_time(HOUR)
    assert desk.schedule().skipped == 1


@pytest.mark.parametrize("policy", ["buffer_one", "cancel_other", "ALLOW"])
def test_other_policies_are_refused(desk: Desk, schedules: Schedules, policy: str) -> None:
    def start() -> object:
        return schedules.trigger_now(desk.caller, FAMILY, overlap_policy=policy)

    assert refused(start) == "SCHEDULE_OVERLAP_POLICY_INVALID"


def test_preview_is_what_fires(desk: Desk, schedules: Schedules) -> None:
    wanted = schedules.preview(desk.caller, FAMILY, count=5)
    desk.pass_time(5 * HOUR)
    assert shown(list(wanted)) == desk.instants()


@pytest.mark.parametrize("count", [0, 1_001])
def test_a_preview_is_bounded(desk: Desk, schedules: Schedules, count: int) -> None:
    assert refused(lambda: schedules.preview(desk.caller, FAMILY, count=count)) == "FIELD_INVALID"


def test_a_backfill_starts_what_did_not_fire_and_nothing_twice(desk: Desk, schedules: Schedules) -> None:
    desk.pass_time(2 * HOUR)
    assert desk.instants() == ["2026-12-01T11:00:00Z", "2026-12-01T12:00:00Z"]
    wanted = backfill("2026-12-01T08:00:00Z", "2026-12-01T12:00:00Z")
    job = schedules.backfill(desk.caller, FAMILY, wanted=wanted)
    assert (job.status, job.started, job.fired_before) == (BackfillStatus.COMPLETED, 3, 2)
    assert schedules.backfill(desk.caller, FAMILY, wanted=wanted) == job
    assert desk.instants() == [f"2026-12-01T{hour:02}:00:00Z" for hour in (8, 9, 10, 11, 12)]


def test_a_backfill_of_what_is_about_to_fire_leaves_nothing_to_fire(desk: Desk, schedules: Schedules) -> None:
    desk.clock.set(ms("2026-12-01T11:00:10Z"))
    schedules.backfill(desk.caller, FAMILY, wanted=backfill("2026-12-01T11:00:00Z", "2026-12-01T11:00:00Z"))
    desk.pass_time(HOUR)
    assert desk.instants() == ["2026-12-01T11:00:00Z", "2026-12-01T12:00:00Z"]


def test_a_backfill_catches_up_what_was_skipped(desk: Desk) -> None:
    desk.publish({"cron": "0 * * * *"})
    desk.pass_time(3 * HOUR)
    assert [outcome for _, outcome in desk.outcomes()] == ["fired", "skipped", "skipped"]
    job = desk.scheduling.schedules.backfill(
        desk.caller, FAMILY, wanted=backfill("2026-12-01T11:00:00Z", "2026-12-01T13:00:00Z")
    )
    assert (job.started, job.fired_before) == (2, 1)
    assert [outcome for _, outcome in desk.outcomes()] == ["fired", "fired", "fired"]


def test_a_backfill_that_skips_starts_one_run_at_a_time(desk: Desk, schedules: Schedules) -> None:
    wanted = backfill("2026-12-01T05:00:00Z", "2026-12-01T09:00:00Z", overlap="skip")
    job = schedules.backfill(desk.caller, FAMILY, wanted=wanted)
    assert (job.started, job.skipped) == (1, 4)


def test_one_request_id_stands_for_one_overlap_policy(desk: Desk, schedules: Schedules) -> None:
    at = "2026-12-01T08:00:00Z"
    schedules.backfill(desk.caller, FAMILY, wanted=backfill(at, at))
    again = backfill(at, at, overlap="skip")
    assert refused(lambda: schedules.backfill(desk.caller, FAMILY, wanted=again)) == "REQUEST_ID_REUSED"


@pytest.mark.parametrize("extra", ["backfill", "triggerNow"])
def test_what_was_started_besides_does_not_let_the_timetable_overlap_itself(desk: Desk, extra: str) -> None:
    desk.publish({"cron": "0 * * * *"})
    desk.pass_time(HOUR)
    (first,) = desk.started()
    if extra == "backfill":
        at = "2026-12-01T08:00:00Z"
        desk.scheduling.schedules.backfill(desk.caller, FAMILY, wanted=backfill(at, at))
    else:
        desk.scheduling.schedules.trigger_now(desk.caller, FAMILY, overlap_policy="allow_all")
    for run in desk.started():
        if run.run_id != first.run_id:
            desk.end_run(run.run_id)
    desk.pass_time(HOUR)
    assert desk.outcomes()[-1] == ("12:00", "skipped")


def test_a_large_backfill_goes_on_in_the_background_whoever_dies(desk: Desk, schedules: Schedules) -> None:
    wanted = backfill("2026-11-25T00:00:00Z", "2026-11-30T23:00:00Z")
    job = schedules.backfill(desk.caller, FAMILY, wanted=wanted)
    assert job.status is BackfillStatus.RUNNING
    while schedules.get_backfill(desk.caller, FAMILY, "", "b1").status is BackfillStatus.RUNNING:
        assert schedules.backfills.sweep() == 1
    done = schedules.get_backfill(desk.caller, FAMILY, "", "b1")
    assert (done.status, done.started) == (BackfillStatus.COMPLETED, 6 * 24)
    assert len(desk.started()) == 6 * 24
    assert schedules.backfills.sweep() == 0


def test_a_backfill_stops_when_its_schedule_is_gone(desk: Desk, schedules: Schedules) -> None:
    schedules.backfill(desk.caller, FAMILY, wanted=backfill("2026-11-25T00:00:00Z", "2026-11-30T23:00:00Z"))
    begun = len(desk.started())
    version = desk.schedule().definition_id
    desk.definitions.archive(desk.caller, version)
    schedules.backfills.sweep()
    assert len(desk.started()) == begun
    assert schedules.backfills.sweep() == 0


@pytest.mark.parametrize(
    ("start", "end", "code"),
    [
        ("2026-12-01T09:00:00Z", "2026-12-01T08:00:00Z", "FIELD_INVALID"),
        ("2026-12-01T09:00:00Z", "2026-12-01T18:00:00Z", "FIELD_INVALID"),
        ("2025-12-01T09:00:00Z", "2026-12-01T09:00:00Z", "BACKFILL_TOO_LARGE"),
    ],
)
def test_a_backfill_is_of_the_past_and_bounded(
    desk: Desk, schedules: Schedules, start: str, end: str, code: str
) -> None:
    assert refused(lambda: schedules.backfill(desk.caller, FAMILY, wanted=backfill(start, end))) == code


@pytest.mark.parametrize(
    "use",
    [
        lambda schedules, caller: schedules.get(caller, FAMILY),
        lambda schedules, caller: schedules.preview(caller, FAMILY),
        lambda schedules, caller: schedules.pause(caller, FAMILY),
        lambda schedules, caller: schedules.trigger_now(caller, FAMILY),
        lambda schedules, caller: schedules.backfill(caller, FAMILY, wanted=BackfillRequest()),
        lambda schedules, caller: schedules.audit(caller, FAMILY, "", None, None),
    ],
)
def test_another_tenant_finds_no_such_schedule(desk: Desk, schedules: Schedules, use: Callable[..., object]) -> None:
    stranger = desk.stranger()
    assert refused(lambda: use(schedules, stranger)) == "SCHEDULE_NOT_FOUND"
    assert schedules.list(stranger, None, None).items == ()


def test_whose_key_may_not_write_an_environment_steers_no_schedule_of_it(desk: Desk, schedules: Schedules) -> None:
    bound = desk.new_caller(desk.tenant, environments_write=frozenset({"other"}))
    assert schedules.get(bound, FAMILY).key == desk.key
    assert refused(lambda: schedules.pause(bound, FAMILY)) == "ENVIRONMENT_NOT_WRITABLE"
    unseeing = desk.new_caller(desk.tenant, environments_write=frozenset(), environments_read=frozenset({"other"}))
    assert refused(lambda: schedules.get(unseeing, FAMILY)) == "SCHEDULE_NOT_FOUND"


@pytest.mark.parametrize("slug", ["", "no_such", "HELLO", "a#b", "\ud800", "x" * 5_000])
def test_an_odd_name_is_unknown(desk: Desk, schedules: Schedules, slug: str) -> None:
    assert refused(lambda: schedules.get(desk.caller, slug)) == "SCHEDULE_NOT_FOUND"
    assert refused(lambda: schedules.get(desk.caller, FAMILY, slug or "#")) == "SCHEDULE_NOT_FOUND"


def test_the_list_has_every_schedule_in_pages(desk: Desk, schedules: Schedules) -> None:
    for number in range(5):
        document = {**HELLO, "family_slug": f"family_{number}", "schedule": HOURLY}
        desk.definitions.publish(desk.caller, desk.definitions.create(desk.caller, document).definition.id)
    seen, cursor = [], None
    while True:
        page = schedules.list(desk.caller, 2, cursor)
        seen += [one.key.family_slug for one in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [*(f"family_{number}" for number in range(5)), FAMILY]


def test_occurrences_come_in_pages_newest_first(desk: Desk, schedules: Schedules) -> None:
    desk.pass_time(5 * HOUR)
    seen, cursor = [], None
    while True:
        page = schedules.occurrences(desk.caller, FAMILY, "", 2, cursor)
        seen += [one.scheduled_at for one in page.items]  # type: ignore[union-attr]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert shown(seen) == [f"2026-12-01T{hour}:00:00Z" for hour in (15, 14, 13, 12, 11)]
