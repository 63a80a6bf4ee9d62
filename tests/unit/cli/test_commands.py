"""The commands as a shell sees them: output, standard error, exit codes."""

from __future__ import annotations

import contextlib
import io
import json
import re
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from tests.api.world import ApiWorld
from tests.unit.cli.server import Server, snapshot
from typer.testing import CliRunner, Result

from ductor import __version__
from ductor.api.app import api_routes
from ductor.bootstrap.local_app import local_app
from ductor.cli import runs, serve, trigger
from ductor.cli.failure import Exit
from ductor.cli.main import app

RUNNER = CliRunner()
KEYS = {"DUCTOR_API_KEY": "dk_1", "DUCTOR_TENANT_ID": "t-1", "DUCTOR_API_URL": "http://127.0.0.1:9"}


def test_version() -> None:
    assert RUNNER.invoke(app, ["--version"]).output == f"ductor {__version__}\n"


@pytest.mark.parametrize("command", [[], ["serve"], ["demo"], ["trigger"], ["runs"], ["workflow"]])
def test_every_command_explains_itself(command: list[str]) -> None:
    result = RUNNER.invoke(app, [*command, "--help"])

    assert result.exit_code == 0
    assert "Usage" in result.output


def test_failure_is_a_sentence_and_a_hint_on_standard_error() -> None:
    result = RUNNER.invoke(app, ["runs", "list"], env=KEYS)

    assert result.exit_code == Exit.UNREACHABLE
    assert result.stdout == ""
    assert result.stderr.startswith("error: no Ductor server answers at http://127.0.0.1:9")
    assert "hint: start one with `ductor serve`" in result.stderr


def test_missing_key_is_a_usage_error(tmp_path: Path) -> None:
    result = RUNNER.invoke(app, ["demo", "--data", str(tmp_path)], env=dict.fromkeys(KEYS))

    assert result.exit_code == Exit.USAGE
    assert "DUCTOR_API_KEY" in result.stderr


def test_port_in_use_is_told_before_any_data_is_touched(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = RUNNER.invoke(app, ["serve", "--port", str(port), "--data", str(tmp_path / "data")])

    assert result.exit_code == Exit.FAILED
    assert result.stderr.splitlines() == [
        f"error: cannot listen on 127.0.0.1 port {port}: another program listens there",
        "hint: choose another one with --port",
    ]
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::1", "http://[::1]:80"),
        ("::", "http://[::1]:80"),
        ("my-host", "http://my-host:80"),
    ],
)
def test_address_is_one_that_this_machine_can_call(host: str, url: str) -> None:
    assert serve.address(host, 80) == url


