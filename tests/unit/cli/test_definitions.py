"""The commands that create, edit, show, compare and archive definitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.server import Answer, Server
from typer.testing import CliRunner

from ductor.cli import definitions
from ductor.cli.main import app
from ductor.validation.source import read_source

ROOT = "/api/workflow-definitions"
DRAFT_ID, VERSION_ID = "0" * 8 + "-0000-0000-0000-" + "0" * 12, "1" * 8 + "-0000-0000-0000-" + "1" * 12
DRAFT = {
    "id": DRAFT_ID,
    "family_slug": "hello",
    "status": "DEFINITION_STATUS_DRAFT",
    "version": 3,
    "draft_revision": 5,
    "title": "Hello",
    "environment": "default",
    "steps": [{"ref": "greet", "type": "STEP_TYPE_WAIT", "args": {"duration": "1s"}}],
    "edges": [],
    "created_at": "2026-01-01T00:00:00.000Z",
    "updated_at": "2026-01-01T00:00:00.000Z",
}
VERSION = {**DRAFT, "id": VERSION_ID, "status": "DEFINITION_STATUS_PUBLISHED", "version": 2, "draft_revision": 0}
LIST: list[Answer] = [(200, {"data": [DRAFT, VERSION]})]
TAKEN: Answer = (409, {"error_code": "ALREADY_EXISTS", "message": "m", "errors": [{"code": "DRAFT_EXISTS"}]})


def invoke(monkeypatch: pytest.MonkeyPatch, routes: dict[str, list[Answer]], *args: str) -> tuple[int, str, Server]:
    server = Server(routes)
    monkeypatch.setattr(definitions, "find", lambda data: None)
    monkeypatch.setattr(definitions, "Client", lambda access: server.client())
    result = CliRunner().invoke(app, ["workflow", *args])
    return result.exit_code, result.output, server


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "hello.yaml"
    path.write_text("family_slug: hello\nsteps:\n  - {ref: greet, type: wait, args: {duration: 1s}}\n")
    return str(path)


def test_create_shows_the_draft_and_what_publication_would_refuse(monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    warning = {"field": "greet", "code": "WAIT_SPEC_INVALID", "message": "no", "severity": "error"}
    answer: Answer = (201, {"data": DRAFT, "warnings": [warning]})
    code, output, _ = invoke(monkeypatch, {f"POST {ROOT}": [answer]}, "create", file)
    assert code == 0
    assert f"hello draft {DRAFT_ID} revision 5" in output
    assert "[WAIT_SPEC_INVALID]" in output


def test_create_of_a_family_with_a_draft_is_refused(monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    assert invoke(monkeypatch, {f"POST {ROOT}": [TAKEN]}, "create", file)[0] == 3


def test_edit_with_a_revision_changes_that_revision_only(monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    patch = f"PATCH {ROOT}/{DRAFT_ID}/draft"
    routes: dict[str, list[Answer]] = {f"GET {ROOT}": LIST, patch: [(200, {"data": DRAFT, "warnings": []})]}
    code, _, server = invoke(monkeypatch, routes, "edit", file, "--revision", "4")
    assert code == 0
    assert server.bodies(patch)[0]["expected_draft_revision"] == 4


def test_list_shows_a_line_per_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    code, output, server = invoke(monkeypatch, {f"GET {ROOT}": LIST}, "list", "--status", "draft", "--tag", "a")
    assert code == 0
    assert DRAFT_ID in output
    assert dict(server.requests[0].url.params)["tags"] == "a"


def test_show_of_a_family_gives_its_newest_version_as_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    routes: dict[str, list[Answer]] = {f"GET {ROOT}": LIST, f"GET {ROOT}/{VERSION_ID}": [(200, {"data": VERSION})]}
    code, output, _ = invoke(monkeypatch, routes, "show", "hello", "--yaml")
    document, faults = read_source(output)
    assert (code, faults) == (0, [])
    assert document["steps"] == VERSION["steps"]
    assert "id" not in document


def test_diff_of_a_family_compares_its_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    change: dict[str, Any] = {"field": "args.duration", "change": "changed", "before": "1s", "after": "2s"}
    answer = {
        "before": VERSION,
        "after": DRAFT,
        "identical": False,
        "fields": [{"field": "title", "change": "added", "before": None, "after": "Hi"}],
        "steps": {"added": [{"ref": "new"}], "removed": [], "changed": [{"ref": "greet", "fields": [change]}]},
        "edges": {
            "added": [],
            "removed": [{"source_ref": "a", "target_ref": "b", "type": "EDGE_TYPE_DONE"}],
            "changed": [],
        },
    }
    routes: dict[str, list[Answer]] = {f"GET {ROOT}": LIST, f"GET {ROOT}/{DRAFT_ID}/diff": [(200, {"data": answer})]}
    code, output, _ = invoke(monkeypatch, routes, "diff", "hello")
    assert code == 0
    assert output.splitlines() == [
        "hello version 2 published -> hello draft revision 5",
        "+ title: Hi",
        "+ step new",
        "~ step greet",
        "    ~ args.duration: 1s -> 2s",
        "- edge a -> b (done)",
    ]


def test_archive_and_duplicate_name_what_they_did(monkeypatch: pytest.MonkeyPatch) -> None:
    archived = {**VERSION, "status": "DEFINITION_STATUS_ARCHIVED"}
    routes: dict[str, list[Answer]] = {f"POST {ROOT}/{VERSION_ID}/archive": [(200, {"data": archived})]}
    assert f"hello version 2 archived ({VERSION_ID})" in invoke(monkeypatch, routes, "archive", VERSION_ID)[1]
    copy: list[Answer] = [(201, {"data": {**DRAFT, "family_slug": "copy"}, "warnings": []})]
    _, output, server = invoke(monkeypatch, {f"POST {ROOT}/{DRAFT_ID}/duplicate": copy}, "duplicate", DRAFT_ID, "copy")
    assert "copy draft" in output
    assert json.loads(server.requests[0].content) == {"family_slug": "copy"}


def test_an_unknown_family_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    code, output, _ = invoke(monkeypatch, {f"GET {ROOT}": [(200, {"data": []})]}, "show", "nope")
    assert code == 3
    assert "nope" in output
