"""What takes long on a deployed stack because it waits for clocks and deliveries. All of these run side by side."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
from tests.deployed.deadly_stack import deadly_coordinator
from tests.deployed.stack import Stack, wait_until
from tests.functions.definitions import chain

MINUTE_MS = 60_000
EVERY_MINUTE = "/api/workflow-schedules/every_minute"


def waiting(duration: str, slug: str) -> dict[str, Any]:
    step = {"ref": "pause", "type": "STEP_TYPE_WAIT", "args": {"duration": duration}}
    return {"environment": "default", "family_slug": slug, "title": "Wait", "steps": [step], "edges": []}


def a_wait_of_sixteen_minutes_is_a_schedule_on_the_minute_before_its_end(stack: Stack) -> None:
    run_id = stack.trigger(stack.publish(waiting("16m", "sixteen_minutes")))
    stack.until(run_id, "waiting")
    wait_until(lambda: bool(_wake_ups(stack, run_id)), 30)
    (schedule,) = _wake_ups(stack, run_id)
    deadline = msgspec.json.decode(schedule["Target"]["Input"])["at"]
    when = datetime.strptime(schedule["ScheduleExpression"], "at(%Y-%m-%dT%H:%M:%S)").replace(tzinfo=UTC)
    assert when.second == 0
    assert MINUTE_MS <= deadline - when.timestamp() * 1000 < 2 * MINUTE_MS
    shown = stack.summary(run_id)["waiting_on"]["deadline_at"]
    assert abs(datetime.fromisoformat(shown).timestamp() * 1000 - deadline) < 1_000
    assert schedule["ActionAfterCompletion"] == "DELETE"
    stack.control(run_id, "cancel", "enough")
    stack.until(run_id, "cancelled")


def _wake_ups(stack: Stack, run_id: str) -> list[dict[str, Any]]:
    """The one-time schedules of a run."""
    scheduler, group = stack.aws.client("scheduler"), stack.outputs["ScheduleGroup"]
    names = [one["Name"] for one in scheduler.list_schedules(GroupName=group)["Schedules"]]
    found = [scheduler.get_schedule(GroupName=group, Name=name) for name in names]
    return [one for one in found if run_id in one["Target"]["Input"]]


def a_step_function_that_dies_amid_an_attempt_is_replaced(stack: Stack) -> None:
    document = chain(1, "deadly")
    mark = stack.aws.folder / "tmp" / "died"
    document["steps"][0] |= {"action": "test.die_once", "args": {"mark": str(mark)}}
    run_id = stack.trigger(stack.publish(document))
    stack.until(run_id, "completed", 180)
    assert mark.exists()


def a_batch_whose_coordinator_died_after_its_work_comes_again_and_changes_nothing(stack: Stack) -> None:
    definition_id = stack.publish(chain(2, "redelivered"))
    with deadly_coordinator(stack) as coordinator:
        with coordinator.held_back():
            run_id = stack.trigger(definition_id)
            mark = coordinator.lose(run_id)
        stack.until(run_id, "completed")
        wait_until(lambda: not mark.exists(), 10)
        start = coordinator.delivered_of(run_id)[0]
        assert [count for message, count in coordinator.delivered_of(run_id) if message == start[0]][:2] == [1, 2]
    attempts = stack.get(f"/api/v2/workflow-runs/{run_id}/attempts")["items"]
    assert [(attempt["node"], attempt["attempt"]) for attempt in attempts] == [("s0", 1), ("s1", 1)]
    entries = stack.get(f"/api/workflows/runs/{run_id}/events")["data"]
    seqs = [entry["seq"] for entry in entries if entry["kind"] == "transition"]
    assert seqs == list(range(1, len(seqs) + 1))


def a_run_that_kills_every_coordinator_stalls_while_the_others_of_its_batch_go_on(stack: Stack) -> None:
    definition_id = stack.publish(chain(1, "poisonous"))
    with deadly_coordinator(stack) as coordinator:
        with coordinator.held_back():
            bad, *good = [stack.trigger(definition_id) for _ in range(3)]
            mark = coordinator.poison(bad)
        for run_id in good:
            stack.until(run_id, "completed")
        assert any({bad, *good} <= {run_id for run_id, _, _ in batch} for batch in coordinator.delivered())
        wait_until(lambda: bool(stack.summary(bad)["stalled"]), 180, lambda: str(coordinator.delivered()))
        assert stack.summary(bad)["stalled"]["reason"].endswith("times, and whoever ticked them died")
        assert max(count for _, count in coordinator.delivered_of(bad)) >= 10
        mark.unlink()
        stack.control(bad, "redrive", "repaired")
        stack.until(bad, "completed")
    assert not stack.summary(bad)["stalled"]


def a_cron_fires_once_a_minute_until_it_is_archived(stack: Stack) -> None:
    schedule = {"cron": "* * * * *", "overlap_policy": "allow_all"}
    version = stack.publish(chain(1, "every_minute") | {"schedule": schedule})
    assert _schedule(stack)["scheduler_in_sync"], "the API may not tell the scheduler"
    assert len(_outside(stack)) == 1

    def runs() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = stack.get("/api/workflows/runs?schedule=every_minute")["data"]
        return found

    wait_until(lambda: bool(runs()), 150, lambda: str(_schedule(stack)))
    stack.until(runs()[0]["run_id"], "completed")
    instants = [run["scheduled_at"] for run in runs()]
    assert len(instants) == len(set(instants))
    assert all(instant.endswith(":00.000Z") for instant in instants)
    _post(stack, f"{EVERY_MINUTE}:pause")
    assert _outside(stack) == []
    _post(stack, f"{EVERY_MINUTE}:resume")
    assert len(_outside(stack)) == 1
    _post(stack, f"/api/workflow-definitions/{version}/archive")
    assert _outside(stack) == []


def _schedule(stack: Stack) -> dict[str, Any]:
    found: dict[str, Any] = stack.get(EVERY_MINUTE)["data"]
    return found


def _outside(stack: Stack) -> list[str]:
    """The schedules of definitions that the scheduler has."""
    answer = stack.aws.client("scheduler").list_schedules(GroupName=stack.outputs["CronGroup"])
    return [one["Name"] for one in answer["Schedules"]]


def _post(stack: Stack, path: str) -> None:
    with stack.client() as client:
        answer = client.post(path, json={})
        assert answer.status_code < 300, answer.text


SCENARIOS: tuple[Callable[[Stack], None], ...] = (
    a_run_that_kills_every_coordinator_stalls_while_the_others_of_its_batch_go_on,
    a_batch_whose_coordinator_died_after_its_work_comes_again_and_changes_nothing,
    a_wait_of_sixteen_minutes_is_a_schedule_on_the_minute_before_its_end,
    a_cron_fires_once_a_minute_until_it_is_archived,
    a_step_function_that_dies_amid_an_attempt_is_replaced,
)
