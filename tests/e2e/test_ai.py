"""AI steps on a real server, with models behind HTTP: both formats, a kill in the middle, a key that nobody sees."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.e2e.server import Server, publish, status
from tests.unit.ai.speaker import Heard, Say, Speaker

pytestmark = pytest.mark.e2e

KEY = "sk-very-secret-0123456789"
DEADLINE_S = 40.0


class Models:
    """One speaker for all tests of a server; each test says what it says."""

    def __init__(self) -> None:
        self.script: Callable[[Heard], Say] = lambda heard: Say("nothing to say")
        self.speaker = Speaker(self._say)

    def _say(self, heard: Heard) -> Say:
        return self.script(heard)


@pytest.fixture(scope="module")
def models() -> Iterator[Models]:
    made = Models()
    with made.speaker:
        yield made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, models: Models) -> Iterator[Server]:
    environment = {
        "DUCTOR_HTTP_ALLOW_PRIVATE": "1",
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": models.speaker.url,
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": KEY,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "DUCTOR_BEDROCK_REGION": "us-east-1",
    }
    server = Server(tmp_path_factory.mktemp("ai") / "data", environment)
    server.start()
    with admin(server) as client:
        body = {"slug": "models", "type": "openai", "secrets": {"api_key": KEY}}
        made = client.post("/api/connections", json={**body, "settings": {"base_url": f"{models.speaker.url}/v1"}})
        assert made.status_code == 201, made.text
        assert KEY not in made.text
    yield server
    server.stop()


def admin(server: Server) -> httpx.Client:
    lines = (server.data / "admin.env").read_text().splitlines()
    values = dict(line.removeprefix("export ").split("=", 1) for line in lines)
    headers = {"Authorization": f"Bearer {values['DUCTOR_API_KEY']}", "X-Tenant-ID": values["DUCTOR_TENANT_ID"]}
    return httpx.Client(base_url=server.url, headers=headers, timeout=30)


def document(slug: str, kind: str, connection: str = "models", **args: Any) -> dict[str, Any]:
    step: dict[str, Any] = {"ref": "ask", "type": kind, "redaction_policy": "none", "timeout_ms": 30_000}
    step["args"] = {"model": "m-1", "prompt": "Sort ${{ TRIGGER.payload }}", "max_tokens": 50, **args}
    if connection:
        step["connection_ref"] = connection
    return {"environment": "default", "family_slug": slug, "title": slug, "steps": [step], "edges": []}


def start(client: httpx.Client, definition: dict[str, Any]) -> str:
    path = f"/api/v2/workflow-definitions/{publish(client, definition)}:trigger"
    answer = client.post(path, json={"input": {"n": 1}})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["run_id"])


def ended(client: httpx.Client, run_id: str) -> str:
    """The status of a run once it has ended."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        found = status(client, run_id)
        if found in ("completed", "failed", "timed_out", "cancelled"):
            return found
        time.sleep(0.02)
    raise AssertionError(f"the run did not end within {DEADLINE_S} s")


def attempts(client: httpx.Client, run_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/api/v2/workflow-runs/{run_id}/attempts").json()["items"]
    return found


@pytest.mark.parametrize("connection", ["models", ""])
def test_an_answer_that_does_not_fit_is_repaired(server: Server, models: Models, connection: str) -> None:
    schema = {"type": "object", "required": ["queue"], "properties": {"queue": {"type": "string"}}}
    models.script = lambda heard: Say('{"queue": "billing"}' if "does not fit" in str(heard.body) else "billing")
    with server.client() as client:
        run_id = start(client, document(f"sort_{connection}", "ai_action", connection, output_schema=schema))
        assert ended(client, run_id) == "completed"
        output = client.get(f"/api/workflows/runs/{run_id}/output").json()["data"]["output"]
        (step,) = client.get(f"/api/workflows/runs/{run_id}/steps").json()["data"]
        (attempt,) = attempts(client, run_id)
    assert output["ask"]["object"] == {"queue": "billing"}
    assert [(use["model"], use["calls"], use["input_tokens"]) for use in step["usage"]] == [("m-1", 2, 20)]
    assert attempt["usage"] == step["usage"]
    assert [(one["kind"], one["outcome"]) for one in attempt["conversation"]] == [("turn", "end_turn")] * 2
    assert '{"n":1}' in str(models.speaker.heard[-1].body)


def test_a_kill_between_turns_repeats_no_tool_call(server: Server, models: Models) -> None:
    gate, asked = threading.Event(), threading.Event()
    turns: list[int] = []

    def script(heard: Heard) -> Say:
        turn = sum(message["role"] == "assistant" for message in heard.body["messages"])
        turns.append(turn)
        if turn == 0:
            given = {"url": f"{models.speaker.url}/tool", "method": "POST", "json": {}}
            return Say("", calls=[("http_request", given)])
        if not gate.is_set():
            asked.set()
            return Say("too late", gate=gate)
        return Say("done")

    tools: list[Heard] = []

    def both(heard: Heard) -> Say:
        if heard.path == "/tool":
            tools.append(heard)
            return Say(raw=b'{"ok": true}')
        return script(heard)

    models.script = both
    with server.client() as client:
        run_id = start(client, document("kill", "ai_agent", tools=["http.request"], max_turns=4))
    assert asked.wait(DEADLINE_S)
    server.kill()
    gate.set()
    server.start()
    with server.client() as client:
        assert ended(client, run_id) == "completed"
        (attempt,) = attempts(client, run_id)
    assert (turns, len(tools)) == ([0, 1, 1], 1)
    assert tools[0].headers["idempotency-key"] == f"{run_id}/ask/c1/t0.0"
    assert attempt["deliveries"] == 2
    assert [one["kind"] for one in attempt["conversation"]] == ["turn", "tool", "turn"]


def test_a_refused_key_ends_the_run_and_is_shown_nowhere(server: Server, models: Models) -> None:
    models.script = lambda heard: Say(status=401, code="invalid_api_key", message=f"bad key {KEY}")
    with server.client() as client:
        run_id = start(client, document("refused", "ai_action"))
        assert ended(client, run_id) == "failed"
        (attempt,) = attempts(client, run_id)
        shown = "".join(
            client.get(path).text
            for path in (
                f"/api/workflows/runs/{run_id}",
                f"/api/workflows/runs/{run_id}/steps",
                f"/api/workflows/runs/{run_id}/events",
                f"/api/v2/workflow-runs/{run_id}/snapshot",
                f"/api/v2/workflow-runs/{run_id}/attempts",
            )
        )
    assert (attempt["error"]["code"], attempt["error"]["retryable"]) == ("AI_AUTH_FAILED", False)
    assert models.speaker.heard[-1].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in shown


def test_no_file_and_no_log_holds_the_key(server: Server, models: Models) -> None:
    models.script = lambda heard: Say(f"your key is {KEY}")
    with server.client() as client:
        run_id = start(client, document("leak", "ai_action"))
        assert ended(client, run_id) == "completed"
        output = client.get(f"/api/workflows/runs/{run_id}/output").json()["data"]["output"]
    assert output["ask"]["text"] == "your key is ***"
    found = [path for path in _files(server) if KEY.encode() in path.read_bytes()]
    assert found == []


def _files(server: Server) -> list[Path]:
    files = [path for path in server.data.rglob("*") if path.is_file()] + [server.log]
    assert any(path.name == "ductor.db" for path in files)
    return files
