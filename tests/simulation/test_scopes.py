"""Scatters, gathers and races in a world where processes die: order, failures, and the closing of scopes."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from tests.simulation.scene import Scene, action, edge, flow, held, switch, wait

from ductor.engine.scopes import Place
from ductor.model.attempt import AttemptStatus
from ductor.model.definition import Definition, Step
from ductor.model.enums import EdgeType, StepType
from ductor.testing import graphs
from ductor.testing.chaos import PROFILES
from ductor.testing.invariants import violations
from ductor.testing.seeds import run_seed

ERROR = EdgeType.ERROR


def scatter(ref: str = "split", items: str = "TRIGGER.payload", **args: Any) -> Step:
    return Step(ref=ref, type=StepType.SCATTER, args={"items_expr": items, **args})


def gather(ref: str = "all", **args: Any) -> Step:
    return Step(ref=ref, type=StepType.GATHER, args=args)


def race(ref: str = "win", **args: Any) -> Step:
    return Step(ref=ref, type=StepType.RACE, args=args)


def repeated(body: Step, *more: Any, **args: Any) -> Definition:
    """split -> body -> all -> after."""
    ref = body.ref
    parts = [scatter(**args), body, gather(), action("after")]
    return flow(*parts, edge("split", ref), edge(ref, "all"), edge("all", "after"), *more)


def settled(definition: Definition, value: object = None) -> Scene:
    """The run when nothing is left to happen; every promise holds."""
    scene = Scene(definition, value)
    with scene.world.limits():
        scene.settle()
    assert violations(scene.world) == []
    return scene


def item_effects(scene: Scene, ref: str) -> list[str]:
    """The items in which the step's action was executed, in the order of execution."""
    return [effect.node for effect in scene.world.ledger.effects if effect.node.startswith(f"{ref}@")]


# B18: an empty scatter


def test_b18_two_empty_scatters_in_a_row() -> None:
    parts = [scatter("s", "[]"), action("a"), gather("g"), scatter("t", "[]"), action("b"), gather("h"), action("end")]
    edges = [edge(one, two) for one, two in (("s", "a"), ("a", "g"), ("g", "t"), ("t", "b"), ("b", "h"), ("h", "end"))]
    scene = settled(flow(*parts, *edges))
    assert (scene.status, scene.effects("end")) == ("completed", 1)
    assert scene.world.output(scene.run_id, "h") == {"results": [], "errors": [], "count": 0}


def test_b18_an_empty_scatter_in_each_item() -> None:
    parts = [scatter("s", "[1, 2]"), scatter("t", "[]"), action("a"), gather("h"), gather("g")]
    edges = [edge(one, two) for one, two in (("s", "t"), ("t", "a"), ("a", "h"), ("h", "g"))]
    scene = settled(flow(*parts, *edges))
    assert scene.status == "completed"
    empty = {"results": [], "errors": [], "count": 0}
    assert scene.world.output(scene.run_id, "g")["results"] == [empty, empty]


def test_b18_a_redrive_after_an_empty_scatter() -> None:
    parts = [scatter("s", "[]"), action("a"), gather("g"), action("late", "boom", retryable=False)]
    scene = settled(flow(*parts, edge("s", "a"), edge("a", "g"), edge("g", "late")))
    assert scene.status == "failed"
    scene.control("redrive")
    scene.settle()
    assert (scene.status, scene.effects("late")) == ("failed", 2)
    assert scene.faults == []


@pytest.mark.parametrize("items", ["null", '"abc"', '{"a": 1}', "TRIGGER.payload.missing"])
def test_b18_what_is_no_list_is_a_typed_failure(items: str) -> None:
    scene = settled(repeated(action("a"), items=items), {})
    code = "EXPRESSION_ERROR" if "missing" in items else "SCATTER_ITEMS_INVALID"
    error = scene.world.state(scene.run_id).root.nodes["split"].error
    assert error is not None
    assert (scene.status, error.code) == ("failed", code)


# B19: one item fails


def failing_third(**args: Any) -> Definition:
    """Items 1 to 4; the third fails at once, each of the others takes three seconds."""
    third = action("bad", "boom", retryable=False)
    rest = action("good", "slow", ms=3_000)
    parts = [scatter(items="[1, 2, 3, 4]", **args), third, rest, gather(), action("after"), action("rescue")]
    edges = [
        edge("split", "bad", condition="ITEM == 3"),
        edge("split", "good", condition="ITEM != 3"),
        edge("bad", "all"),
        edge("good", "all"),
        edge("all", "after"),
    ]
    return flow(*parts, *edges)


def test_b19_one_at_a_time_the_fourth_never_starts() -> None:
    scene = settled(failing_third(max_concurrency=1))
    assert item_effects(scene, "good") == ["good@0", "good@1"]
    error = scene.world.state(scene.run_id).root.nodes["split"].error
    assert error is not None
    assert (scene.status, error.code, error.details["index"]) == ("failed", "ITEMS_FAILED", 2)


def test_b19_all_at_once_live_items_are_asked_to_stop() -> None:
    scene = settled(failing_third())
    assert scene.status == "failed"
    ends = {row.task.node: row.status for row in scene.world.attempts(scene.run_id)}
    assert all(status.ended for status in ends.values())
    assert ends["bad@2"] is AttemptStatus.FAILED


def test_b19_an_error_edge_takes_the_failure() -> None:
    definition = failing_third()
    handled = flow(*definition.steps, *definition.edges, edge("split", "rescue", ERROR))
    scene = settled(handled)
    assert (scene.status, scene.effects("rescue"), scene.effects("after")) == ("completed", 1, 0)


