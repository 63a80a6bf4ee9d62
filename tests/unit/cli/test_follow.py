"""Following a run until it ends."""

from __future__ import annotations

import io

import httpx
import pytest
from rich.console import Console
from tests.unit.cli.server import Answer, Server, snapshot

from ductor.cli.client import Refused, Unreachable
from ductor.cli.failure import Failure
from ductor.cli.follow import PATIENCE_SECONDS, follow, require_completed

ROUTE = "GET /api/v2/workflow-runs/run-1/snapshot"
GONE = httpx.ConnectError("Connection refused")


class Waits:
    """Stands in for sleep and adds up."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, seconds: float) -> None:
        self.seconds += seconds


def followed(answers: list[Answer], *, terminal: bool = False) -> tuple[str, str]:
    """The final status and the text shown."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=100, height=30, highlight=False, color_system=None)
    end = follow(Server({ROUTE: answers}).client(), "run-1", "hello", console, sleep=Waits())
    return str(end["status"]), text.getvalue()


def test_without_a_terminal_each_change_is_one_line() -> None:
    done = {"status": "completed", "latest_output_json": '{"result":{"message":"hello"}}'}
    waiting = {
        "status": "waiting",
        "waiting_on": {"kind": "timer", "detail": "step pause", "deadline_at": "2026-01-01T00:00:07Z"},
    }
    status, text = followed(
        [
            (200, snapshot("running", greet="running", pause="pending")),
            (200, snapshot("waiting", greet=done, pause=waiting)),
            (200, snapshot("waiting", greet=done, pause=waiting)),
            (200, snapshot("completed", greet=done, pause="completed")),
        ]
    )

    assert status == "completed"
    assert text.splitlines() == [
        "greet: running",
        "hello: running",
        'greet: completed  {"result":{"message":"hello"}}',
        "pause: waiting  for timer",
        "hello: waiting",
        "pause: completed",
        "hello: completed",
    ]


def test_a_retry_is_a_change() -> None:
    first = {"status": "running", "attempt": 1}
    second = {"status": "running", "attempt": 2}
    _, text = followed(
        [
            (200, snapshot("running", a=first)),
            (200, snapshot("running", a=second)),
            (200, snapshot("failed", a="failed")),
        ]
    )

    assert text.splitlines()[:3] == ["a: running", "hello: running", "a: running (attempt 2)"]


def test_values_with_brackets_are_shown_as_they_are() -> None:
    _, text = followed([(200, snapshot("completed", a={"status": "completed", "latest_output_json": '["[bold]x"]'}))])

    assert '["[bold]x"]' in text


def test_terminal_shows_every_node_of_the_end() -> None:
    _, text = followed([(200, snapshot("completed", greet="completed", pause="completed"))], terminal=True)

    assert "greet" in text
    assert "pause" in text


def test_many_nodes_are_counted_instead_of_scrolled_away() -> None:
    nodes = {f"step{index}": "completed" for index in range(200)} | {"broken": "failed"}
    _, text = followed([(200, snapshot("failed", **nodes))], terminal=True)

    assert "broken" in text
    assert "more" in text or "… and 179 completed" in text


def test_restart_of_the_server_does_not_end_the_watch() -> None:
    status, _ = followed([(200, snapshot("running")), GONE, GONE, (200, snapshot("completed"))])

    assert status == "completed"


def test_server_that_stays_away_ends_the_watch() -> None:
    waits = Waits()
    with pytest.raises(Unreachable):
        follow(Server({ROUTE: [GONE]}).client(), "run-1", "hello", Console(file=io.StringIO()), sleep=waits)

    assert PATIENCE_SECONDS - 2 <= waits.seconds <= PATIENCE_SECONDS + 2


def test_unknown_run_is_refused_at_once() -> None:
    with pytest.raises(Refused, match="NOT_FOUND"):
        followed([(404, {"error_code": "NOT_FOUND", "message": "no such run", "errors": []})])


def test_only_completed_is_success() -> None:
    require_completed({"status": "completed"})
    for status in ("failed", "cancelled", "terminated", "timed_out", "merged"):
        with pytest.raises(Failure, match=f"run r ended as {status}"):
            require_completed({"status": status, "run_id": "r"})
