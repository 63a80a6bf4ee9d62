"""Trees of runs: children, their ends, limits and closing, with a crash at every fault point."""

from __future__ import annotations

import pytest
from tests.simulation.family import POINTS, Family, act, boom, hold, nest, statuses, sub

from ductor.model.definition import Edge, Retry
from ductor.model.enums import EdgeType, RunStatus
from ductor.testing import doubles


def test_a_child_gets_its_input_and_gives_its_output() -> None:
    family = Family()
    family.add("leaf", act("a", args={"v": "${{ TRIGGER.payload.n }}"}), output={"twice": "${{ STEPS.a.output.v }}"})
    family.add("root", sub("c", "leaf", input={"n": "${{ TRIGGER.payload.m }}"}))
    family.start("root", {"m": 7})
    family.rest()
    assert family.state().status is RunStatus.COMPLETED
    assert family.world.output(family.root, "c") == {"twice": 7}


def test_a_child_belongs_to_the_tree_of_its_root() -> None:
    family = nest(3)
    family.work()
    origin = family.one("level0").origin
    assert origin.root_run_id == family.root
    assert origin.journey_id == family.root
    assert origin.parent_run_id == family.one("level1").run_id
    assert (origin.parent_node, origin.nesting_depth) == ("child", 2)


def test_large_values_travel_between_parent_and_child() -> None:
    family = Family()
    family.add("leaf", act("a", doubles.BIG, args={"v": "${{ TRIGGER.payload.text }}", "bytes": 40_000}))
    family.add("root", sub("c", "leaf", input={"text": "y" * 20_000}))
    family.start("root")
    family.rest()
    assert len(family.world.output(family.root, "c")["a"]["fill"]) == 40_000


def test_a_child_whose_last_steps_gave_too_much_together_fails_its_step() -> None:
    family = Family()
    half = {"v": 1, "bytes": 3_000_000}
    family.add("leaf", act("a", doubles.BIG, args=half), act("b", doubles.BIG, args=half), chain=False)
    family.add("root", sub("c", "leaf"))
    family.start("root")
    family.rest()
    error = family.state().root.nodes["c"].error
    assert error is not None
    assert (error.code, error.retryable) == ("OUTPUT_TOO_LARGE", False)
    assert family.one("leaf").status is RunStatus.COMPLETED


def test_the_failure_of_a_child_takes_the_error_edge() -> None:
    family = Family()
    family.add("leaf", boom("a"))
    edge = Edge(source_ref="c", target_ref="rescue", type=EdgeType.ERROR)
    family.add("root", sub("c", "leaf"), act("rescue"), chain=False, edges=(edge,))
    family.start("root")
    family.rest()
    assert family.state().status is RunStatus.COMPLETED
    error = family.state().root.nodes["c"].error
    assert error is not None
    assert error.code == "CHILD_FAILED"
    assert "BROKEN" in error.message


def test_each_attempt_of_a_step_has_a_child_of_its_own() -> None:

    family = Family()
    family.add("leaf", boom("a"))
    family.add("root", sub("c", "leaf", retry=Retry(max_attempts=3, backoff_ms=1_000, jitter=0.0)))
    family.start("root")
    family.rest()
    assert [run.origin.parent_attempt for run in family.runs("leaf")] == [1, 2, 3]


def test_a_step_that_does_not_wait_completes_when_its_child_is_admitted() -> None:
    family = Family()
    family.add("leaf", hold())
    family.add("root", sub("c", "leaf", wait=False, parent_close_policy="abandon"))
    family.start("root")
    family.work()
    assert family.state().status is RunStatus.COMPLETED
    assert family.world.output(family.root, "c") == {"run_id": family.one("leaf").run_id}
    assert not family.one("leaf").status.terminal
    family.rest()
    assert family.one("leaf").status is RunStatus.COMPLETED