def test_b19_a_tolerated_failure_is_a_typed_error_at_its_index() -> None:
    scene = settled(failing_third(tolerated_failures=1))
    output = scene.world.output(scene.run_id, "all")
    assert output["results"][2] is None
    assert [error["index"] for error in output["errors"]] == [2]
    assert (scene.status, scene.effects("after")) == ("completed", 1)


# B37: the winner ends a race


def raced(*arms: Step) -> Definition:
    edges = [edge(arm.ref, "win") for arm in arms]
    return flow(*arms, race(), action("after"), *edges, edge("win", "after"))


def test_b37_the_timer_beats_a_slow_action_and_downstream_runs_once() -> None:
    scene = settled(raced(action("slow", "slow", ms=15_000), wait("timer", "2s")))
    assert (scene.steps["slow"], scene.steps["timer"]) == ("cancelled", "completed")
    assert (scene.status, scene.effects("after")) == ("completed", 1)


def test_b37_two_instant_steps_have_one_winner() -> None:
    scene = settled(raced(action("a"), action("b")))
    assert sorted((scene.steps["a"], scene.steps["b"])) == ["cancelled", "completed"]
    assert scene.effects("after") == 1


def test_b37_the_run_ends_while_a_loser_is_still_at_work() -> None:
    scene = Scene(raced(action("slow", "slow", ms=15_000), action("fast")))
    scene.deliver()
    while scene.work() or scene.deliver():
        pass
    assert scene.status == "completed"
    assert scene.world.workers[0].running
    scene.settle()
    assert scene.faults == []


def test_b37_all_arms_fail() -> None:
    scene = settled(raced(action("a", "boom", retryable=False), action("b", "boom", retryable=False)))
    error = scene.world.state(scene.run_id).root.nodes["win"].error
    assert error is not None
    assert [arm["step"] for arm in error.details["branches"]] == ["a", "b"]
    assert (scene.status, scene.effects("after")) == ("failed", 0)


# Rule 13: closing a scope is one entry; the pages follow, also after the end


@pytest.mark.parametrize("operation", ["cancel", "terminate"])
@pytest.mark.parametrize("point", ["coordinator.before_commit", "coordinator.after_commit", "coordinator.after_send"])
def test_rule_13_closing_goes_on_page_by_page_although_its_coordinators_die(operation: str, point: str) -> None:
    scene = Scene(repeated(wait("nap", "2h")), list(range(9)))
    with scene.world.limits():
        while scene.deliver():
            pass
        scene.control(operation)
        scene.crash(point)
        scene.deliver()
        scene.crash(point)
        scene.settle()
    state = scene.world.state(scene.run_id)
    statuses = {
        entry.status.value for page in state.loaded.values() for item in page.items for entry in item.nodes.values()
    }
    assert statuses == {"cancelled"}
    assert state.tree is not None
    assert state.tree.closing == {}
    assert scene.status == {"cancel": "cancelled", "terminate": "terminated"}[operation]
    assert scene.faults == []


def test_rule_13_the_end_of_a_scatter_shows_before_its_pages_follow() -> None:
    scene = Scene(repeated(wait("nap", "2h")), list(range(9)))
    with scene.world.limits():
        while scene.deliver():
            pass
        scene.control("terminate")
        scene.deliver()
        state = scene.world.state(scene.run_id)
        assert scene.status == "terminated"
        assert state.tree is not None
        assert state.tree.closing
        scene.settle()
    assert scene.faults == []


def test_rule_13_a_gather_collects_its_pages_although_its_coordinators_die() -> None:
    scene = Scene(repeated(action("a")), list(range(9)))
    with scene.world.limits():
        for _ in range(12):
            while scene.deliver() or scene.work():
                if scene.steps["all"] == "waiting":
                    break
            if scene.steps["all"] == "waiting":
                break
        assert scene.steps["all"] == "waiting"
        scene.crash("coordinator.after_commit")
        scene.settle()
    assert [result["v"] for result in scene.world.output(scene.run_id, "all")["results"]] == ["a"] * 9
    assert (scene.status, scene.effects("after")) == ("completed", 1)
    assert scene.faults == []


def results_for_a_scatter_that_has_failed() -> bool:
    """Item 0 fails, and the run goes on; the results of the others come before their pages are closed."""
    steps = [scatter(), switch("odd", "ITEM > 0"), action("bad", "boom", retryable=False), action("a"), action("b")]
    inner = [edge("split", "odd"), edge("odd", "a", EdgeType.TRUE), edge("odd", "bad", EdgeType.FALSE), edge("a", "b")]
    outer = [edge("bad", "all"), edge("b", "all"), edge("split", "rescue", ERROR), edge("rescue", "on")]
    scene = Scene(flow(*steps, gather(), action("rescue"), wait("on", "2h"), *inner, *outer), list(range(9)))
    with scene.world.limits():
        while scene.deliver():
            pass
        scene.work()
        scene.deliver(1)  # the failure, and then the others one by one
        scene.settle()
    return scene.status == "completed" and not item_effects(scene, "b") and not scene.faults


def test_rule_13_what_comes_for_an_item_looks_at_its_scatter_first() -> None:
    held(results_for_a_scatter_that_has_failed, patch.object(Place, "open", property(lambda self: True)))


@pytest.mark.parametrize("seed", range(12))
def test_a_nest_struck_by_everything_keeps_every_promise(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "NESTS", 1.0)
    for profile in PROFILES:
        run_seed(90_000 + seed, profile)


@pytest.mark.parametrize("window", [0, 1])
def test_b19_a_failure_of_the_item_that_ends_last_is_not_forgotten(window: int) -> None:
    definition = repeated(action("a", "boom", condition="INDEX == 2"), max_concurrency=window)
    scene = settled(definition, [1, 2, 3])
    assert (scene.status, scene.steps["split"], scene.effects("after")) == ("failed", "failed", 0)
