"""Pauses in the items of a scatter: decided by their own ids, matched like any other, and closed with their items."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.app.refusal import refused
from tests.unit.waits.gates import Gates, person
from tests.unit.waits.test_wait_event import publish, wait

from ductor.app.decisions import Verdict
from ductor.app.headers import run_pk
from ductor.model.errors import ErrorCode
from ductor.testing.invariants import violations

OPERATOR = person("operator")
SCATTER = {"ref": "all", "type": "scatter", "args": {"items_expr": "['a', 'b', 'c']"}}
GATHER = {"ref": "end", "type": "gather"}
EDGES = (("all", "w", "success"), ("w", "end", "success"))


@pytest.fixture
def world() -> Gates:
    return Gates()


def gate() -> dict[str, Any]:
    return {"ref": "w", "type": "approval", "action": "approval", "args": {"audience": {"roles": ["operator"]}}}


def approve(world: Gates, run_id: str, node: str, verb: str = "approve") -> None:
    decide = world.decisions.approve if verb == "approve" else world.decisions.reject
    decide(OPERATOR, run_id, node, Verdict(request_id=node))
    world.settle()


def test_each_item_has_its_own_gate(world: Gates) -> None:
    edges = (("all", "w", "success"), ("w", "end", "approved"))
    run_id = world.started(SCATTER, gate(), GATHER, edges=edges)
    for index in (2, 0, 1):
        approve(world, run_id, f"w@{index}")
    assert world.status(run_id) == "completed"
    assert [result["decision"] for result in world.output(run_id, "end")["results"]] == ["approved"] * 3
    assert violations(world, final=True) == []


@pytest.mark.parametrize(("node", "code"), [("w@7", "NOT_WAITING"), ("w", "NOT_WAITING")])
def test_an_item_that_is_not_there_has_no_gate(world: Gates, node: str, code: str) -> None:
    run_id = world.started(SCATTER, gate(), GATHER, edges=(("all", "w", "success"), ("w", "end", "approved")))
    with refused(ErrorCode.FAILED_PRECONDITION, code):
        approve(world, run_id, node)


def test_each_item_waits_for_its_own_event(world: Gates) -> None:
    run_id = world.started(SCATTER, wait(correlation_key="${{ ITEM }}"), GATHER, edges=EDGES)
    for number, key in enumerate("cab"):
        assert publish(world, f"e{number}", key=key) == 1
    assert world.status(run_id) == "completed"
    assert [result["correlation_key"] for result in world.output(run_id, "end")["results"]] == ["a", "b", "c"]


def test_one_event_ends_the_waits_of_all_items(world: Gates) -> None:
    run_id = world.started(SCATTER, wait(), GATHER, edges=EDGES)
    assert publish(world) == 3
    assert world.status(run_id) == "completed"
    assert violations(world, final=True) == []


def test_the_waits_of_a_failed_scatter_are_matched_no_more(world: Gates) -> None:
    run_id = world.started(
        SCATTER,
        gate(),
        wait("v"),
        GATHER,
        edges=(
            ("all", "w", "success"),
            ("all", "v", "success"),
            ("w", "end", "approved"),
            ("v", "end", "success"),
        ),
    )
    approve(world, run_id, "w@1", "reject")
    assert world.status(run_id) == "failed"
    assert publish(world) == 0
    assert world.table.query(run_pk(run_id), prefix="WAIT#").items == ()
    assert violations(world, final=True) == []
