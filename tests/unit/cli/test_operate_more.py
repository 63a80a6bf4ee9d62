"""Controls of steps, of many runs and of all waits, from the command line: each is one request."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.cli.server import Answer, Server
from typer.testing import CliRunner

from ductor.cli import access
from ductor.cli.access import Access
from ductor.cli.main import app

RUNNER = CliRunner()
RUN = "/api/v2/workflow-runs/run-1"
ACCEPTED: Answer = (202, {"status": "accepted"})
DONE = {"batch_id": "b", "status": "completed", "accepted": 3, "refused": 1, "refusals": []}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    nodes = {f"POST {RUN}/nodes/a@3:{verb}": [ACCEPTED] for verb in ("pause", "updateRetryPolicy", "updateTimeout")}
    steps = {f"POST {RUN}/steps/gate:{verb}": [ACCEPTED] for verb in ("approve", "reject", "resolve")}
    made = Server(
        {
            **nodes,
            **steps,
            f"POST {RUN}:continueAsNew": [(202, {"status": "accepted", "new_run_id": "run-2"})],
            f"GET {RUN}/reset-targets": [(200, {"targets": [{"transition_seq": 4, "reason": "after a completed"}]})],
            "POST /api/v2/workflow-runs:batch": [(202, {**DONE, "status": "running"})],
            "GET /api/v2/workflow-runs/batches/b": [
                (200, {**DONE, "refusals": [{"run_id": "run-9", "code": "RUN_TERMINAL"}]})
            ],
            "POST /api/v2/workflow-events:publish": [(200, {"matched": 2, "started_runs": ["run-3"]})],
        }
    )
    monkeypatch.setattr(access, "find", lambda data: Access("http://x", "k", "t"))
    monkeypatch.setattr("ductor.cli.client.Client", lambda _: made.client())
    monkeypatch.setattr("ductor.cli.operate_many.LOOK_S", 0)
    return made


def printed(*command: str) -> str:
    result = RUNNER.invoke(app, list(command))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ("command", "route", "sent"),
    [
        (("node", "pause", "run-1", "a@3"), "nodes/a@3:pause", {}),
        (
            ("node", "retry-policy", "run-1", "a@3", "--max-attempts", "5"),
            "nodes/a@3:updateRetryPolicy",
            {"retry_max_attempts": 5},
        ),
        (("node", "timeout", "run-1", "a@3", "9000"), "nodes/a@3:updateTimeout", {"timeout_ms": 9_000}),
        (
            ("resolve", "run-1", "gate", "--payload", "[1]"),
            "steps/gate:resolve",
            {"outcome": "success", "payload": [1]},
        ),
        (
            ("resolve", "run-1", "gate", "--outcome", "error", "--message", "no"),
            "steps/gate:resolve",
            {"outcome": "error", "error": {"message": "no"}},
        ),
    ],
)
def test_controls_of_a_step(server: Server, command: tuple[str, ...], route: str, sent: dict[str, Any]) -> None:
    assert printed("runs", *command, "--request-id", "r", "--reason", "why").endswith("accepted\n")
    assert server.bodies(f"POST {RUN}/{route}") == [{"request_id": "r", "reason": "why", **sent}]


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_a_decision_has_who_and_why(server: Server, verb: str) -> None:
    command = ("runs", verb, "run-1", "gate", "--comment", "fine", "--approver", "ann", "--payload", "{}")
    assert printed(*command, "--request-id", "r") == f"{verb} accepted\n"
    said = {"comment": "fine", "approver_id": "ann", "payload": {}}
    assert server.bodies(f"POST {RUN}/steps/gate:{verb}") == [{"request_id": "r", **said}]


def test_continuing_as_new_prints_the_new_run(server: Server) -> None:
    command = ("runs", "continue-as-new", "run-1", "--context", '{"page": 2}', "--discard-pending")
    assert printed(*command) == "continueAsNew accepted\nnew run run-2\n"
    body = server.bodies(f"POST {RUN}:continueAsNew")[0]
    assert (body["seed_run_context"], body["discard_pending"]) == ({"page": 2}, True)


def test_the_points_of_a_reset_are_listed(server: Server) -> None:
    assert printed("runs", "reset-targets", "run-1") == "4  after a completed\n"


def test_a_batch_is_followed_to_its_end(server: Server) -> None:
    command = ("runs", "batch", "cancel", "--filter", "workflow_type=chain", "--filter", "label.order=42")
    assert printed(*command, "--wait") == "batch b completed: 3 accepted, 1 refused\n  run-9  RUN_TERMINAL\n"
    body = server.bodies("POST /api/v2/workflow-runs:batch")[0]
    assert (body["operation"], body["filter"]) == ("cancel", {"workflow_type": "chain", "label.order": "42"})


def test_a_batch_is_looked_at_later(server: Server) -> None:
    assert printed("runs", "batch-status", "b").startswith("batch b completed")


def test_an_event_tells_what_it_did(server: Server) -> None:
    command = ("publish-event", "order.paid", "--key", "order-42", "--payload", '{"amount": 1}', "--event-id", "e")
    assert printed(*command) == "matched 2\nstarted run-3\n"
    sent = {"event_name": "order.paid", "correlation_key": "order-42", "event_id": "e", "payload": {"amount": 1}}
    assert server.bodies("POST /api/v2/workflow-events:publish") == [sent]
