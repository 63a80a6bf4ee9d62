"""The guide's approval as printed there, over HTTP against a real server, with keys in and outside its audience."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.e2e.server import Server, publish, status
from tests.unit.validation.references import REVIEW_JSON

DEADLINE_S = 20.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("approval") / "data", {})
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def reviewer(server: Server) -> Iterator[httpx.Client]:
    """The first key: it has the role `operator`."""
    with server.client() as client:
        yield client


@pytest.fixture(scope="module")
def definition(reviewer: httpx.Client) -> str:
    return publish(reviewer, json.loads(REVIEW_JSON))


@pytest.fixture
def run_id(reviewer: httpx.Client, definition: str) -> str:
    """A run whose gate is open."""
    answer = reviewer.post(f"/api/v2/workflow-definitions/{definition}:trigger", json={"subject_type": "demo"})
    assert answer.status_code == 202, answer.text
    run_id = str(answer.json()["run_id"])
    until(lambda: nodes(reviewer, run_id)["review"]["status"] == "waiting")
    return run_id


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def nodes(client: httpx.Client, run_id: str) -> Any:
    return client.get(f"/api/v2/workflow-runs/{run_id}/snapshot").json()["nodes"]


def decide(client: httpx.Client, run_id: str, verb: str, request_id: str, **fields: Any) -> httpx.Response:
    path = f"/api/v2/workflow-runs/{run_id}/steps/review:{verb}"
    return client.post(path, json={"request_id": request_id, **fields})


def key(server: Server, path: Path, **grant: Any) -> httpx.Client:
    """A client with a new key of the same tenant."""
    lines = path.read_text().splitlines()
    values = dict(line.removeprefix("export ").split("=", 1) for line in lines)
    headers = {"Authorization": f"Bearer {values['DUCTOR_API_KEY']}", "X-Tenant-ID": values["DUCTOR_TENANT_ID"]}
    issued = httpx.post(f"{server.url}/api/admin/api-keys", headers=headers, json={"name": "k", **grant})
    assert issued.status_code == 201, issued.text
    headers["Authorization"] = f"Bearer {issued.json()['data']['key']}"
    return httpx.Client(base_url=server.url, headers=headers, timeout=30)


def test_the_gate_is_open_and_says_for_whom(reviewer: httpx.Client, run_id: str) -> None:
    shown = nodes(reviewer, run_id)
    assert shown["done"]["status"] == "pending"
    waiting = shown["review"]["waiting_on"]
    assert (waiting["kind"], waiting["detail"]) == ("approval", "step review: a decision by role operator")
    assert waiting["deadline_at"] is not None
    assert status(reviewer, run_id) == "waiting"


def test_an_approval_lets_the_work_go_on(reviewer: httpx.Client, run_id: str) -> None:
    answer = decide(reviewer, run_id, "approve", "d-1", approver_id="ada", comment="fine")
    assert (answer.status_code, answer.json()["status"]) == (202, "accepted")
    until(lambda: status(reviewer, run_id) == "completed")
    done = nodes(reviewer, run_id)["done"]
    assert json.loads(done["latest_output_json"]) == {"result": {"reviewed": True}}
    output = reviewer.get(f"/api/v2/workflow-runs/{run_id}/nodes/review/output").json()["output"]
    assert (output["decision"], output["approver_id"], output["comment"]) == ("approved", "ada", "fine")


def test_a_rejection_that_nobody_takes_up_fails_the_run(reviewer: httpx.Client, run_id: str) -> None:
    assert decide(reviewer, run_id, "reject", "d-1").status_code == 202
    until(lambda: status(reviewer, run_id) == "failed")
    assert nodes(reviewer, run_id)["done"]["status"] == "pending"


@pytest.mark.parametrize("verb", ["approve", "reject"])
@pytest.mark.parametrize(
    ("grant", "code"),
    [
        ({"scopes": ["workflow_run:write", "workflow:read"], "roles": ["clerk"]}, "AUDIENCE_MISMATCH"),
        ({"scopes": ["workflow_run:write"], "user": "operator"}, "AUDIENCE_MISMATCH"),
        ({"roles": ["viewer"]}, "SCOPE_MISSING"),
    ],
)
def test_a_refused_decision_leaves_the_gate_waiting(
    server: Server, reviewer: httpx.Client, run_id: str, verb: str, grant: dict[str, Any], code: str
) -> None:
    with key(server, server.data / "admin.env", **grant) as outsider:
        answer = decide(outsider, run_id, verb, "d-1")
    assert (answer.status_code, answer.json()["error_code"]) == (403, "PERMISSION_DENIED")
    assert [item["code"] for item in answer.json()["errors"]] == [code]
    shown = nodes(reviewer, run_id)
    assert (shown["review"]["status"], shown["done"]["status"]) == ("waiting", "pending")
    assert decide(reviewer, run_id, "approve", "d-2").status_code == 202
    until(lambda: status(reviewer, run_id) == "completed")


def test_a_late_decision_is_accepted_and_audited(reviewer: httpx.Client, run_id: str) -> None:
    decide(reviewer, run_id, "approve", "d-1")
    until(lambda: status(reviewer, run_id) == "completed")
    assert decide(reviewer, run_id, "reject", "d-2").status_code == 202
    path = f"/api/v2/workflow-runs/{run_id}/audit"
    until(lambda: len(reviewer.get(path).json()["items"]) == 2)
    late = reviewer.get(path).json()["items"][-1]
    assert (late["operation"], late["outcome"], late["code"]) == ("reject", "rejected", "ALREADY_DECIDED")


def test_an_open_gate_survives_a_kill(server: Server, reviewer: httpx.Client, run_id: str) -> None:
    server.kill()
    server.start()
    assert decide(reviewer, run_id, "approve", "d-1").status_code == 202
    until(lambda: status(reviewer, run_id) == "completed")
