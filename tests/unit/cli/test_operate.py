"""Controls of runs from the command line."""

from __future__ import annotations

import pytest
from tests.unit.cli.server import Answer, Server
from typer.testing import CliRunner

from ductor.cli import access
from ductor.cli.access import Access
from ductor.cli.main import app

RUNNER = CliRunner()
RUN = "/api/v2/workflow-runs/run-1"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    routes: dict[str, list[Answer]] = {
        f"POST {RUN}:{verb}": [(202, {"status": "accepted"})] for verb in ("pause", "signal")
    }
    made = Server(
        {
            **routes,
            f"POST {RUN}:reset": [(202, {"status": "accepted", "new_run_id": "run-2"})],
            f"POST {RUN}:previewReset": [(200, {"kept": ["a"], "adopted": [], "rerun": ["b", "c"]})],
        }
    )
    monkeypatch.setattr(access, "find", lambda data: Access("http://x", "k", "t"))
    monkeypatch.setattr("ductor.cli.client.Client", lambda _: made.client())
    return made


def test_a_control_is_one_request_with_an_id_of_its_own(server: Server) -> None:
    result = RUNNER.invoke(app, ["runs", "pause", "run-1", "--reason", "holiday"])
    assert (result.exit_code, result.output) == (0, "pause accepted\n")
    body = server.bodies(f"POST {RUN}:pause")[0]
    assert (body["reason"], bool(body["request_id"])) == ("holiday", True)


def test_a_signal_has_its_payload(server: Server) -> None:
    command = ["runs", "signal", "run-1", "go", "--payload", '{"n": 1}', "--request-id", "r"]
    assert RUNNER.invoke(app, command).exit_code == 0
    assert server.bodies(f"POST {RUN}:signal") == [{"request_id": "r", "name": "go", "payload": {"n": 1}, "reason": ""}]


def test_a_reset_prints_the_new_run(server: Server) -> None:
    command = ["runs", "reset", "run-1", "--at", "7", "--input", 'a={"v": 1}', "--preserve", "b"]
    result = RUNNER.invoke(app, command)
    assert (result.exit_code, result.output) == (0, "reset accepted\nnew run run-2\n")
    body = server.bodies(f"POST {RUN}:reset")[0]
    assert (body["transition_seq"], body["input_overrides"], body["preserve_outputs"]) == (7, {"a": {"v": 1}}, ["b"])


def test_a_preview_asks_only(server: Server) -> None:
    result = RUNNER.invoke(app, ["runs", "reset", "run-1", "--at", "7", "--preview"])
    assert result.output == "kept: a\nadopted: -\nrerun: b, c\n"
    assert server.bodies(f"POST {RUN}:reset") == []
