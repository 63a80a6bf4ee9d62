"""The items of a scatter over the API: page by page in the snapshot, and one node's output by its id."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from tests.api.world import ApiWorld

from ductor.app.commit import Committer
from ductor.app.headers import HEAD, run_pk
from ductor.bootstrap.doors import NoFaults
from ductor.model.intent import Intent, IntentKind
from ductor.steps.behaviours import BEHAVIOURS

ITEMS = 7
DOCUMENT = {
    "family_slug": "items",
    "steps": [
        {"ref": "split", "type": "scatter", "args": {"items_expr": f"[{', '.join(map(str, range(ITEMS)))}]"}},
        {
            "ref": "double",
            "type": "dataflow",
            "redaction_policy": "none",
            "args": {"operation": "project", "project": {"n": "ITEM * 2"}},
        },
        {"ref": "all", "type": "gather", "redaction_policy": "none", "args": {}},
    ],
    "edges": [{"source_ref": "split", "target_ref": "double"}, {"source_ref": "double", "target_ref": "all"}],
}


@pytest.fixture
def run_id(world: ApiWorld) -> str:
    """A run of the document that has ended."""
    path = f"/api/v2/workflow-definitions/{world.published(DOCUMENT)}:trigger"
    started = str(world.call("POST", path, {}).json["run_id"])
    committer = Committer(
        table=world.table,
        payloads=world.payloads,
        definitions=lambda tenant, definition_id: world.library.load(tenant, definition_id)[1],
        behaviours=BEHAVIOURS,
        clock=world.clock,
        faults=NoFaults(),
    )
    item = world.table.get(run_pk(started), HEAD)
    assert item is not None
    state = committer.read(item)
    committer.commit(committer.graph(state), state, [Intent("start", started, IntentKind.START)], ("start",))
    return started


def snapshot(world: ApiWorld, run_id: str, **query: str) -> dict[str, Any]:
    asked = "&".join(f"{name}={quote(value)}" for name, value in query.items())
    answer = world.call("GET", f"/api/v2/workflow-runs/{run_id}/snapshot", query=asked)
    assert answer.status == 200, answer.text
    return dict(answer.json)


def test_the_snapshot_shows_the_runs_own_scope(world: ApiWorld, run_id: str) -> None:
    shown = snapshot(world, run_id)
    assert shown["status"] == "completed"
    assert list(shown["nodes"]) == ["split", "all"]


def test_a_scope_is_read_page_by_page(world: ApiWorld, run_id: str) -> None:
    found: dict[str, int] = {}
    cursor = ""
    while True:
        page = snapshot(world, run_id, scope="double@*", limit="3", cursor=cursor)
        found |= {node: json.loads(shown["latest_output_json"])["result"]["n"] for node, shown in page["nodes"].items()}
        cursor = page["next_cursor"] or ""
        if not cursor:
            break
    assert found == {f"double@{index}": index * 2 for index in range(ITEMS)}


def test_one_items_output_is_read_by_its_id(world: ApiWorld, run_id: str) -> None:
    answer = world.call("GET", f"/api/v2/workflow-runs/{run_id}/nodes/double@3/output")
    assert (answer.status, answer.json["output"]) == (200, {"result": {"n": 6}})


@pytest.mark.parametrize(
    ("scope", "status", "code"),
    [
        ("split@*", 404, "NODE_NOT_FOUND"),
        ("double", 400, "SCOPE_INVALID"),
        ("double@x", 400, "SCOPE_INVALID"),
        ("@*", 404, "NODE_NOT_FOUND"),
    ],
)
def test_what_names_no_items_is_refused(world: ApiWorld, run_id: str, scope: str, status: int, code: str) -> None:
    answer = world.call("GET", f"/api/v2/workflow-runs/{run_id}/snapshot", query=f"scope={scope}")
    assert (answer.status, [found for _, found in answer.codes]) == (status, [code])


def test_a_cursor_belongs_to_its_scope(world: ApiWorld, run_id: str) -> None:
    cursor = snapshot(world, run_id, scope="double@*", limit="2")["next_cursor"]
    query = f"scope=double@1&cursor={cursor}"
    answer = world.call("GET", f"/api/v2/workflow-runs/{run_id}/snapshot", query=query)
    assert (answer.status, [found for _, found in answer.codes]) == (400, ["CURSOR_INVALID"])


def test_the_history_says_which_edges_were_taken_into_and_out_of_the_items(world: ApiWorld, run_id: str) -> None:
    entries = world.call("GET", f"/api/workflows/runs/{run_id}/events", query="limit=200").json["data"]
    taken = {(entry["type"], entry["node"]): entry["data"].get("taken") for entry in entries}
    assert taken["items_started", "split"] == [{"target_ref": "double", "type": "EDGE_TYPE_SUCCESS"}]
    assert taken["node_completed", "double@0"] == [{"target_ref": "all", "type": "EDGE_TYPE_SUCCESS"}]
    # The edge from a scatter to its gather is nobody's to write.
    assert taken["node_completed", "split"] == []