def test_runs_list_shows_a_line_per_run_and_the_next_page(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {
        "run_id": "0190a1b2-0000-7000-8000-000000000001",
        "status": "waiting",
        "workflow_type": "orders",
        "definition_version": 3,
        "started_at": "2026-01-01T00:00:00Z",
        "finished_at": None,
        "waiting_on": {"kind": "timer", "detail": "step hold"},
    }
    server = Server({"GET /api/workflows/runs": [(200, {"data": [row], "next_cursor": "c-2"})]})
    monkeypatch.setattr(runs, "Client", lambda _access: server.client())

    result = RUNNER.invoke(
        app, ["runs", "list", "--family", "orders", "--active", "--label", "order=o-1", "--subject", "lead:7"], env=KEYS
    )

    lines = result.stdout.splitlines()
    assert lines[1].split()[:3] == [row["run_id"], "orders", "v3"]
    assert "timer: step hold" in lines[1]
    assert lines[-1] == "more: add --cursor c-2"
    assert dict(server.requests[0].url.params) == {
        "workflow_type": "orders",
        "active_only": "true",
        "label.order": "o-1",
        "subject_type": "lead",
        "subject_id": "7",
        "limit": "20",
    }


EVERY_FILTER = {
    "--family": ("orders", {"workflow_type": "orders"}),
    "--status": ("failed", {"status": "failed"}),
    "--active": (None, {"active_only": "true"}),
    "--started-after": ("-1h", {"started_after": "-1h"}),
    "--started-before": ("2026-01-01T00:00:00Z", {"started_before": "2026-01-01T00:00:00Z"}),
    "--subject": ("lead:7:a", {"subject_type": "lead", "subject_id": "7:a"}),
    "--label": ("order=o-1", {"label.order": "o-1"}),
    "--attr": ("tier=gold", {"attr.tier": "gold"}),
    "--root": ("r-1", {"root_run_id": "r-1"}),
    "--parent": ("r-2", {"parent_run_id": "r-2"}),
    "--journey": ("j-1", {"journey_id": "j-1"}),
    "--schedule": ("nightly", {"schedule": "nightly"}),
    "--environment": ("prod", {"environment": "prod"}),
    "--definition": ("d-1", {"definition_id": "d-1"}),
    "--q": ("o-", {"q": "o-"}),
    "--limit": ("7", {"limit": "7"}),
    "--cursor": ("c-2", {"cursor": "c-2"}),
}


def listed(monkeypatch: pytest.MonkeyPatch, options: list[str]) -> dict[str, str]:
    """The query that `runs list` sends."""
    server = Server({"GET /api/workflows/runs": [(200, {"data": [], "next_cursor": None})]})
    monkeypatch.setattr(runs, "Client", lambda _access: server.client())
    result = RUNNER.invoke(app, ["runs", "list", *options], env=KEYS)
    assert result.exit_code == 0, result.stderr
    return dict(server.requests[0].url.params)


@pytest.mark.parametrize("option", EVERY_FILTER)
def test_an_option_of_runs_list_is_its_filter(monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    value, query = EVERY_FILTER[option]
    assert listed(monkeypatch, [option, *([value] if value else [])]) == {"limit": "20", **query}


def test_every_filter_of_the_list_of_runs_has_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    options = [word for option, (value, _) in EVERY_FILTER.items() for word in (option, value) if word]
    sent = {re.sub(r"^(label|attr)\..*", r"\1.", name) for name in listed(monkeypatch, options)}
    routes = api_routes(ApiWorld().deps)
    assert sent == {name for route in routes if route.path == "/api/workflows/runs" for name in route.query}


@pytest.mark.parametrize(("subject", "query"), [("lead:", {"subject_type": "lead"}), (":7", {"subject_id": "7"})])
def test_runs_list_takes_one_side_of_a_subject(
    monkeypatch: pytest.MonkeyPatch, subject: str, query: dict[str, str]
) -> None:
    assert listed(monkeypatch, ["--subject", subject]) == {"limit": "20", **query}


@pytest.mark.parametrize("options", [["--subject", "lead"], ["--subject", ":"], ["--attr", "tier"], ["--label", "=x"]])
def test_runs_list_says_how_a_pair_is_written(options: list[str]) -> None:
    result = RUNNER.invoke(app, ["runs", "list", *options], env=KEYS)
    assert result.exit_code == Exit.USAGE
    assert f"{options[0]}: write it as" in result.stderr


def test_runs_show_has_error_and_output_of_every_node(monkeypatch: pytest.MonkeyPatch) -> None:
    error = {"code": "CARD_DECLINED", "message": "no [funds]"}
    state = snapshot(
        "failed",
        quote={"status": "completed", "latest_output_json": '{"amount":1200}'},
        charge={"status": "failed", "attempt": 3, "error": error},
    )
    summary = {"workflow_type": "orders", "definition_version": 1, "error": error}
    server = Server(
        {
            "GET /api/workflows/runs/run-1": [(200, {"data": {"summary": summary}})],
            "GET /api/v2/workflow-runs/run-1/snapshot": [(200, state)],
        }
    )
    monkeypatch.setattr(runs, "Client", lambda _access: server.client())

    result = RUNNER.invoke(app, ["runs", "show", "run-1"], env=KEYS)

    assert result.exit_code == 0
    assert '{"amount":1200}' in result.stdout
    assert "attempt 3" in result.stdout
    assert "\nerror: CARD_DECLINED: no [funds]\n" in result.stdout


def test_runs_show_says_in_words_what_a_run_waits_for_and_why_it_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = {"kind": "approval", "detail": "step ok: a decision by role operator", "deadline_at": None}
    stalled = {"reason": "the state cannot be read", "since": None}
    summary = {"workflow_type": "orders", "waiting_on": waiting, "stalled": stalled}
    server = Server(
        {
            "GET /api/workflows/runs/run-1": [(200, {"data": {"summary": summary}})],
            "GET /api/v2/workflow-runs/run-1/snapshot": [(200, snapshot("waiting"))],
        }
    )
    monkeypatch.setattr(runs, "Client", lambda _access: server.client())

    result = RUNNER.invoke(app, ["runs", "show", "run-1"], env=KEYS)

    assert "waiting on: approval: step ok: a decision by role operator\n" in result.stdout
    assert "stalled: the state cannot be read; a redrive goes on\n" in result.stdout


def test_runs_watch_fails_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(
        {
            "GET /api/workflows/runs/run-1": [(200, {"data": {"summary": {"workflow_type": "orders"}}})],
            "GET /api/v2/workflow-runs/run-1/snapshot": [(200, snapshot("cancelled"))],
        }
    )
    monkeypatch.setattr(runs, "Client", lambda _access: server.client())

    result = RUNNER.invoke(app, ["runs", "watch", "run-1"], env=KEYS)

    assert result.exit_code == Exit.FAILED
    assert result.stdout == "orders run-1: cancelled\n"
    assert result.stderr.startswith("error: run run-1 ended as cancelled")


def test_the_command_line_loads_nothing_heavy_before_a_command_needs_it() -> None:
    heavy = ("rich", "httpx", "yaml", "uvicorn", "pydantic", "boto3", "ductor.bootstrap", "ductor.validation")
    code = f"import sys, ductor.cli.main; print([name for name in {heavy} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def triggered(monkeypatch: pytest.MonkeyPatch, status: str, *options: str) -> Result:
    name = "0190a1b2-0000-7000-8000-000000000000"
    server = Server(
        {
            f"POST /api/v2/workflow-definitions/{name}:trigger": [(202, {"run_id": "run-1", "status": "running"})],
            "GET /api/v2/workflow-runs/run-1/snapshot": [(200, snapshot(status, a="completed"))],
            "GET /api/workflows/runs/run-1/output": [(200, {"data": {"output": {"n": 9007199254740993}}})],
        }
    )
    monkeypatch.setattr(trigger, "Client", lambda _access: server.client())
    return RUNNER.invoke(app, ["trigger", name, *options], env=KEYS)


def test_trigger_answers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert triggered(monkeypatch, "running").stdout == "run run-1  running\n"


def test_trigger_that_waits_ends_with_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    result = triggered(monkeypatch, "completed", "--wait")

    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == 'output: {"n": 9007199254740993}'


def test_trigger_keeps_standard_output_to_one_json_document(monkeypatch: pytest.MonkeyPatch) -> None:
    result = triggered(monkeypatch, "completed", "--wait", "--format", "json")

    assert json.loads(result.stdout) == {
        "run_id": "run-1",
        "status": "completed",
        "output": {"n": 9007199254740993},
    }


def test_trigger_that_waits_fails_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    result = triggered(monkeypatch, "failed", "--wait")

    assert result.exit_code == Exit.FAILED
    assert "output" not in result.stdout


def test_a_narrow_terminal_never_cuts_a_run_id() -> None:
    run_id = "0190a1b2-0000-7000-8000-000000000001"
    row = {
        "run_id": run_id,
        "status": "completed",
        "workflow_type": "a_rather_long_family_slug",
        "definition_version": 3,
    }
    text = io.StringIO()
    console = Console(file=text, width=80, highlight=False)

    console.print(runs._table([row], console.width))

    assert run_id in text.getvalue()
    assert "completed" in text.getvalue()


def refused_start(data: Path) -> str:
    """What `serve` says on standard error when it cannot start."""
    result = RUNNER.invoke(app, ["serve", "--port", "0", "--data", str(data)])

    assert result.exit_code == Exit.FAILED
    assert result.stdout == ""
    return result.stderr


def test_data_folder_that_is_a_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")

    assert refused_start(tmp_path / "data") == f"error: cannot use the data folder {tmp_path}/data: File exists\n"


def test_data_file_of_a_newer_release_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "ductor.db"
    local_app(tmp_path).stop()
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")

    assert "newer Ductor" in refused_start(tmp_path)
    with contextlib.closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (99,)


def test_file_of_another_program_is_refused(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "ductor.db")) as connection:
        connection.execute("CREATE TABLE t (a)")

    assert "of another program" in refused_start(tmp_path)


def test_actions_that_cannot_be_loaded_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUCTOR_ACTIONS", "no_such_module_here")

    assert refused_start(tmp_path).startswith("error: the actions of module 'no_such_module_here' cannot be loaded")
