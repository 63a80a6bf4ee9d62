"""Events over HTTP against a real server: a run that waits is matched, once, also across a kill."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.e2e.server import Server, publish, status
from tests.e2e.test_approval import nodes, until

EXAMPLE = Path(__file__).parents[2] / "events" / "payment_and_shipment.yaml"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("events") / "data", {})
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture(scope="module")
def definition(client: httpx.Client) -> str:
    return publish(client, yaml.safe_load(EXAMPLE.read_text())["definition"])


def started(client: httpx.Client, definition: str, order: str) -> str:
    """The id of a run that waits to be paid."""
    body = {"input": {"order": order, "amount": 100}}
    run_id = str(client.post(f"/api/v2/workflow-definitions/{definition}:trigger", json=body).json()["run_id"])
    until(lambda: nodes(client, run_id)["paid"]["status"] == "waiting")
    return run_id


def send(client: httpx.Client, name: str, order: str, event_id: str, payload: Any = None) -> int:
    body = {"event_name": name, "correlation_key": order, "event_id": event_id, "payload": payload}
    answer = client.post("/api/v2/workflow-events:publish", json=body)
    assert (answer.status_code, answer.json()["status"]) == (202, "accepted"), answer.text
    return int(answer.json()["matched"])


def _goes_on(client: httpx.Client, run_id: str) -> bool:
    """Whether the run has been paid and waits for what comes next."""
    return bool(nodes(client, run_id)["both"]["status"] == "waiting")


def test_the_example_from_payment_to_its_end(client: httpx.Client, definition: str) -> None:
    run_id = started(client, definition, "o-1")
    waiting = nodes(client, run_id)["paid"]["waiting_on"]
    assert waiting["kind"] == "event"
    assert "order.paid" in waiting["detail"]
    assert send(client, "order.paid", "o-1", "too-little", {"amount": 99}) == 0
    assert send(client, "order.paid", "o-1", "enough", {"amount": 100}) == 1
    assert send(client, "order.paid", "o-1", "enough", {"amount": 100}) == 0
    until(lambda: nodes(client, run_id)["both"]["status"] == "waiting")
    assert send(client, "invoice.sent", "o-1", "i") == 1
    assert send(client, "parcel.sent", "o-1", "p", {"carrier": "x"}) == 1
    until(lambda: status(client, run_id) == "completed")
    done = json.loads(nodes(client, run_id)["done"]["latest_output_json"])
    assert done == {"result": {"paid": 100, "parcel": {"carrier": "x"}}}


def test_two_runs_are_matched_by_one_event(client: httpx.Client, definition: str) -> None:
    runs = [started(client, definition, "o-2") for _ in range(2)]
    assert send(client, "order.paid", "o-2", "e", {"amount": 100}) == 2
    for run_id in runs:
        until(partial(_goes_on, client, run_id))


def test_an_event_just_before_the_wait_is_found_by_looking_back(client: httpx.Client, definition: str) -> None:
    assert send(client, "order.paid", "o-3", "early", {"amount": 100}) == 0
    body = {"input": {"order": "o-3", "amount": 100}}
    run_id = client.post(f"/api/v2/workflow-definitions/{definition}:trigger", json=body).json()["run_id"]
    until(lambda: nodes(client, run_id)["both"]["status"] == "waiting")


def test_a_wait_survives_a_kill(server: Server, client: httpx.Client, definition: str) -> None:
    run_id = started(client, definition, "o-4")
    server.kill()
    server.start()
    assert send(client, "order.paid", "o-4", "e", {"amount": 100}) == 1
    until(lambda: nodes(client, run_id)["both"]["status"] == "waiting")
