"""Cases that other engines got wrong, against a real server over HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.e2e.server import Server, publish, status

pytestmark = pytest.mark.slow

DEADLINE_S = 20.0
NUMBERS = {"id": 9007199254740993, "low": -(2**63), "f": 0.1, "e": 1e-140, "h": 1e300, "t": True, "text": "é🙂"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder: Path = tmp_path_factory.mktemp("cases")
    server = Server(folder / "data", {})
    server.start()
    with server.client() as http:
        yield http
    server.stop()


def trigger(client: httpx.Client, definition: str, body: Any) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    return client.post(f"/api/v2/workflow-definitions/{definition}:trigger", content=content, headers=headers)


def until(client: httpx.Client, run_id: str, wanted: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while status(client, run_id) != wanted:
        assert time.monotonic() < deadline, status(client, run_id)


def test_b39_thirty_triggers_with_one_key_make_one_run(client: httpx.Client) -> None:
    definition = publish(
        client, {"family_slug": "b39", "steps": [{"ref": "a", "type": "action", "action": "core.echo"}]}
    )
    for key in ("one", "with spaces", "🙂"):
        body = {"idempotency_key": key, "input": {"n": 1}}
        with ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(trigger, [client] * 30, [definition] * 30, [body] * 30))
        runs = {answer.json()["run_id"] for answer in answers}
        assert [answer.status_code for answer in answers] == [202] * 30
        assert len(runs) == 1
        other = trigger(client, definition, {**body, "input": {"n": 2}})
        assert other.status_code == 409
        assert other.json()["errors"][0]["code"] == "IDEMPOTENCY_KEY_REUSED"
        assert runs.pop() in other.text


def test_b42_numbers_survive_from_trigger_to_output(client: httpx.Client) -> None:
    project = {name: f"INPUT.{name}" for name in NUMBERS}
    args = {"operation": "project", "input_expr": "TRIGGER.payload", "project": project}
    steps = [
        {"ref": "shape", "type": "dataflow", "args": args},
        {"ref": "echo", "type": "action", "action": "core.echo", "args": dict[str, str]()},
    ]
    steps[1]["args"] = {name: f"${{{{ STEPS.shape.output.result.{name} }}}}" for name in NUMBERS}
    edges = [{"source_ref": "shape", "target_ref": "echo"}]
    definition = publish(client, {"family_slug": "b42", "steps": steps, "edges": edges})
    run_id = trigger(client, definition, {"input": NUMBERS}).json()["run_id"]
    until(client, run_id, "completed")
    output = json.loads(client.get(f"/api/v2/workflow-runs/{run_id}/nodes/echo/output").text)["output"]
    assert output == NUMBERS
    assert output["t"] is True


@pytest.mark.parametrize(
    "body",
    [
        b'{"input": NaN}',
        b'{"input": Infinity}',
        b'{"input": 1e400}',
        b'{"input": 123456789012345678901234567890123456789012}',
        b'{"input": {"a": 1, "a": 2}}',
        b'{"input": "\\ud800"}',
        b'{"input": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"input": "' + b"x" * 10_000_000 + b'"}',
        b'{"input": "' + b"x" * 1_100_000 + b'"}',
    ],
    ids=["nan", "infinity", "1e400", "42 digits", "duplicate key", "surrogate", "deep", "10 MB", "1.1 MB"],
)
def test_odd_bodies_are_refused_with_a_code_before_a_run_exists(client: httpx.Client, body: bytes) -> None:
    definition = publish(
        client,
        {"family_slug": f"odd_{abs(hash(body))}", "steps": [{"ref": "a", "type": "action", "action": "core.echo"}]},
    )
    answer = trigger(client, definition, body)
    assert answer.status_code in (400, 413)
    assert answer.json()["errors"][0]["code"]
    family = client.get(f"/api/workflow-definitions/{definition}").json()["data"]["family_slug"]
    assert client.get(f"/api/workflows/runs?workflow_type={family}").json()["data"] == []
