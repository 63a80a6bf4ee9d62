"""Schedules from the command line."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.cli.server import Answer, Server
from typer.testing import CliRunner

from ductor.cli import access
from ductor.cli.access import Access
from ductor.cli.main import app

RUNNER = CliRunner()
ALL = "/api/workflow-schedules"
ONE = f"{ALL}/report"
DETAIL: dict[str, Any] = {
    "family_slug": "report",
    "environment": "default",
    "cron": "0 9 * * *",
    "rate_ms": None,
    "timezone": "Europe/Berlin",
    "paused": False,
    "next_occurrence_at": "2026-12-01T08:00:00.000Z",
    "last_occurrence": {"outcome": "fired"},
    "counts": {"fired": 3, "skipped": 1},
}
SKIPPED = {"scheduled_at": "2026-11-30T08:00:00.000Z", "outcome": "skipped", "run_id": "run-1", "count": 1}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    routes: dict[str, list[Answer]] = {
        f"GET {ALL}": [
            (200, {"data": [DETAIL], "next_cursor": "more"}),
            (200, {"data": [{**DETAIL, "family_slug": "other", "paused": True}], "next_cursor": None}),
        ],
        f"GET {ONE}": [(200, {"data": DETAIL})],
        f"GET {ONE}/occurrences": [(200, {"data": [SKIPPED]})],
        f"GET {ONE}/preview": [(200, {"data": {"occurrences": ["2026-12-01T08:00:00.000Z"]}})],
        f"POST {ONE}:pause": [(202, {"data": {**DETAIL, "paused": True}})],
        f"POST {ONE}:resume": [(202, {"data": DETAIL})],
        f"POST {ONE}:triggerNow": [(202, {"data": {"run_id": "run-2"}})],
        f"POST {ONE}:backfill": [(202, {"data": {"request_id": "b", "status": "completed", "started": 2}})],
    }
    made = Server(routes)
    monkeypatch.setattr(access, "find", lambda data: Access("http://x", "k", "t"))
    monkeypatch.setattr("ductor.cli.client.Client", lambda _: made.client())
    return made


def run(*arguments: str) -> str:
    result = RUNNER.invoke(app, ["schedules", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_list_has_every_page_and_says_what_is_next(server: Server) -> None:
    first, second = run("list").splitlines()[1:]
    assert first.split()[:2] == ["report", "default"]
    assert "0 9 * * *" in first
    assert first.split()[-3:] == ["Europe/Berlin", "2026-12-01T08:00:00.000Z", "fired"]
    assert "paused" in second


def test_one_schedule_shows_its_counts_and_last_occurrences(server: Server) -> None:
    output = run("show", "report")
    assert "counts: 3 fired, 1 skipped" in output
    assert "2026-11-30T08:00:00.000Z  skipped  run-1" in output


def test_a_preview_is_one_instant_a_line(server: Server) -> None:
    assert run("preview", "report", "--count", "1", "--env", "prod") == "2026-12-01T08:00:00.000Z\n"
    assert server.requests[-1].url.params == server.requests[-1].url.params.merge({"count": "1", "environment": "prod"})


def test_controls_have_an_id_of_their_own_and_a_reason(server: Server) -> None:
    assert run("pause", "report", "--reason", "holiday") == "report paused\n"
    body = server.bodies(f"POST {ONE}:pause")[0]
    assert (body["reason"], bool(body["request_id"])) == ("holiday", True)
    assert run("resume", "report") == "report fires next at 2026-12-01T08:00:00.000Z\n"


def test_a_run_started_now_is_printed(server: Server) -> None:
    assert run("trigger-now", "report", "--overlap", "allow_all", "--request-id", "n") == "run-2\n"
    assert server.bodies(f"POST {ONE}:triggerNow")[0]["overlap_policy"] == "allow_all"


def test_a_backfill_says_how_far_it_is(server: Server) -> None:
    assert run("backfill", "report", "--from", "-2d", "--to", "-1d").startswith("backfill b completed: 2 started")
    body = server.bodies(f"POST {ONE}:backfill")[0]
    assert (body["start_at"], body["end_at"]) == ("-2d", "-1d")
