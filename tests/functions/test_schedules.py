"""Schedules on AWS: calls come late, twice and in any order, and each occurrence has one run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.contract.moto_backend import CLIENTS
from tests.functions.definitions import chain
from tests.functions.world import SECOND, AwsWorld

from ductor.api.models.common import rfc3339
from ductor.model.recurrence import ScheduleKey

MINUTE = 60 * SECOND
EVERY_FIVE = {"cron": "*/5 * * * *", "overlap_policy": "allow_all", "catch_up_window_ms": 0}
FAMILY = "/api/workflow-schedules/nightly"


def scheduled(**schedule: Any) -> dict[str, Any]:
    return chain(1, "nightly") | {"schedule": {**EVERY_FIVE, **schedule}}


def instants(world: AwsWorld) -> list[str]:
    """The instants of the runs that there are, oldest first."""
    found = world.ok("GET", "/api/workflows/runs")
    return sorted(at(world, run["run_id"]) for run in found)


def at(world: AwsWorld, run_id: str) -> str:
    return (rfc3339(world.header(run_id).origin.scheduled_at) or "")[11:16]


def outside(world: AwsWorld) -> list[dict[str, Any]]:
    client = CLIENTS("scheduler")
    names = [one["Name"] for one in client.list_schedules(GroupName="cron")["Schedules"]]
    return [client.get_schedule(GroupName="cron", Name=name) for name in names]


def test_publishing_makes_a_schedule_pausing_removes_it_and_archiving_too(world: AwsWorld) -> None:
    published = world.publish(scheduled())
    (made,) = outside(world)
    assert made["ScheduleExpression"] == "cron(0,5,10,15,20,25,30,35,40,45,50,55 * * * ? *)"
    world.ok("POST", f"{FAMILY}:pause")
    assert outside(world) == []
    world.ok("POST", f"{FAMILY}:resume")
    assert len(outside(world)) == 1
    world.ok("POST", f"/api/workflow-definitions/{published}/archive")
    assert outside(world) == []


def test_a_call_starts_the_run_of_the_time_that_it_was_due_at(world: AwsWorld) -> None:
    world.publish(scheduled())
    world.clock.advance(5 * MINUTE + 50 * SECOND)
    world.call_schedule("nightly", "2026-01-01T00:05:00Z")
    world.pump()
    (run,) = world.ok("GET", "/api/workflows/runs")
    assert run["status"] == "completed"
    assert at(world, run["run_id"]) == "00:05"


def test_calls_that_come_twice_late_and_out_of_order_start_each_run_once(world: AwsWorld) -> None:
    world.publish(scheduled())
    world.clock.advance(10 * MINUTE)
    for due in ("00:10", "00:05", "00:10", "00:00", "00:10"):
        world.call_schedule("nightly", f"2026-01-01T{due}:00Z")
    assert instants(world) == ["00:05", "00:10"]


def test_two_calls_for_the_two_day_fields_start_one_run(world: AwsWorld) -> None:
    world.publish(scheduled(cron="0 1 1 1 4"))  # 2026-01-01 is a Thursday
    assert len(outside(world)) == 2
    world.clock.advance(60 * MINUTE + SECOND)
    for _ in range(2):
        world.call_schedule("nightly", "2026-01-01T01:00:00Z")
    assert instants(world) == ["01:00"]


@pytest.mark.parametrize("slug", ["nightly", "unknown"])
def test_a_call_for_what_is_not_scheduled_changes_nothing(world: AwsWorld, slug: str) -> None:
    world.publish(chain(1, "nightly"))
    world.call_schedule(slug, "2026-01-01T00:00:00Z")
    assert instants(world) == []


def test_a_call_for_an_instant_that_the_timetable_does_not_have_starts_nothing(world: AwsWorld) -> None:
    world.publish(scheduled())
    world.clock.advance(3 * MINUTE)
    world.call_schedule("nightly", "2026-01-01T00:03:00Z")
    assert instants(world) == []


def test_a_call_before_its_time_comes_again(world: AwsWorld) -> None:
    world.publish(scheduled())
    world.call_schedule("nightly", "2026-01-01T00:05:00Z")
    assert instants(world) == []
    world.clock.advance(5 * MINUTE)
    world.pump("schedule")
    assert instants(world) == ["00:05"]


def test_a_call_waits_for_the_jitter_of_its_occurrence_in_the_queue(world: AwsWorld) -> None:
    world.publish(scheduled(cron="0 * * * *", jitter_ms=3_600_000))
    world.clock.set(1_767_229_200_000)  # 01:00
    world.call_schedule("nightly", "2026-01-01T01:00:00Z")
    assert instants(world) == []
    for _ in range(60):
        world.clock.advance(MINUTE)
        world.pump("schedule")
    assert instants(world) == ["01:00"]


def test_what_is_no_call_is_left_to_the_dead_letters_and_stops_no_other(world: AwsWorld) -> None:
    world.publish(scheduled())
    world.clock.advance(5 * MINUTE)
    url = world.environment["DUCTOR_CRON_URL"]
    for body in ("nonsense", "{}"):
        CLIENTS("sqs").send_message(QueueUrl=url, MessageBody=body)
    call = {"tenant": world.tenant, "family_slug": "nightly", "environment": "default", "at": "2026-01-01T00:05:00Z"}
    CLIENTS("sqs").send_message(QueueUrl=url, MessageBody=json.dumps(call))
    event = world.receive("schedule")
    assert event is not None
    assert len(world.deliver("schedule", world.schedule, event)) == 2
    assert instants(world) == ["00:05"]


def test_the_sweeper_fires_what_nobody_called_for_and_puts_the_schedule_back(world: AwsWorld) -> None:
    world.publish(scheduled())
    key = ScheduleKey(world.tenant, "nightly", "default")
    world.emulator.cron.remove(key)
    world.clock.advance(5 * MINUTE)
    world.sweeper({}, None)
    assert instants(world) == []
    world.clock.advance(2 * MINUTE)
    world.sweeper({}, None)
    assert instants(world) == ["00:05"]
    assert len(outside(world)) == 1
    world.call_schedule("nightly", "2026-01-01T00:05:00Z")
    assert instants(world) == ["00:05"]
