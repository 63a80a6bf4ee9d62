"""`ductor runs tree` as a shell sees it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.cli.server import Server
from typer.testing import CliRunner

from ductor.cli import tree
from ductor.cli.main import app

RUNNER = CliRunner()
KEYS = {"DUCTOR_API_KEY": "dk_1", "DUCTOR_TENANT_ID": "t-1", "DUCTOR_API_URL": "http://127.0.0.1:9"}


def run(run_id: str, relation: str, asked_by: str = "", node: str = "") -> dict[str, Any]:
    return {
        "run_id": run_id,
        "relation": relation,
        "asked_by": asked_by,
        "node": node,
        "workflow_type": "orders",
        "definition_version": 3,
        "status": "completed",
    }


FOUND = {
    "root_run_id": "r",
    "runs": [run("r", "root"), run("c", "child", "r", "pay"), run("u", "compensation", "c")],
    "truncated": True,
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server({"GET /api/workflows/runs/c/tree": [(200, {"data": FOUND})]})
    monkeypatch.setattr(tree, "Client", lambda _access: made.client())
    return made


def test_each_run_stands_below_the_one_that_asked_for_it(server: Server) -> None:
    lines = RUNNER.invoke(app, ["runs", "tree", "c"], env=KEYS).stdout.splitlines()
    assert len(server.requests) == 1
    assert [line.index("orders") for line in lines[:3]] == [0, 4, 8]
    assert "child of pay" in lines[1]
    assert lines[3] == "only the first 3 runs are shown"


def test_the_tree_as_json(server: Server) -> None:
    result = RUNNER.invoke(app, ["runs", "tree", "c", "--format", "json"], env=KEYS)
    assert server.requests
    assert json.loads(result.stdout) == FOUND
