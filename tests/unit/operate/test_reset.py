"""Forks: what is kept, what runs again, other inputs and results taken over, and what the source never notices."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from tests.simulation.scene import Scene, action, edge, flow
from tests.unit.app.refusal import refused

from ductor.app.reset import ResetRequest
from ductor.model import transition as tr
from ductor.model.definition import Compensation, CompensationTarget, Definition, Retry, Step
from ductor.model.enums import EdgeType
from ductor.model.errors import ErrorCode
from ductor.testing.invariants import violations

CHAIN = flow(action("a"), action("b"), action("c"), edge("a", "b"), edge("b", "c"))
BIG = flow(action("a", "big", bytes=20_000), action("b"), edge("a", "b"))


def ran(definition: Definition) -> Scene:
    scene = Scene(definition)
    scene.settle()
    return scene


def ended(scene: Scene, node: str) -> int:
    """The number of the transition with which a step ended."""
    history = scene.world.history(scene.run_id)
    ends = (tr.NodeCompleted, tr.NodeFailed, tr.NodeSkipped)
    return next(n for n, one in enumerate(history, 1) if isinstance(one, ends) and one.node == node)


def fork(scene: Scene, seq: int, *preserve: str, request_id: str = "f", **inputs: dict[str, object]) -> str:
    run_id = scene.world.reset(scene.run_id, seq, request_id, preserve, **inputs)
    scene.settle()
    return run_id


def effects(scene: Scene, run_id: str) -> list[str]:
    return [effect.node for effect in scene.world.ledger.effects if effect.run_id == run_id]


def test_what_had_completed_is_kept_and_the_rest_runs_again() -> None:
    scene = ran(CHAIN)
    fork_id = fork(scene, ended(scene, "a"))
    assert effects(scene, fork_id) == ["b", "c"]
    assert scene.world.output(fork_id, "a") == scene.world.output(scene.run_id, "a")
    state = scene.world.state(fork_id)
    assert (state.status, state.origin.source_run_id) == ("completed", scene.run_id)
    assert state.origin.journey_id == scene.world.state(scene.run_id).origin.journey_id
    assert violations(scene.world, final=True) == []


def test_from_the_beginning_everything_runs_again() -> None:
    scene = ran(CHAIN)
    assert effects(scene, fork(scene, 0)) == ["a", "b", "c"]


def test_the_source_is_not_changed() -> None:
    scene = ran(CHAIN)
    before = scene.world.state(scene.run_id)
    fork(scene, ended(scene, "a"))
    assert scene.world.state(scene.run_id) == before


def test_a_fork_owns_what_it_keeps() -> None:
    scene = ran(BIG)
    value = scene.world.output(scene.run_id, "a")
    fork_id = fork(scene, ended(scene, "a"))
    scene.world.blobs.delete(scene.world.state(scene.run_id).root.nodes["a"].output.key)  # type: ignore[union-attr]
    assert scene.world.output(fork_id, "a") == value


def test_a_step_with_another_input_runs_again_and_so_does_what_follows() -> None:
    scene = ran(CHAIN)
    fork_id = fork(scene, ended(scene, "c"), b={"v": "given"})
    assert effects(scene, fork_id) == ["b", "c"]
    assert scene.world.output(fork_id, "b")["v"] == "given"


def test_a_later_result_is_taken_over_when_its_turn_comes() -> None:
    scene = ran(CHAIN)
    fork_id = fork(scene, ended(scene, "a"), "b")
    assert effects(scene, fork_id) == ["c"]
    assert scene.world.output(fork_id, "b") == scene.world.output(scene.run_id, "b")


def test_a_failed_step_runs_again_in_the_fork() -> None:
    scene = ran(flow(action("a"), action("b", "boom"), edge("a", "b")))
    fork_id = fork(scene, ended(scene, "b") - 1)
    assert effects(scene, fork_id) == ["b"]


def test_a_handled_failure_is_kept_with_the_branch_that_it_took() -> None:
    scene = ran(flow(action("a", "boom"), action("b"), action("c"), edge("a", "b", EdgeType.ERROR), edge("b", "c")))
    fork_id = fork(scene, ended(scene, "b"))
    assert effects(scene, fork_id) == ["c"]
    assert scene.world.statuses(fork_id)["a"] == "failed"


def test_results_of_the_sources_attempts_never_reach_the_fork() -> None:
    scene = Scene(CHAIN)
    scene.deliver()
    scene.world.workers[0].claim(10)
    fork_id = scene.world.reset(scene.run_id, 0, "f")
    scene.settle()
    assert sorted(effects(scene, fork_id)) == ["a", "b", "c"] == sorted(effects(scene, scene.run_id))
    assert violations(scene.world, final=True) == []


def test_a_repeat_gives_the_same_fork_and_another_body_is_refused() -> None:
    scene = ran(CHAIN)
    first = fork(scene, 0)
    assert fork(scene, 0) == first
    assert len(scene.world.run_ids()) == 2
    with refused(ErrorCode.FAILED_PRECONDITION, "REQUEST_ID_REUSED"):
        fork(scene, 1)


def test_a_fork_whose_start_was_lost_is_found_by_the_sweeper() -> None:
    scene = ran(CHAIN)
    fork_id = scene.world.reset(scene.run_id, 0, "f")
    lost = scene.world.intents.receive(10, visibility_ms=1)
    scene.world.intents.ack([message.receipt for message in lost])
    scene.clock.advance(200_000)
    assert scene.world.sweeper.sweep() == 1
    scene.settle()
    assert scene.world.state(fork_id).status == "completed"


def test_points_say_why_one_would_begin_there() -> None:
    scene = ran(flow(action("a"), action("b", "boom"), edge("a", "b")))
    found = scene.world.operations.resets.targets(scene.world.caller, scene.run_id)
    assert [(point.seq, point.reason) for point in found] == [
        (0, "the beginning: nothing is kept"),
        (ended(scene, "a"), "after a completed"),
        (ended(scene, "b") - 1, "before b failed with BOOM"),
    ]


def test_a_preview_tells_and_does_nothing() -> None:
    scene = ran(CHAIN)
    request = ResetRequest(request_id="", transition_seq=ended(scene, "a"), preserve_outputs=("c",))
    preview = scene.world.operations.resets.preview(scene.world.caller, scene.run_id, request)
    assert (preview.kept, preview.adopted, preview.rerun) == (("a",), ("c",), ("b",))
    assert len(scene.world.run_ids()) == 1


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (ResetRequest(request_id="r", transition_seq=999), "POINT_UNKNOWN"),
        (ResetRequest(request_id="r", transition_seq=0, preserve_outputs=("nope",)), "STEP_UNKNOWN"),
        (ResetRequest(request_id="r", transition_seq=0, input_overrides={"nope": {}}), "STEP_UNKNOWN"),
        (ResetRequest(request_id="r", transition_seq=0, input_overrides={"a": [1]}), "FIELD_INVALID"),
    ],
)
def test_what_makes_no_sense_is_refused(request_: ResetRequest, code: str) -> None:
    scene = ran(CHAIN)
    with refused(ErrorCode.INVALID_ARGUMENT, code):
        scene.world.operations.resets.reset(scene.world.caller, scene.run_id, request_)


def undoable(ref: str, kind: str = "ok") -> Step:
    return action(ref, kind, compensation=Compensation(on_failure=(CompensationTarget(action="double.ok"),)))


def test_what_is_being_undone_is_not_kept() -> None:
    scene = ran(flow(undoable("a"), action("b", "boom"), edge("a", "b")))
    with refused(ErrorCode.FAILED_PRECONDITION, "COMPENSATED"):
        fork(scene, ended(scene, "a"))
    assert effects(scene, fork(scene, 0)) == ["a", "b"]


def test_a_fork_does_not_undo_what_its_source_did() -> None:
    definition = flow(undoable("a"), action("b", "slow", ms=1), edge("a", "b"), run_timeout_ms=3_600_000)
    scene = ran(definition)
    fork_id = scene.world.reset(scene.run_id, ended(scene, "a"), "f", b={"v": 1, "nope": 1})
    scene.world.control(fork_id, "cancel", "c")
    scene.settle()
    assert scene.world.state(fork_id).linked == {}
    assert violations(scene.world, final=True) == []


def test_a_backoff_in_a_fork_wakes_it_by_itself() -> None:
    scene = ran(flow(action("a", "fail_n", n=1, retry=Retry(max_attempts=2, backoff_ms=70_000, jitter=0))))
    fork_id = scene.world.reset(scene.run_id, 0, "f")
    scene.deliver()
    scene.clock.advance(65_000)
    scene.work()
    with patch.object(scene.world.sweeper, "sweep", return_value=0):
        scene.settle()
    assert scene.world.state(fork_id).status == "completed"


def test_a_fork_with_more_to_start_than_one_tick_may_goes_on() -> None:
    scene = ran(flow(action("a"), action("b"), action("c"), action("d")))
    with patch("ductor.engine.tick.STARTS_PER_TICK", 1):
        fork_id = scene.world.reset(scene.run_id, 0, "f")
        while scene.deliver():
            pass
    assert [entry.status for entry in scene.world.state(fork_id).root.nodes.values()] == ["scheduled"] * 4
