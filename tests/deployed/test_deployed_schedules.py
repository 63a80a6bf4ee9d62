"""Schedules of the deployed application: EventBridge Scheduler calls, a run starts, and nothing is left behind."""

from __future__ import annotations

from typing import Any

import pytest
from tests.deployed.stack import Stack, wait_until
from tests.functions.definitions import chain

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

FAMILY = "/api/workflow-schedules/every_minute"


def detail(stack: Stack) -> dict[str, Any]:
    found: dict[str, Any] = stack.get(FAMILY)["data"]
    return found


def outside(stack: Stack) -> list[str]:
    """The schedules of definitions that the scheduler has."""
    answer = stack.aws.client("scheduler").list_schedules(GroupName=stack.outputs["CronGroup"])
    return [one["ScheduleExpression"] if "ScheduleExpression" in one else one["Name"] for one in answer["Schedules"]]


def post(stack: Stack, path: str) -> None:
    with stack.client() as client:
        answer = client.post(path, json={})
        assert answer.status_code < 300, answer.text


def test_a_cron_fires_once_a_minute_until_it_is_archived(stack: Stack) -> None:
    schedule = {"cron": "* * * * *", "overlap_policy": "allow_all"}
    version = stack.publish(chain(1, "every_minute") | {"schedule": schedule})
    assert detail(stack)["scheduler_in_sync"], "the API may not tell the scheduler"
    assert len(outside(stack)) == 1

    def runs() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = stack.get("/api/workflows/runs?schedule=every_minute")["data"]
        return found

    wait_until(lambda: bool(runs()), 150, lambda: str(detail(stack)))
    stack.until(runs()[0]["run_id"], "completed")
    instants = [run["scheduled_at"] for run in runs()]
    assert len(instants) == len(set(instants))
    assert all(instant.endswith(":00.000Z") for instant in instants)
    post(stack, f"{FAMILY}:pause")
    assert outside(stack) == []
    post(stack, f"{FAMILY}:resume")
    assert len(outside(stack)) == 1
    post(stack, f"/api/workflow-definitions/{version}/archive")
    assert outside(stack) == []
