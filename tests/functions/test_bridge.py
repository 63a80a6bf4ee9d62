"""Workers outside through the functions: queues and claims as rows in DynamoDB, intents through the queue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.functions.world import SECOND, AwsWorld

EXAMPLE = Path(__file__).parents[2] / "events" / "thumbnail_by_worker.yaml"


def started(world: AwsWorld, **fields: Any) -> str:
    """A run of the example whose task waits for a worker."""
    document = yaml.safe_load(EXAMPLE.read_text())["definition"]
    document["steps"][0] |= fields
    run_id = world.trigger(world.publish(document), input={"image": "cat.png", "width": 200})
    world.pump()
    return run_id


def poll(world: AwsWorld) -> list[Any]:
    tasks: list[Any] = world.ok("POST", "/api/v2/bridge-tasks:poll", {"task_types": ["image.thumbnail"]})["tasks"]
    return tasks


def answer(world: AwsWorld, task: Any, verb: str, **body: Any) -> tuple[int, Any]:
    answered = world.request("POST", f"/api/v2/bridge-tasks/{task['task_token']}:{verb}", body)
    world.pump()
    return answered


@pytest.mark.parametrize("output", [{"url": "x"}, {"text": "x" * 100_000}])
def test_a_worker_takes_the_example_to_its_end(world: AwsWorld, output: Any) -> None:
    run_id = started(world)
    (task,) = poll(world)
    assert (task["input"], task["heartbeat_within_ms"]) == ({"image": "cat.png", "width": 200}, 60_000)
    assert poll(world) == []
    assert answer(world, task, "heartbeat", details={"rows": 7})[0] == 200
    assert [answer(world, task, "complete", output=output)[0] for _ in range(2)] == [200, 200]
    assert world.status(run_id) == "completed"
    assert world.ok("GET", f"/api/v2/workflow-runs/{run_id}/nodes/render/output")["output"] == output
    assert poll(world) == []


def test_a_lost_worker_is_followed_by_another_one(world: AwsWorld) -> None:
    run_id = started(world)
    (first,) = poll(world)
    world.clock.advance(60 * SECOND + 1)
    (second,) = poll(world)
    assert (second["attempt"], second["delivery"]) == (1, 2)
    status, refused = answer(world, first, "complete", output=1)
    assert (status, refused["errors"][0]["code"]) == (409, "TASK_TOKEN_EXPIRED")
    answer(world, second, "release")
    (third,) = poll(world)
    answer(world, third, "complete", output=3)
    assert world.status(run_id) == "completed"


def test_a_worker_that_takes_too_long_is_timed_out_by_the_runs_own_wake_up(world: AwsWorld) -> None:
    run_id = started(world, timeout_ms=20 * SECOND, retry_max_attempts=1)
    (task,) = poll(world)
    world.pump("intents.fifo")
    world.clock.advance(20 * SECOND)
    world.pump()
    assert world.header(run_id).root.nodes["render"].status.value == "timed_out"
    assert answer(world, task, "complete", output=1)[0] == 409


def test_a_cancelled_run_takes_its_task_back(world: AwsWorld) -> None:
    run_id = started(world)
    (task,) = poll(world)
    world.control(run_id, "cancel", "c")
    world.pump()
    assert answer(world, task, "heartbeat")[1]["cancel_requested"] is True
    assert answer(world, task, "release")[0] == 200
    assert world.status(run_id) == "cancelled"
    assert poll(world) == []
