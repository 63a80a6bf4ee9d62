"""Tasks for workers outside on the wire."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.world import ApiWorld, Reply

from ductor.app.bridge_queue import BridgeQueue
from ductor.model.attempt import AttemptTask
from ductor.model.payload import Inline

POLL = "/api/v2/bridge-tasks:poll"
JOB = {
    "family_slug": "job",
    "steps": [{"ref": "b", "type": "bridge", "args": {"task_type": "render"}, "redaction_policy": "none"}],
}
VERBS = ("heartbeat", "complete", "fail", "release")


def queued(world: ApiWorld, task_type: str = "render", environment: str = "default") -> None:
    """What the coordinator does of a run with such a step."""
    run_id = str(world.call("POST", f"/api/v2/workflow-definitions/{world.published(JOB)}:trigger", {}).json["run_id"])
    now = world.clock.now_ms()
    task = AttemptTask(
        run_id=run_id,
        tenant=world.tenant,
        node="b",
        attempt=1,
        generation=1,
        action=task_type,
        input=Inline({"v": 1}),
        idempotency_key=f"{run_id}/b",
        scheduled_at=now,
        environment=environment,
        depth=4,
    )
    BridgeQueue(world.table).put(task, now)


def poll(world: ApiWorld, headers: dict[str, str | None] | None = None, **body: Any) -> Reply:
    return world.call("POST", POLL, {"task_types": ["render"], **body}, headers=headers)


def taken(world: ApiWorld) -> str:
    """The token of a task in hand."""
    queued(world)
    return str(poll(world).json["tasks"][0]["task_token"])


def test_a_task_on_the_wire(world: ApiWorld) -> None:
    queued(world)
    answer = poll(world, lease_seconds=30, worker="w1")
    assert answer.status == 200
    (task,) = answer.json["tasks"]
    assert (task["task_type"], task["node"], task["attempt"], task["delivery"]) == ("render", "b", 1, 1)
    assert (task["input"], task["heartbeat_within_ms"], task["deadline_at"]) == ({"v": 1}, 30_000, None)
    assert (task["lease_expires_at"], task["causation_depth"]) == ("2026-01-01T00:00:30.000Z", 4)
    assert poll(world).json["tasks"] == []


def test_a_life_of_a_task(world: ApiWorld) -> None:
    token = taken(world)
    beat = world.call("POST", f"/api/v2/bridge-tasks/{token}:heartbeat", {"details": {"rows": 7}})
    assert (beat.status, beat.json["cancel_requested"]) == (200, False)
    for _ in range(2):
        done = world.call("POST", f"/api/v2/bridge-tasks/{token}:complete", {"output": {"url": "x"}})
        assert (done.status, done.json["status"]) == (200, "accepted")
    other = world.call("POST", f"/api/v2/bridge-tasks/{token}:complete", {"output": {"url": "y"}})
    assert (other.status, other.codes) == (409, [("token", "TASK_ENDED")])


def test_a_poll_that_waits_without_success(world: ApiWorld) -> None:
    began = world.clock.now_ms()
    answer = poll(world, wait_seconds=2.5)
    assert (answer.status, answer.json["tasks"], world.clock.now_ms()) == (200, [], began + 2_500)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "FIELD_REQUIRED"),
        ({"task_types": "render"}, 400, "FIELD_INVALID"),
        ({"task_types": []}, 400, "FIELD_INVALID"),
        ({"task_types": [7]}, 400, "FIELD_INVALID"),
        ({"task_types": ["\ud800"]}, 400, "JSON_INVALID"),
        ({"task_types": ["a b"]}, 400, "FIELD_INVALID"),
        ({"task_types": ["a"], "wait_seconds": "3"}, 400, "FIELD_INVALID"),
        ({"task_types": ["a"], "wait_seconds": 1e308}, 400, "FIELD_INVALID"),
        ({"task_types": ["a"], "max": 1.5}, 400, "FIELD_INVALID"),
        ({"task_types": ["a"], "max": 10**30}, 400, "NUMBER_OUT_OF_RANGE"),
        ({"task_types": ["a"], "surprise": 1}, 400, "FIELD_UNKNOWN"),
        ({"task_types": ["a"], "environment": "e" * 3_000}, 400, "FIELD_INVALID"),
        ({"task_types": ["a"], "environment": "e" * 100}, 200, ""),
        ({"task_types": ["a"], "environment": ""}, 200, ""),
    ],
)
def test_odd_polls(world: ApiWorld, body: Any, status: int, code: str) -> None:
    answer = world.call("POST", POLL, body)
    assert answer.status == status, answer.text
    if code and code != "JSON_INVALID":
        assert answer.codes[0][1] == code


@pytest.mark.parametrize(
    ("verb", "body", "code"),
    [
        ("heartbeat", {"details": "x" * 8_200}, "DETAILS_TOO_LARGE"),
        ("heartbeat", {"detail": 1}, "FIELD_UNKNOWN"),
        ("complete", {"output": "x" * 5_242_900}, "OUTPUT_TOO_LARGE"),
        ("complete", {"result": 1}, "FIELD_UNKNOWN"),
        ("fail", {"code": ""}, "FIELD_INVALID"),
        ("fail", {"code": 7}, "FIELD_INVALID"),
        ("fail", {"retryable": "no"}, "FIELD_INVALID"),
        ("fail", {"details": "x" * 8_200}, "DETAILS_TOO_LARGE"),
        ("release", {"why": "x"}, "FIELD_UNKNOWN"),
    ],
)
def test_odd_answers_leave_the_task_in_hand(world: ApiWorld, verb: str, body: Any, code: str) -> None:
    token = taken(world)
    answer = world.call("POST", f"/api/v2/bridge-tasks/{token}:{verb}", body)
    assert (answer.status, answer.codes[0][1]) == (413 if code.endswith("LARGE") else 400, code)
    assert world.call("POST", f"/api/v2/bridge-tasks/{token}:complete", {}).status == 200


@pytest.mark.parametrize("verb", VERBS)
def test_another_tenants_token_is_an_unknown_one(world: ApiWorld, verb: str) -> None:
    token, stranger = taken(world), world.as_stranger()
    answers = [
        world.call("POST", f"/api/v2/bridge-tasks/{one}:{verb}", {}, headers=stranger)
        for one in (token, token[:-3] + "AAA", "nothing", "a.b")
    ]
    assert [(answer.status, answer.codes) for answer in answers] == [(404, [("token", "TASK_NOT_FOUND")])] * 4


@pytest.mark.parametrize("verb", VERBS)
def test_every_answer_needs_the_scope(world: ApiWorld, verb: str) -> None:
    headers = world.with_scopes("workflow_run:write", "workflow:write")
    answer = world.call("POST", f"/api/v2/bridge-tasks/{taken(world)}:{verb}", {}, headers=headers)
    assert (answer.status, answer.codes) == (403, [("", "SCOPE_MISSING")])


def test_a_key_of_the_role_worker_works_and_nothing_else(world: ApiWorld) -> None:
    queued(world)
    key = world.keys.issue(world.tenant, "worker", roles=["worker", "queue:render"]).plaintext
    headers: dict[str, str | None] = {"authorization": f"Bearer {key}"}
    assert poll(world, headers, task_types=["other"]).codes == [("task_types[0]", "QUEUE_NOT_ALLOWED")]
    assert len(poll(world, headers).json["tasks"]) == 1
    assert world.call("GET", "/api/workflows/runs", headers=headers).status == 403


def test_tasks_of_another_environment_are_polled_by_name_and_with_authority(world: ApiWorld) -> None:
    queued(world, environment="staging")
    assert poll(world).json["tasks"] == []
    assert len(poll(world, environment="staging").json["tasks"]) == 1


def test_a_client_that_has_hung_up_gets_no_task(world: ApiWorld) -> None:
    queued(world)
    event = world.event("POST", POLL, {"task_types": ["render"]})
    answer = world.handler({**event, "ductor.gone": lambda: True}, None)
    assert '"tasks":[]' in answer["body"]
    assert len(poll(world).json["tasks"]) == 1
