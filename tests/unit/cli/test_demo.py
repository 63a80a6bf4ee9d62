"""The hello world as the command line walks it."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console
from tests.unit.cli.server import ACCESS, Answer, Server, snapshot

from ductor.cli import demo
from ductor.cli.failure import Failure

CREATE = "POST /api/workflow-definitions"
LIST = "GET /api/workflow-definitions"
RUN = {"run_id": "run-1", "status": "running"}
DONE = snapshot("completed", greet={"status": "completed", "latest_output_json": '{"result":{"message":"hello"}}'})
SUMMARY = {"data": {"summary": {"started_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:00:02.5Z"}}}
TAKEN = (
    409,
    {"error_code": "ALREADY_EXISTS", "message": "taken", "errors": [{"code": "DRAFT_EXISTS", "message": "m"}]},
)


def routes(**changes: list[Answer]) -> dict[str, list[Answer]]:
    base: dict[str, list[Answer]] = {
        CREATE: [(201, {"data": {"id": "d-1", "draft_revision": 1}})],
        "POST /api/workflow-definitions/d-1/publish": [(200, {"published": {"id": "v-1", "version": 1}})],
        "POST /api/v2/workflow-definitions/v-1:trigger": [(202, RUN)],
        "POST /api/v2/workflow-definitions/v-7:trigger": [(202, RUN)],
        "GET /api/v2/workflow-runs/run-1/snapshot": [(200, DONE)],
        "GET /api/workflows/runs/run-1": [(200, SUMMARY)],
    }
    return base | {
        {"create": CREATE, "listed": LIST, "snapshot": "GET /api/v2/workflow-runs/run-1/snapshot"}[name]: answers
        for name, answers in changes.items()
    }


def walked(monkeypatch: pytest.MonkeyPatch, server: Server) -> str:
    monkeypatch.setattr(demo, "Client", lambda _access: server.client())
    text = io.StringIO()
    demo.walk_through(ACCESS, Console(file=text, width=120, highlight=False))
    return text.getvalue()


def test_first_time_publishes_the_reviewed_draft_and_shows_the_greeting(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(routes())

    text = walked(monkeypatch, server)

    assert '{"message": "hello"}' in text
    assert "completed  in 2.5 s" in text
    assert server.bodies("POST /api/workflow-definitions/d-1/publish") == [{"expected_draft_revision": 1}]


def test_later_times_run_the_newest_version(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "d-1", "status": "DEFINITION_STATUS_DRAFT", "version": 8},
        {"id": "v-2", "status": "DEFINITION_STATUS_PUBLISHED", "version": 2},
        {"id": "v-7", "status": "DEFINITION_STATUS_PUBLISHED", "version": 7},
    ]
    text = walked(monkeypatch, Server(routes(create=[TAKEN], listed=[(200, {"data": rows})])))

    assert "version 7" in text


def test_a_draft_that_was_never_published_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": "d-1", "status": "DEFINITION_STATUS_DRAFT", "draft_revision": 3}]
    server = Server(routes(create=[TAKEN], listed=[(200, {"data": rows})]))

    walked(monkeypatch, server)

    assert server.bodies("POST /api/workflow-definitions/d-1/publish") == [{"expected_draft_revision": 3}]


def test_a_run_without_the_greeting_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Failure, match="without the greeting"):
        walked(monkeypatch, Server(routes(snapshot=[(200, snapshot("completed", greet="skipped"))])))


def test_a_run_that_failed_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Failure, match="ended as failed"):
        walked(monkeypatch, Server(routes(snapshot=[(200, snapshot("failed", greet="failed"))])))


def test_the_demo_leaves_the_slug_of_the_guide_free() -> None:
    assert demo.DOCUMENT["family_slug"] != "hello_world"
