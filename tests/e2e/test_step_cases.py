"""Many callers at the same moment against a real server: one decision, one event, one digest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest
from tests.e2e.server import Server, publish, status
from tests.e2e.test_approval import nodes, until

GATE: dict[str, Any] = {"ref": "gate", "type": "approval", "action": "approval"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    server = Server(tmp_path_factory.mktemp("cases") / "data", {})
    server.start()
    try:
        with server.client() as client:
            yield client
    finally:
        server.stop()


def note(ref: str) -> dict[str, Any]:
    return {"ref": ref, "type": "dataflow", "args": {"operation": "project", "project": {"at": f"'{ref}'"}}}


def published(client: httpx.Client, slug: str, *steps: dict[str, Any], edges: tuple[tuple[str, str, str], ...]) -> str:
    joined = [{"source_ref": source, "target_ref": target, "type": kind} for source, target, kind in edges]
    document = {"environment": "default", "family_slug": slug, "title": slug, "steps": list(steps), "edges": joined}
    return publish(client, document)


def trigger(client: httpx.Client, definition: str, **value: Any) -> str:
    body = {"input": value}
    return str(client.post(f"/api/v2/workflow-definitions/{definition}:trigger", json=body).json()["run_id"])


def at_once(count: int, act: Callable[[int], httpx.Response]) -> list[httpx.Response]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(act, range(count)))


def test_b25_twenty_decisions_at_the_same_moment(client: httpx.Client) -> None:
    gate = {**GATE, "redaction_policy": "none", "args": {"audience": {"roles": ["operator"]}}}
    edges = (("gate", "yes", "approved"), ("gate", "no", "rejected"))
    run_id = trigger(client, published(client, "b25", gate, note("yes"), note("no"), edges=edges))
    until(lambda: nodes(client, run_id)["gate"]["status"] == "waiting")

    def decide(number: int) -> httpx.Response:
        verb = "approve" if number % 2 else "reject"
        body = {"request_id": f"d{number}", "payload": {"by": number}}
        return client.post(f"/api/v2/workflow-runs/{run_id}/steps/gate:{verb}", json=body)

    answers = [*at_once(20, decide), *at_once(20, decide)]
    assert {answer.status_code for answer in answers} == {202}
    until(lambda: status(client, run_id) == "completed")
    shown = nodes(client, run_id)
    assert sorted(shown[ref]["status"] for ref in ("yes", "no")) == ["completed", "skipped"]
    audit = [
        event["data"]
        for event in client.get(f"/api/workflows/runs/{run_id}/events?limit=200").json()["data"]
        if "audit" in str(event["type"])
    ]
    outcomes = Counter((entry["outcome"], entry.get("code", "")) for entry in audit)
    assert outcomes == {("applied", ""): 1, ("rejected", "ALREADY_DECIDED"): 19}


def test_b23_of_two_events_at_the_same_moment_one_ends_the_wait(client: httpx.Client) -> None:
    args = {"event_name": "b23.paid", "correlation_key": "k"}
    wait = {"ref": "w", "type": "wait_event", "redaction_policy": "none", "args": args}
    run_id = trigger(client, published(client, "b23", wait, note("n"), edges=(("w", "n", "success"),)))
    until(lambda: nodes(client, run_id)["w"]["status"] == "waiting")

    def send(number: int) -> httpx.Response:
        body = {"event_name": "b23.paid", "correlation_key": "k", "event_id": f"e{number}", "payload": number}
        return client.post("/api/v2/workflow-events:publish", json=body)

    matched = [answer.json()["matched"] for answer in at_once(8, send)]
    assert sorted(matched) == [0] * 7 + [1]
    until(lambda: status(client, run_id) == "completed")
    assert f'"event_id":"e{matched.index(1)}"' in nodes(client, run_id)["w"]["latest_output_json"]


def test_twenty_runs_that_come_at_the_same_moment_are_one_digest(client: httpx.Client) -> None:
    args = {"digest_key": "k", "max_wait": "1h", "max_count": 20, "arrival": "${{ TRIGGER.payload.n }}"}
    digest = {"ref": "all", "type": "digest", "redaction_policy": "none", "args": args}
    definition = published(client, "meet", digest, note("n"), edges=(("all", "n", "success"),))
    path = f"/api/v2/workflow-definitions/{definition}:trigger"
    answers = at_once(20, lambda number: client.post(path, json={"input": {"n": number}}))
    runs = [str(answer.json()["run_id"]) for answer in answers]
    for run_id in runs:
        until(partial(lambda run_id: status(client, run_id) in ("completed", "merged"), run_id))
    led = [run_id for run_id in runs if status(client, run_id) == "completed"]
    assert len(led) == 1
    assert '"count":20' in nodes(client, led[0])["all"]["latest_output_json"]
