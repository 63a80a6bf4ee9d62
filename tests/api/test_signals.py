"""Decisions and events on the wire."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.world import ApiWorld

REVIEW = {
    "family_slug": "review",
    "steps": [
        {
            "ref": "gate",
            "type": "approval",
            "action": "approval",
            "args": {"audience": {"roles": ["operator"]}},
        },
        {"ref": "pause", "type": "wait", "args": {"duration": "5h"}},
    ],
}


@pytest.fixture
def world() -> ApiWorld:
    return ApiWorld()


def run_of(world: ApiWorld) -> str:
    definition = world.published(REVIEW)
    return str(world.call("POST", f"/api/v2/workflow-definitions/{definition}:trigger", {}).json["run_id"])


@pytest.mark.parametrize("verb", ["approve", "reject", "resolve"])
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "FIELD_REQUIRED"),
        ({"request_id": 7}, 400, "FIELD_INVALID"),
        ({"request_id": ""}, 400, "REQUEST_ID_INVALID"),
        ({"request_id": "a", "surprise": 1}, 400, "FIELD_UNKNOWN"),
        ({"request_id": "a", "payload": "x" * 1_100_000}, 413, "INPUT_TOO_LARGE"),
    ],
)
def test_odd_decisions(world: ApiWorld, verb: str, body: Any, status: int, code: str) -> None:
    answer = world.call("POST", f"/api/v2/workflow-runs/{run_of(world)}/steps/gate:{verb}", body)
    assert (answer.status, answer.codes[0][1]) == (status, code)


@pytest.mark.parametrize(
    ("node", "verb", "status", "code"),
    [
        ("nothing", "approve", 404, "NODE_NOT_FOUND"),
        ("pause", "approve", 409, "STEP_TYPE_WRONG"),
        ("gate", "resolve", 409, "APPROVAL_NOT_RESOLVABLE"),
        ("pause", "resolve", 409, "NOT_WAITING"),
        ("gate", "reject", 403, "AUDIENCE_MISMATCH"),
    ],
)
def test_decisions_that_cannot_apply(world: ApiWorld, node: str, verb: str, status: int, code: str) -> None:
    answer = world.call("POST", f"/api/v2/workflow-runs/{run_of(world)}/steps/{node}:{verb}", {"request_id": "a"})
    assert (answer.status, answer.codes[0][1]) == (status, code)


@pytest.mark.parametrize("verb", ["approve", "reject", "resolve"])
def test_another_tenants_run_is_an_unknown_one(world: ApiWorld, verb: str) -> None:
    path = f"/api/v2/workflow-runs/{{}}/steps/gate:{verb}"
    answers = [
        world.call("POST", path.format(run), {"request_id": "a"}, headers=world.as_stranger())
        for run in (run_of(world), "nothing")
    ]
    assert [(answer.status, answer.codes) for answer in answers] == [(404, [("run_id", "RUN_NOT_FOUND")])] * 2


def test_an_error_goes_with_outcome_error_only(world: ApiWorld) -> None:
    body = {"request_id": "a", "error": {"code": "X"}}
    answer = world.call("POST", f"/api/v2/workflow-runs/{run_of(world)}/steps/pause:resolve", body)
    assert (answer.status, answer.codes) == (400, [("error", "FIELD_INVALID")])


def test_an_event_that_nobody_waits_for(world: ApiWorld) -> None:
    body = {"event_name": "order.paid", "correlation_key": "order-42", "event_id": "evt-abc", "payload": {"amount": 1}}
    answer = world.call("POST", "/api/v2/workflow-events:publish", body)
    assert answer.status == 202
    shown = {name: value for name, value in answer.json.items() if name != "metadata"}
    nobody = {"matched": 0, "started_runs": [], "refused_starts": []}
    assert shown == {"status": "accepted", "event_id": "evt-abc", **nobody}


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"event_id": None}, 400, "FIELD_INVALID"),
        ({"event_id": ""}, 400, "FIELD_INVALID"),
        ({"event_name": "x" * 201}, 400, "FIELD_INVALID"),
        ({"event_name": ""}, 400, "FIELD_INVALID"),
        ({"correlation_key": "x" * 1_025}, 400, "FIELD_INVALID"),
        ({"correlation_key": 42}, 400, "FIELD_INVALID"),
        ({"surprise": 1}, 400, "FIELD_UNKNOWN"),
        ({"payload": "x" * 262_144}, 413, "EVENT_TOO_LARGE"),
    ],
)
def test_odd_events(world: ApiWorld, changes: Any, status: int, code: str) -> None:
    body = {"event_name": "order.paid", "event_id": "e", **changes}
    answer = world.call("POST", "/api/v2/workflow-events:publish", body)
    assert (answer.status, answer.codes[0][1]) == (status, code)


def test_publishing_needs_its_scope(world: ApiWorld) -> None:
    body = {"event_name": "order.paid", "event_id": "e"}
    headers = world.with_scopes("workflow_run:write", "workflow:write")
    answer = world.call("POST", "/api/v2/workflow-events:publish", body, headers=headers)
    assert (answer.status, answer.codes[0][1]) == (403, "SCOPE_MISSING")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"request_id": "a"}, 400, "FIELD_REQUIRED"),
        ({"request_id": "a", "name": ""}, 400, "FIELD_INVALID"),
        ({"request_id": "a", "name": "x", "payload": "x" * 1_100_000}, 413, "INPUT_TOO_LARGE"),
    ],
)
def test_odd_signals(world: ApiWorld, body: Any, status: int, code: str) -> None:
    answer = world.call("POST", f"/api/v2/workflow-runs/{run_of(world)}:signal", body)
    assert (answer.status, answer.codes[0][1]) == (status, code)


def test_a_signal_is_accepted(world: ApiWorld) -> None:
    body = {"request_id": "a", "name": "go", "payload": [1]}
    answer = world.call("POST", f"/api/v2/workflow-runs/{run_of(world)}:signal", body)
    assert (answer.status, answer.json["status"]) == (202, "accepted")