def test_a_time_limit_ends_the_wait_and_closes_the_child() -> None:
    family = Family()
    family.add("leaf", hold())
    edge = Edge(source_ref="c", target_ref="late", type=EdgeType.TIMEOUT)
    family.add("root", sub("c", "leaf", timeout_ms=5_000), act("late"), chain=False, edges=(edge,))
    family.start("root")
    family.rest()
    assert family.world.statuses(family.root) == {"c": "timed_out", "late": "completed"}
    leaf = family.one("leaf")
    assert leaf.status is RunStatus.CANCELLED
    assert leaf.finished_at - leaf.started_at < 30_000


def test_subworkflows_nest_ten_deep_and_no_deeper() -> None:
    family = Family()
    family.add("f0", act("a"))
    for level in range(1, 12):
        family.add(f"f{level}", sub("c", f"f{level - 1}"))
    family.start("f11")
    family.rest()
    assert max(run.origin.nesting_depth for run in (family.world.state(one) for one in family.world.run_ids())) == 10
    error = family.one("f1").root.nodes["c"].error
    assert error is not None
    assert error.code == "NESTING_TOO_DEEP"
    assert family.state().status is RunStatus.FAILED


def test_an_input_that_the_child_refuses_fails_the_step() -> None:
    family = Family()
    family.add("leaf", act("a"), input_schema={"type": "object", "required": ["n"]})
    family.add("root", sub("c", "leaf", input={}))
    family.start("root")
    family.rest()
    error = family.state().root.nodes["c"].error
    assert error is not None
    assert error.code == "INPUT_INVALID"
    assert family.runs("leaf") == []


def test_cancelling_a_tree_ends_every_level_and_undoes_every_effect_once() -> None:
    family = nest()
    family.work()
    family.world.control(family.root, "cancel", "stop")
    family.work()
    assert statuses(family) == ["cancelled"] * 4
    family.rest()
    undone = [text for text in family.said() if str(text).startswith("undo")]
    assert sorted(undone) == [f"undo level{level}" for level in range(4)]


def test_a_parent_is_cancelled_only_after_its_children() -> None:
    family = nest()
    family.work()
    family.world.control(family.root, "cancel", "stop")
    family.work()
    ends = [family.one(f"level{level}").finished_at for level in range(4)]
    assert ends == sorted(ends)


@pytest.mark.parametrize("policy", ["cancel", "terminate"])
def test_terminating_a_tree_ends_every_level_and_undoes_nothing(policy: str) -> None:
    family = nest(policy=policy)
    family.work()
    family.world.control(family.root, "terminate", "stop")
    family.work()
    assert statuses(family) == ["terminated"] * 4
    family.rest()
    assert [text for text in family.said() if str(text).startswith("undo")] == []


def test_an_abandoned_child_outlives_its_parent() -> None:
    family = nest(2, policy="abandon")
    family.work()
    family.world.control(family.root, "cancel", "stop")
    family.work()
    assert statuses(family, 2) == ["running", "cancelled"]
    family.rest()
    assert statuses(family, 2) == ["completed", "cancelled"]


@pytest.mark.parametrize("operation", ["cancel", "terminate", "nothing"])
@pytest.mark.parametrize("point", POINTS)
def test_a_crash_at_any_point_of_a_tree_changes_nothing(point: str, operation: str) -> None:
    """The n-th passing of the point crashes, for every n until the tree has ended without meeting it."""
    passing, crashed = 0, True
    while crashed:
        passing += 3
        family = nest()
        family.world.chaos.crash_at(point, passing)
        family.work(25)
        if operation != "nothing":
            family.world.control(family.root, operation, "stop")
            family.work(45)
        crashed = family.crashes > 0
        family.rest()
        expected = {"cancel": "cancelled", "terminate": "terminated", "nothing": "completed"}[operation]
        assert statuses(family) == [expected] * 4, passing
        undone = sorted(text for text in family.said() if str(text).startswith("undo"))
        assert undone == ([f"undo level{level}" for level in range(4)] if operation == "cancel" else []), passing
