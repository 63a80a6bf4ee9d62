"""What a run costs, on the wire."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.api.world import ApiWorld

from ductor.app.descent import LINK_PREFIX, Link
from ductor.app.headers import run_pk
from ductor.model.enums import RunStatus
from ductor.model.usage import Used
from ductor.ports import Item, Put


@pytest.fixture
def world() -> ApiWorld:
    return ApiWorld()


def worked(world: ApiWorld, run_id: str) -> str:
    """The run, with the counts of two steps and at its end."""
    state = world.header(run_id)
    state.status = RunStatus.COMPLETED
    state.last.used = Used(
        commits=3, headers=4_000, history=600, moves=7, reads=3, intents=3, tasks=2, wakes=1, events=2
    )
    world.store(state)
    return run_id


def another(world: ApiWorld, run_id: str) -> str:
    """A second run of the same definition."""
    definition = world.header(run_id).origin.definition_id
    answer = world.call("POST", f"/api/v2/workflow-definitions/{definition}:trigger", {})
    return str(answer.json["run_id"])


def cost(world: ApiWorld, run_id: str) -> dict[str, Any]:
    answer = world.call("GET", f"/api/workflows/runs/{run_id}/cost")
    assert answer.status == 200, answer.text
    found: dict[str, Any] = answer.json["data"]
    return found


def test_a_run_says_what_it_costs_and_what_that_leaves_out(world: ApiWorld) -> None:
    found = cost(world, worked(world, world.triggered()))
    assert found["final"] is True
    assert (found["currency"], found["region"], found["prices_as_of"]) == ("USD", "us-east-1", "2026-09-28")
    assert 0 < found["at_load"]["amount"] <= found["alone"]["amount"] < 0.001
    for which in ("at_load", "alone"):
        assert found[which]["amount"] == pytest.approx(sum(line["amount"] for line in found[which]["lines"]))
    assert any("actions call" in text for text in found["not_included"])
    assert (found["models"], found["models_below"], found["models_truncated"]) == ([], [], False)


def test_a_run_that_was_only_admitted_costs_its_admission(world: ApiWorld) -> None:
    run_id = world.triggered()
    found = cost(world, run_id)
    assert found["final"] is False
    assert found["counted"]["commits"] == 0
    assert 0 < found["at_load"]["amount"] < cost(world, worked(world, run_id))["at_load"]["amount"]


def test_runs_below_are_added_up_apart(world: ApiWorld) -> None:
    run_id = worked(world, world.triggered())
    child = worked(world, another(world, run_id))
    link = Item(pk=run_pk(run_id), sk=f"{LINK_PREFIX}{child}", body=msgspec.json.encode(Link(child)))
    world.table.write((Put(link),))
    found = cost(world, run_id)
    assert (found["runs_below"], found["truncated"]) == (1, False)
    assert found["below_at_load"] == pytest.approx(cost(world, child)["at_load"]["amount"])
    assert found["below_alone"] == pytest.approx(cost(world, child)["alone"]["amount"])


def test_strangers_and_odd_ids_find_no_run(world: ApiWorld) -> None:
    run_id, stranger = world.triggered(), world.as_stranger()
    assert world.call("GET", f"/api/workflows/runs/{run_id}/cost", headers=stranger).status == 404
    for odd in ("nope", "x" * 200, "%C3%A4"):
        assert world.call("GET", f"/api/workflows/runs/{odd}/cost").status == 404


def test_a_key_without_the_right_is_refused(world: ApiWorld) -> None:
    path = f"/api/workflows/runs/{world.triggered()}/cost"
    answer = world.call("GET", path, headers=world.with_scopes("workflow:write"))
    assert answer.status == 403
