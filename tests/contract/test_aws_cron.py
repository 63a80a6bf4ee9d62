"""Calls for schedules on AWS: the dialect of EventBridge Scheduler, and that telling it again changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contract.moto_backend import Emulator

from ductor.adapters.aws.cron import MAX_EXPRESSION, Call, expression, read_call, schedule_name
from ductor.model.recurrence import Calendar, Recurrence, ScheduleKey
from ductor.testing.memory import VirtualClock

KEY = ScheduleKey("tenant", "family", "default")
DAY = 86_400_000


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    made = Emulator(VirtualClock())
    yield made
    made.close()


def schedules(emulator: Emulator) -> list[dict[str, Any]]:
    client = emulator.clients("scheduler")
    names = [one["Name"] for one in client.list_schedules(GroupName="cron")["Schedules"]]
    return [client.get_schedule(GroupName="cron", Name=name) for name in sorted(names)]


@pytest.mark.parametrize(
    ("calendar", "text"),
    [
        (Calendar(minutes=(0,), hours=(12,), weekdays=(0,)), "cron(0 12 ? * 1 *)"),
        (Calendar(minutes=(0,), hours=(12,), weekdays=(6,)), "cron(0 12 ? * 7 *)"),
        (Calendar(minutes=(0,), hours=(12,), weekdays=(0, 1, 4, 5, 6)), "cron(0 12 ? * 1,2,5-7 *)"),
        (Calendar(minutes=(0,), hours=(12,), weekdays=(0, 5, 6)), "cron(0 12 ? * 1,6,7 *)"),
        (Calendar(minutes=(0,), hours=(12,), weekdays=(0, 2, 4, 6)), "cron(0 12 ? * 1,3,5,7 *)"),
        (Calendar(minutes=(0,), hours=(9,), days=(1,)), "cron(0 9 1 * ? *)"),
        (Calendar(minutes=(0, 30), months=(1, 2, 3, 12)), "cron(0,30 * * 1-3,12 ? *)"),
        (Calendar(), "cron(* * * * ? *)"),
    ],
)
def test_a_calendar_in_schedulers_dialect(calendar: Calendar, text: str) -> None:
    assert expression(calendar) == text


def some(low: int, high: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.sets(st.integers(low, high)).map(lambda values: tuple(sorted(values)))


@given(st.builds(Calendar, some(0, 59), some(0, 23), some(1, 31), some(1, 12), st.just(())))
def test_no_expression_is_longer_than_scheduler_takes(calendar: Calendar) -> None:
    text = expression(calendar)
    assert len(text) <= MAX_EXPRESSION
    assert text.startswith("cron(")
    assert len(text.split()) == 6
    assert text.split()[4] == "?"


def test_a_schedule_calls_with_its_key_and_the_time_that_the_call_was_due_at(emulator: Emulator) -> None:
    emulator.cron.put(KEY, Recurrence((Calendar(minutes=(0,), hours=(9,)),), "Europe/Berlin"))
    (made,) = schedules(emulator)
    assert made["ScheduleExpression"] == "cron(0 9 * * ? *)"
    assert made["ScheduleExpressionTimezone"] == "Europe/Berlin"
    assert made["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert made["Target"]["Arn"] == emulator.cron_target.queue_arn
    assert made["Target"]["RoleArn"] == emulator.cron_target.role_arn
    call = read_call(made["Target"]["Input"])
    assert (call.key, call.at) == (KEY, "<aws.scheduler.scheduled-time>")
    assert "StartDate" not in made
    assert "EndDate" not in made


def test_telling_it_again_is_a_no_op_and_telling_it_otherwise_replaces(emulator: Emulator) -> None:
    both = Recurrence((Calendar(minutes=(0,), weekdays=(1,)), Calendar(minutes=(0,), days=(1,))))
    for _ in range(2):
        emulator.cron.put(KEY, both)
    assert [made["ScheduleExpression"] for made in schedules(emulator)] == ["cron(0 * ? * 2 *)", "cron(0 * 1 * ? *)"]
    emulator.cron.put(KEY, Recurrence((Calendar(minutes=(5,)),)))
    assert [made["ScheduleExpression"] for made in schedules(emulator)] == ["cron(5 * * * ? *)"]


def test_removing_leaves_nothing_and_an_unknown_one_is_no_error(emulator: Emulator) -> None:
    emulator.cron.put(KEY, Recurrence((Calendar(weekdays=(1,)), Calendar(days=(1,)))))
    for _ in range(2):
        emulator.cron.remove(KEY)
    assert schedules(emulator) == []


def test_bounds_ahead_are_told_and_those_of_the_past_not(emulator: Emulator) -> None:
    # moto compares start dates with the machine's own clock
    now = emulator.clock.now_ms() + 3_650 * DAY
    emulator.clock.set(now)
    emulator.cron.put(KEY, Recurrence((Calendar(),), start_at=now + DAY, end_at=now + 2 * DAY))
    (made,) = schedules(emulator)
    assert made["StartDate"].timestamp() * 1000 == now + DAY
    assert made["EndDate"].timestamp() * 1000 == now + 2 * DAY
    emulator.clock.advance(3 * DAY)
    emulator.cron.put(KEY, Recurrence((Calendar(),), start_at=now + DAY, end_at=now + 2 * DAY))
    (made,) = schedules(emulator)
    assert made.get("StartDate") is None


def test_names_are_short_enough_and_differ_by_key_and_calendar() -> None:
    keys = [KEY, ScheduleKey("tenant", "family", "prod"), ScheduleKey("other", "family", "default")]
    names = {schedule_name(key, place) for key in keys for place in (0, 1)}
    assert len(names) == 6
    assert all(len(name) <= 64 and name.replace("-", "").isalnum() for name in names)


@pytest.mark.parametrize("calendars", [(), (Calendar(), Calendar(), Calendar())])
def test_what_no_cron_can_be_is_refused(emulator: Emulator, calendars: tuple[Calendar, ...]) -> None:
    with pytest.raises(ValueError, match="calendars"):
        emulator.cron.put(KEY, Recurrence(calendars))


@pytest.mark.parametrize(
    ("at", "until"),
    [
        ("2026-12-01T10:05:00Z", 1_796_119_500_000),
        ("2026-12-01T11:05:00+01:00", 1_796_119_500_000),
        ("<aws.scheduler.scheduled-time>", 7),
    ],
)
def test_a_call_says_when_it_was_due(at: str, until: int) -> None:
    assert Call("t", "f", "e", at).until(sent_at=7) == until
