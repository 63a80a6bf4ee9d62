"""Runs that events start, on a real server: once, also across a kill; and runs that start on the end of others."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.e2e.server import Server, publish, status
from tests.e2e.test_approval import nodes, until

pytestmark = pytest.mark.e2e

EXAMPLE = yaml.safe_load((Path(__file__).parents[2] / "events" / "order_paid.yaml").read_text())["definition"]
REFUSED = "/api/v2/workflow-events/refused-starts"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("triggers") / "data", {})
    server.start()
    with server.client() as client:
        publish(client, EXAMPLE)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def send(client: httpx.Client, event_id: str, payload: Any, name: str = "order.paid") -> dict[str, Any]:
    body = {"event_name": name, "event_id": event_id, "payload": payload}
    answer = client.post("/api/v2/workflow-events:publish", json=body)
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


def listed(client: httpx.Client, family: str) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = client.get(f"/api/workflows/runs?workflow_type={family}&limit=100&cursor={cursor}").json()
        runs += page["data"]
        cursor = page["next_cursor"]
        if not cursor:
            return runs


def simple(slug: str, **trigger: Any) -> dict[str, Any]:
    step = {"ref": "s", "type": "dataflow", "args": {"operation": "project", "project": {"v": "1"}}}
    return {"environment": "default", "family_slug": slug, "title": slug, "steps": [step], "triggers": [trigger]}


def test_the_example_runs_once_for_a_paid_order(client: httpx.Client) -> None:
    assert send(client, "small", {"order": "o-1", "amount": 100})["started_runs"] == []
    payload = {"order": "o-1", "amount": 12_900}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: send(client, "evt-1", payload), range(8)))
    (run_id,) = {run_id for answer in answers for run_id in answer["started_runs"]}
    until(lambda: status(client, run_id) == "completed")
    assert '"because_of":"evt-1"' in nodes(client, run_id)["ship"]["latest_output_json"].replace(" ", "")
    found = client.get("/api/workflows/runs?label.order=o-1").json()["data"]
    assert [run["run_id"] for run in found] == [run_id]


def test_what_cannot_start_is_answered_and_listed(client: httpx.Client) -> None:
    answer = send(client, "odd", {"order": "o-3", "amount": 500.5})
    assert [one["code"] for one in answer["refused_starts"]] == ["INPUT_INVALID"]
    assert send(client, "none", {"order": "o-1"})["refused_starts"][0]["code"] == "EXPRESSION_ERROR"
    assert [one["event_id"] for one in client.get(REFUSED).json()["items"]] == ["none", "odd"]


def test_an_event_sent_again_after_a_kill_has_its_one_run(server: Server, client: httpx.Client) -> None:
    payload = {"order": "o-2", "amount": 200}
    (run_id,) = send(client, "evt-2", payload)["started_runs"]
    server.kill()
    server.start()
    assert send(client, "evt-2", payload)["started_runs"] == []
    until(lambda: status(client, run_id) == "completed")
    assert len([run for run in listed(client, "order_paid") if run["run_id"] == run_id]) == 1


def test_rule_24_a_definition_that_starts_on_its_own_end_stops_after_32_runs(client: httpx.Client) -> None:
    condition = 'EVENT.payload.family_slug == "loop"'
    definition_id = publish(client, simple("loop", patterns=["ductor.run.completed"], condition=condition))
    assert client.post(f"/api/v2/workflow-definitions/{definition_id}:trigger", json={}).status_code == 202
    until(lambda: client.get(REFUSED).json()["items"][0]["code"] == "CAUSATION_TOO_DEEP")
    runs = listed(client, "loop")
    assert (len(runs), {run["status"] for run in runs}) == (33, {"completed"})
