"""Wake-ups on AWS: which way they take, and that none of the ways is late, too long or swallowed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contract.moto_backend import Emulator

from ductor.adapters.aws.timers import MAX_AHEAD_MS, MINUTE_MS, Wake, fire_time, read_wake, schedule_name
from ductor.ports import UnavailableError
from ductor.testing.memory import VirtualClock

SECOND = 1_000
DAY = 24 * 60 * MINUTE_MS


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    made = Emulator(VirtualClock())
    yield made
    made.close()


def schedules(emulator: Emulator) -> list[dict[str, Any]]:
    client = emulator.clients("scheduler")
    listed = client.list_schedules(GroupName="ductor")["Schedules"]
    return [client.get_schedule(GroupName="ductor", Name=entry["Name"]) for entry in listed]


def waiting(emulator: Emulator) -> list[Wake]:
    """What is visible in the timers queue now."""
    sqs = emulator.clients("sqs")
    answer = sqs.receive_message(QueueUrl=emulator.timers_url, MaxNumberOfMessages=10, VisibilityTimeout=0)
    return [read_wake(message["Body"]) for message in answer.get("Messages", ())]


@pytest.mark.parametrize("delay_ms", [1, SECOND, 2_500, 900 * SECOND])
def test_a_near_wake_up_waits_in_the_queue_and_is_never_early(emulator: Emulator, delay_ms: int) -> None:
    at = emulator.clock.now_ms() + delay_ms
    emulator.timers.arm("r", at)
    assert schedules(emulator) == []
    emulator.clock.advance(delay_ms - 1)
    assert waiting(emulator) == []
    emulator.clock.advance(SECOND)
    assert waiting(emulator) == [Wake("r", at)]


@pytest.mark.parametrize("at", [-1, 0, 1_000])
def test_a_past_wake_up_is_delivered_at_once(emulator: Emulator, at: int) -> None:
    emulator.timers.arm("r", at)
    assert waiting(emulator) == [Wake("r", at)]


def test_sixteen_minutes_become_a_schedule_that_ends_in_the_queue(emulator: Emulator) -> None:
    at = emulator.clock.now_ms() + 16 * MINUTE_MS + 1
    emulator.timers.arm("r", at)
    assert waiting(emulator) == []
    (schedule,) = schedules(emulator)
    assert schedule["ScheduleExpression"] == "at(2026-01-01T00:15:00)"
    assert schedule["ScheduleExpressionTimezone"] == "UTC"
    assert schedule["ActionAfterCompletion"] == "DELETE"
    assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert schedule["Target"]["Arn"] == emulator.target.queue_arn
    assert schedule["Target"]["RoleArn"] == emulator.target.role_arn
    assert read_wake(schedule["Target"]["Input"]) == Wake("r", at)


def test_arming_a_far_wake_up_again_is_a_no_op(emulator: Emulator) -> None:
    at = emulator.clock.now_ms() + DAY
    for _ in range(3):
        emulator.timers.arm("r", at)
        emulator.clock.advance(MINUTE_MS)
    emulator.timers.arm("r", at + MINUTE_MS)
    emulator.timers.arm("q", at)
    assert len(schedules(emulator)) == 3


def test_a_wake_up_in_years_is_armed_in_hops_each_under_a_name_of_its_own(emulator: Emulator) -> None:
    at = emulator.clock.now_ms() + 1_000 * DAY
    emulator.timers.arm("r", at)
    emulator.timers.arm("r", at)
    (first,) = schedules(emulator)
    fires = datetime.strptime(first["ScheduleExpression"], "at(%Y-%m-%dT%H:%M:%S)").replace(tzinfo=UTC)
    emulator.clock.set(int(fires.timestamp() * 1000))
    emulator.timers.arm("r", at)
    assert len(schedules(emulator)) == 2


def test_a_far_wake_up_is_taken_back_and_a_repeat_or_a_near_one_is_no_error(emulator: Emulator) -> None:
    now = emulator.clock.now_ms()
    emulator.timers.arm("r", now + DAY)
    emulator.timers.arm("q", now + DAY)
    emulator.timers.arm("r", now + SECOND)
    for at in (now + DAY, now + DAY, now + SECOND):
        assert emulator.timers.disarm("r", at)
    (left,) = schedules(emulator)
    assert read_wake(left["Target"]["Input"]).run_id == "q"
    emulator.clock.advance(SECOND)
    assert waiting(emulator) == [Wake("r", now + SECOND)]


def test_a_scheduler_that_is_away_keeps_its_schedule(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    at = emulator.clock.now_ms() + DAY
    emulator.timers.arm("r", at)

    def away(service: str) -> None:
        raise UnavailableError("away")

    monkeypatch.setattr(emulator.timers, "_clients", away)
    assert not emulator.timers.disarm("r", at)
    assert len(schedules(emulator)) == 1


@given(now=st.integers(0, 2**42), ahead=st.integers(900_001, 300 * 366 * DAY))
def test_no_schedule_is_late_past_or_too_far(now: int, ahead: int) -> None:
    at = now + ahead
    fires = fire_time(at, now)
    assert fires % MINUTE_MS == 0
    assert now < fires <= now + MAX_AHEAD_MS
    assert fires + MINUTE_MS <= at
    name = schedule_name(Wake("r" * 36, at), fires)
    assert len(name) <= 64
    assert all(letter.isalnum() or letter in "-_." for letter in name)
