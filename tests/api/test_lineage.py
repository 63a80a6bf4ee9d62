"""Continue-as-new, the tree of runs and pinned subworkflows on the wire."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.world import ApiWorld

LEAF = {"family_slug": "leaf", "steps": [{"ref": "w", "type": "wait", "args": {"duration": "1s"}}]}


@pytest.fixture
def world() -> ApiWorld:
    return ApiWorld()


def parent(**args: Any) -> dict[str, Any]:
    step = {"ref": "c", "type": "subworkflow", "args": {"family_slug": "leaf", **args}}
    return {"family_slug": "parent", "steps": [step]}


def refused(world: ApiWorld, document: dict[str, Any]) -> list[tuple[str, str]]:
    created = world.call("POST", "/api/workflow-definitions", document)
    answer = world.call("POST", f"/api/workflow-definitions/{created.json['data']['id']}/publish", {})
    assert answer.status == 400, answer.text
    return answer.codes


def test_continuing_as_new_answers_the_new_run_and_a_repeat_the_same(world: ApiWorld) -> None:
    path = f"/api/v2/workflow-runs/{world.triggered()}:continueAsNew"
    body = {"request_id": "r1", "reason": "long enough", "seed_run_context": {"page": 2}}
    first, second = world.call("POST", path, body), world.call("POST", path, body)
    assert (first.status, first.json["status"]) == (202, "accepted")
    assert first.json["new_run_id"] == second.json["new_run_id"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "FIELD_REQUIRED"),
        ({"request_id": "r", "seed_run_context": [1]}, "FIELD_INVALID"),
        ({"request_id": "r", "discard_pending": "maybe"}, "FIELD_INVALID"),
        ({"request_id": "r", "seed": {}}, "FIELD_UNKNOWN"),
    ],
)
def test_odd_continuations(world: ApiWorld, body: Any, code: str) -> None:
    answer = world.call("POST", f"/api/v2/workflow-runs/{world.triggered()}:continueAsNew", body)
    assert (answer.status, answer.codes[0][1]) == (400, code)


def test_a_run_that_has_ended_does_not_continue(world: ApiWorld) -> None:
    answer = world.call("POST", f"/api/v2/workflow-runs/{world.completed()}:continueAsNew", {"request_id": "r"})
    assert (answer.status, answer.codes[0][1]) == (409, "RUN_TERMINAL")


def test_a_stranger_neither_continues_nor_sees_the_tree(world: ApiWorld) -> None:
    run_id, stranger = world.triggered(), world.as_stranger()
    path = f"/api/v2/workflow-runs/{run_id}:continueAsNew"
    assert world.call("POST", path, {"request_id": "r"}, headers=stranger).status == 404
    assert world.call("GET", f"/api/workflows/runs/{run_id}/tree", headers=stranger).status == 404


def test_the_tree_of_a_lone_run_is_the_run(world: ApiWorld) -> None:
    run_id = world.triggered()
    data = world.call("GET", f"/api/workflows/runs/{run_id}/tree").json["data"]
    assert data["root_run_id"] == run_id
    assert [(run["run_id"], run["relation"]) for run in data["runs"]] == [(run_id, "root")]
    assert data["truncated"] is False


def test_a_workflow_cannot_be_its_own_subworkflow(world: ApiWorld) -> None:
    world.published(LEAF)
    document = {**parent(family_slug="parent")}
    assert ("c.args.family_slug", "SUBWORKFLOW_RECURSION") in refused(world, document)


def test_an_unknown_family_or_version_is_refused_at_publication(world: ApiWorld) -> None:
    assert refused(world, parent()) == [("c.args.family_slug", "SUBWORKFLOW_UNKNOWN")]
    world.published(LEAF)
    other = {**parent(version=7), "family_slug": "other"}
    assert refused(world, other) == [("c.args.version", "SUBWORKFLOW_UNKNOWN")]


def test_publication_pins_the_newest_version_for_ever(world: ApiWorld) -> None:
    first = world.published(LEAF)
    definition = world.published(parent())
    draft = next(
        item
        for item in world.call("GET", "/api/workflow-definitions").json["data"]
        if item["family_slug"] == "leaf" and item["status"].endswith("DRAFT")
    )
    world.call("POST", f"/api/workflow-definitions/{draft['id']}/publish", {})
    _, plan = world.library.load(world.tenant, definition)
    assert plan.pins == {"c": first}
