"""Forks inside scatters: results of items are kept one by one, whatever became of the scatter."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from tests.simulation.family import Family, act, sub
from tests.simulation.scene import Scene, action, edge, flow
from tests.simulation.test_scopes import gather, race, repeated, scatter
from tests.unit.app.refusal import refused
from tests.unit.operate.test_reset import effects, ended, fork, undoable

from ductor.app.fork_items import StepInItems
from ductor.app.reset import Preview, ResetRequest
from ductor.model import transition as tr
from ductor.model.definition import Compensation, CompensationTarget, Definition, Retry
from ductor.model.enums import RunStatus
from ductor.model.errors import ErrorCode
from ductor.testing.invariants import violations

ONE_BY_ONE = repeated(action("a"), max_concurrency=1)
ITEMS = [10, 20, 30, 40]
NESTED = flow(
    scatter("outer", "TRIGGER.payload"),
    scatter("inner", "ITEM"),
    action("a"),
    gather("in"),
    gather("out"),
    edge("outer", "inner"),
    edge("inner", "a"),
    edge("a", "in"),
    edge("in", "out"),
)


def ran(definition: Definition, value: object = None) -> Scene:
    scene = Scene(definition, ITEMS if value is None else value)
    with scene.world.limits():
        scene.settle()
    return scene


def forked(scene: Scene, seq: int, *preserve: str, request_id: str = "f", **inputs: Any) -> str:
    with scene.world.limits():
        fork_id = fork(scene, seq, *preserve, request_id=request_id, **inputs)
    assert violations(scene.world, final=True) == []
    return fork_id


def given(node: str) -> dict[str, Any]:
    """Another input for the node."""
    return {node: {"v": "given"}}


def previewed(scene: Scene, seq: int, *preserve: str) -> Preview:
    request = ResetRequest(request_id="", transition_seq=seq, preserve_outputs=preserve)
    return scene.world.operations.resets.preview(scene.world.caller, scene.run_id, request)


def last(scene: Scene) -> int:
    return scene.world.state(scene.run_id).seq


def test_items_that_were_done_keep_their_results_and_the_others_run() -> None:
    scene = ran(ONE_BY_ONE)
    fork_id = forked(scene, ended(scene, "a@1"))
    assert effects(scene, fork_id) == ["a@2", "a@3", "after"]
    results, before = (scene.world.output(run, "all")["results"] for run in (fork_id, scene.run_id))
    assert results[:2] == before[:2]


def test_before_the_scatter_began_all_its_items_run() -> None:
    scene = ran(ONE_BY_ONE)
    assert effects(scene, forked(scene, 0)) == ["a@0", "a@1", "a@2", "a@3", "after"]


def test_of_a_scatter_that_failed_only_the_failed_items_run_again() -> None:
    body = action("a", "boom", condition="INDEX == 2")
    scene = ran(flow(scatter(), action("first"), body, gather(), edge("split", "first"), edge("first", "a"), *_ends()))
    fork_id = forked(scene, last(scene))
    assert effects(scene, fork_id) == ["a@2"]
    assert scene.world.state(fork_id).status is RunStatus.FAILED


def _ends() -> tuple[Any, ...]:
    return (edge("a", "all"),)


def test_the_items_are_those_of_the_source_even_if_their_expression_would_give_others_now() -> None:
    definition = repeated(action("a"), items='[RUN["id"], RUN["id"]]', max_concurrency=1)
    scene = ran(definition)
    fork_id = forked(scene, ended(scene, "a@0"))
    items = [scene.world.state(run).root.nodes["split"].scatter for run in (scene.run_id, fork_id)]
    assert items[0] is not None
    assert items[1] is not None
    assert scene.world.value(scene.run_id, items[0].items) == scene.world.value(fork_id, items[1].items)


def test_one_item_gets_another_input_after_the_end() -> None:
    scene = ran(repeated(action("a")))
    fork_id = forked(scene, last(scene), **given("a@2"))
    assert effects(scene, fork_id) == ["a@2", "after"]
    assert [one["v"] for one in scene.world.output(fork_id, "all")["results"]] == ["a", "a", "given", "a"]


def test_all_items_get_another_input() -> None:
    scene = ran(repeated(action("a")))
    fork_id = forked(scene, last(scene), a={"v": "given"})
    assert sorted(effects(scene, fork_id)) == ["a@0", "a@1", "a@2", "a@3", "after"]
    assert {one["v"] for one in scene.world.output(fork_id, "all")["results"]} == {"given"}


def test_what_follows_in_an_item_runs_again_with_what_it_followed() -> None:
    definition = flow(
        scatter(), action("a"), action("b"), gather(), edge("split", "a"), edge("a", "b"), edge("b", "all")
    )
    scene = ran(definition, [1, 2])
    assert sorted(effects(scene, forked(scene, last(scene), **given("a@1")))) == ["a@1", "b@1"]


def test_later_results_of_items_are_taken_over() -> None:
    scene = ran(ONE_BY_ONE)
    assert effects(scene, forked(scene, ended(scene, "a@0"), "a")) == ["after"]
    one = forked(scene, ended(scene, "a@0"), "a@3", request_id="g")
    assert effects(scene, one) == ["a@1", "a@2", "after"]


def test_results_in_nested_scatters_are_kept() -> None:
    scene = ran(NESTED, [[1, 2], [3, 4]])
    point = min(ended(scene, "a@1.0"), ended(scene, "a@1.1"))
    kept = {node for node in ("a@0.0", "a@0.1", "a@1.0", "a@1.1") if ended(scene, node) <= point}
    fork_id = forked(scene, point)
    assert {*effects(scene, fork_id)} == {"a@0.0", "a@0.1", "a@1.0", "a@1.1"} - kept
    assert len(scene.world.output(fork_id, "out")["results"]) == 2


def test_of_a_race_in_an_item_its_branches_run_again_and_what_was_before_it_does_not() -> None:
    parts = [scatter(), action("a"), action("b"), action("c"), race(), gather()]
    edges = [edge("split", "a"), edge("a", "b"), edge("a", "c"), edge("b", "win"), edge("c", "win"), edge("win", "all")]
    scene = ran(flow(*parts, *edges), [1])
    fork_id = forked(scene, last(scene) - 3, request_id="r")
    assert "a@0" not in effects(scene, fork_id)
    assert {"b@0", "c@0"} & {*effects(scene, fork_id)}


def test_a_fork_owns_the_large_results_of_its_items() -> None:
    scene = ran(repeated(action("a", "big", bytes=20_000), max_concurrency=1))
    before = scene.world.output(scene.run_id, "all")["results"][0]
    fork_id = scene.world.reset(scene.run_id, ended(scene, "a@0"), "f")
    for key in scene.world.blobs.keys(f"{scene.run_id}/", 1_000):
        scene.world.blobs.delete(key)
    with scene.world.limits():
        scene.settle()
    assert scene.world.output(fork_id, "all")["results"][0] == before


def test_a_fork_of_a_fork_keeps_what_both_did() -> None:
    scene = ran(ONE_BY_ONE)
    first = forked(scene, ended(scene, "a@1"))
    end = scene.world.state(first).seq
    second = scene.world.reset(first, end, "again", **given("a@3"))
    with scene.world.limits():
        scene.settle()
    assert effects(scene, second) == ["a@3", "after"]


def test_child_runs_of_items_are_not_started_again() -> None:
    family = Family()
    family.add("leaf", act("work"))
    steps = (scatter(max_concurrency=1), sub("call", "leaf"), gather())
    family.add("root", *steps)
    family.start("root", [1, 2, 3])
    with family.world.limits():
        family.rest()
        history = family.world.history(family.root)
        seq = next(n for n, one in enumerate(history, 1) if isinstance(one, tr.NodeCompleted) and one.node == "call@1")
        fork_id = family.world.reset(family.root, seq, "f")
        family.rest()
    assert [run.origin.parent_run_id for run in family.runs("leaf")] == [family.root] * 3 + [fork_id]


def test_the_fork_undoes_its_own_effects_in_items_and_not_those_it_took_over() -> None:
    undo = Compensation(on_cancel=(CompensationTarget(action="double.ok"),))
    parts = [scatter(max_concurrency=1), action("a", compensation=undo), gather(), action("z")]
    scene = ran(flow(*parts, edge("split", "a"), edge("a", "all"), edge("all", "z")))
    fork_id = scene.world.reset(scene.run_id, ended(scene, "a@1"), "f")
    with scene.world.limits():
        while "a@3" not in effects(scene, fork_id):
            while scene.deliver():
                pass
            scene.work()
        scene.world.control(fork_id, "cancel", "c")
        scene.settle()
    assert violations(scene.world, final=True) == []
    undone = [run for run in scene.world.run_ids() if scene.world.state(run).origin.parent_run_id == fork_id]
    assert sorted(name for name in scene.world.graph(undone[0]).by_ref) == ["undo-a-2", "undo-a-3"]


def test_items_whose_effects_are_being_undone_are_not_kept() -> None:
    boom = action("z", "boom", retry=Retry(max_attempts=1))
    parts = [scatter(max_concurrency=1), undoable("a"), gather(), boom]
    scene = ran(flow(*parts, edge("split", "a"), edge("a", "all"), edge("all", "z")))
    with refused(ErrorCode.FAILED_PRECONDITION, "COMPENSATED"):
        scene.world.reset(scene.run_id, ended(scene, "a@1"), "f")


def test_a_preview_tells_of_items_what_a_reset_does_with_them() -> None:
    scene = ran(ONE_BY_ONE)
    preview = previewed(scene, ended(scene, "a@1"), "a@3")
    assert (preview.kept, preview.rerun) == ((), ("split", "a", "all", "after"))
    assert preview.items == (StepInItems("a", "split", kept=2, adopted=1, of=2),)


def test_points_before_a_failed_item_are_told() -> None:
    scene = ran(repeated(action("a", "boom", condition="INDEX == 1"), max_concurrency=1))
    reasons = [one.reason for one in scene.world.operations.resets.targets(scene.world.caller, scene.run_id)]
    assert "before a@1 failed with BOOM" in reasons


@pytest.mark.parametrize(
    ("seq", "preserve", "inputs", "error", "code"),
    [
        (0, ("a",), {}, ErrorCode.FAILED_PRECONDITION, "SCATTER_NOT_KEPT"),
        (9, ("a@9",), {}, ErrorCode.FAILED_PRECONDITION, "NOT_COMPLETED"),
        (9, ("a@1.1",), {}, ErrorCode.INVALID_ARGUMENT, "STEP_UNKNOWN"),
        (9, ("after@1",), {}, ErrorCode.INVALID_ARGUMENT, "STEP_UNKNOWN"),
        (9, ("all",), {}, ErrorCode.FAILED_PRECONDITION, "STEP_TYPE_WRONG"),
        (9, ("a@1",), {"a": {"v": 1}}, ErrorCode.INVALID_ARGUMENT, "FIELD_INVALID"),
        (9, (), {"a@x": {"v": 1}}, ErrorCode.INVALID_ARGUMENT, "STEP_UNKNOWN"),
        (9, (), {"split": {"v": 1}}, ErrorCode.FAILED_PRECONDITION, "STEP_TYPE_WRONG"),
    ],
)
def test_what_makes_no_sense_is_refused(
    seq: int, preserve: tuple[str, ...], inputs: dict[str, Any], error: ErrorCode, code: str
) -> None:
    scene = ran(ONE_BY_ONE)
    with refused(error, code):
        scene.world.reset(scene.run_id, seq, "f", preserve, **inputs)


def test_more_results_than_a_request_can_copy_are_refused() -> None:
    scene = ran(ONE_BY_ONE)
    with patch("ductor.app.reset_rules.MAX_RESULTS", 1), refused(ErrorCode.FAILED_PRECONDITION, "TOO_MUCH_TO_KEEP"):
        scene.world.reset(scene.run_id, ended(scene, "a@1"), "f")


@pytest.mark.parametrize("point", ["coordinator.before_commit", "coordinator.after_commit", "coordinator.after_send"])
def test_a_death_while_results_of_items_are_taken_over_loses_none(point: str) -> None:
    scene = ran(ONE_BY_ONE)
    fork_id = scene.world.reset(scene.run_id, ended(scene, "a@2"), "f")
    with scene.world.limits():
        scene.crash(point)
        scene.settle()
    assert effects(scene, fork_id) == ["a@3", "after"]
    assert violations(scene.world, final=True) == []


def test_more_large_results_than_a_request_can_copy_are_refused() -> None:
    scene = ran(repeated(action("a", "big", bytes=20_000), max_concurrency=1))
    with patch("ductor.app.reset_rules.MAX_LARGE", 1), refused(ErrorCode.FAILED_PRECONDITION, "TOO_MUCH_TO_KEEP"):
        scene.world.reset(scene.run_id, ended(scene, "a@1"), "f")


def test_results_in_rows_are_kept() -> None:
    scene = ran(repeated(action("a", "big", bytes=2_000), max_concurrency=1))
    before = scene.world.output(scene.run_id, "all")["results"]
    with patch("ductor.app.payloads.READ_AT_ONCE", 1):
        fork_id = forked(scene, ended(scene, "a@2"))
    assert effects(scene, fork_id) == ["a@3", "after"]
    assert scene.world.output(fork_id, "all")["results"][:3] == before[:3]
