"""What other engines got wrong about paused runs and redrives."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.simulation.scene import Scene, action, edge, flow, wait
from tests.unit.app.refusal import refused

from ductor.app.node_controls import NodeRequest
from ductor.model import transition as tr
from ductor.model.definition import Compensation, CompensationTarget, Retry, Step
from ductor.model.enums import EdgeType, RunStatus, StepType
from ductor.model.errors import ErrorCode
from ductor.model.waiting import Event
from ductor.testing.invariants import violations

ONCE = Retry(max_attempts=1)


def approval(ref: str = "gate", **args: Any) -> Step:
    audience = {"audience": {"roles": ["operator"]}}
    return Step(ref=ref, type=StepType.APPROVAL, action="approval", args={**audience, **args})


def told(ref: str = "told") -> Step:
    return Step(ref=ref, type=StepType.WAIT_EVENT, args={"event_name": "ev.a", "correlation_key": "k"})


def paused(*parts: Any, work: bool = True) -> Scene:
    """A run that was paused while its first steps were at work or waiting."""
    scene = Scene(flow(*parts))
    while scene.deliver():
        pass
    if work:
        scene.world.workers[0].claim(10)
    scene.control("pause", "hold")
    while scene.deliver():
        pass
    assert scene.status == "paused"
    return scene


def finish(scene: Scene) -> None:
    """Whatever is at work ends, and what that causes is handled; no time passes."""
    worker = scene.world.workers[0]
    for one in tuple(worker.waiting):
        worker.begin(one)
    worker.finish(worker.ready)
    while scene.deliver():
        pass


def resume(scene: Scene) -> None:
    scene.control("resume", "on")
    scene.settle()
    assert violations(scene.world) == []


# B32: paused runs


def test_b32_a_step_that_finishes_while_paused_is_stored_and_starts_nothing() -> None:
    scene = paused(action("a"), action("b"), edge("a", "b"))
    finish(scene)
    assert scene.steps == {"a": "completed", "b": "pending"}
    scene.settle()
    assert (scene.status, scene.effects("b")) == ("paused", 0)
    resume(scene)
    assert (scene.status, scene.effects("a"), scene.effects("b")) == ("completed", 1, 1)


def test_b32_an_event_that_comes_while_paused_is_applied_once_on_resume() -> None:
    scene = paused(told(), action("after"), edge("told", "after"), work=False)
    event = Event(event_name="ev.a", event_id="e", correlation_key="k", payload={"v": 1})
    assert scene.world.events.publish(scene.world.caller, event).matched == 1
    assert scene.world.events.publish(scene.world.caller, event).matched == 0
    scene.settle()
    assert (scene.status, scene.effects("after")) == ("paused", 0)
    resume(scene)
    assert (scene.status, scene.effects("after")) == ("completed", 1)
    assert scene.world.output(scene.run_id, "told")["payload"] == {"v": 1}


def test_b32_a_timer_and_a_deadline_that_pass_while_paused_are_applied_once_on_resume() -> None:
    gate = approval(timeout_ms=5_000, on_timeout="approve")
    steps = (wait("w", "3s"), gate, action("after"))
    scene = paused(*steps, edge("w", "after"), edge("gate", "after", EdgeType.APPROVED), work=False)
    scene.clock.advance(60_000)
    while scene.world.timer.step() or scene.deliver():
        pass
    assert (scene.status, scene.steps["w"], scene.steps["gate"]) == ("paused", "waiting", "waiting")
    scene.control("resume", "on")
    while scene.deliver():
        pass
    assert (scene.steps["w"], scene.world.output(scene.run_id, "gate")["decided_by"]) == ("completed", "timeout")
    scene.settle()
    assert violations(scene.world, final=True) == []
    assert (scene.status, scene.effects("after")) == ("completed", 1)
    ends = [one for one in scene.world.history(scene.run_id) if isinstance(one, tr.NodeCompleted)]
    assert sorted(one.node for one in ends) == ["after", "gate", "w"]


@pytest.mark.parametrize(("operation", "status"), [("cancel", "cancelled"), ("terminate", "terminated")])
def test_b32_an_end_while_paused_runs_no_step(operation: str, status: str) -> None:
    scene = paused(action("a"), action("b"), wait("w", "1h"), edge("a", "b"))
    scene.control(operation, "end")
    finish(scene)
    scene.settle()
    assert (scene.status, scene.effects("b")) == (status, 0)
    assert violations(scene.world, final=True) == []


def test_b32_pausing_again_and_redriving_while_paused_change_nothing() -> None:
    scene = paused(action("a"))
    scene.control("pause", "again")
    while scene.deliver():
        pass
    audit = [one for one in scene.world.history(scene.run_id) if isinstance(one, tr.OperatorAudited)]
    assert [(one.outcome, one.code) for one in audit] == [("applied", ""), ("rejected", "NOT_PAUSABLE")]
    with refused(ErrorCode.FAILED_PRECONDITION, "NOT_REDRIVABLE"):
        scene.control("redrive", "r")
    finish(scene)
    resume(scene)
    assert scene.effects("a") == 1


# B36: what a redrive is for


def redriven(scene: Scene, request_id: str = "redrive") -> None:
    scene.control("redrive", request_id)
    scene.settle()
    assert violations(scene.world) == []


@pytest.mark.parametrize("status", [status for status in RunStatus if status not in (RunStatus.FAILED, "timed_out")])
def test_b36_only_failed_and_timed_out_runs_are_redriven(status: RunStatus) -> None:
    scene = Scene(flow(wait("w", "1h")))
    while scene.deliver():
        pass
    ends = {"cancelled": "cancel", "terminated": "terminate", "paused": "pause"}
    if status.value in ends:
        scene.control(ends[status.value], "end")
        while scene.deliver():
            pass
    elif status is RunStatus.COMPLETED:
        scene.settle()
    with refused(ErrorCode.FAILED_PRECONDITION, "NOT_REDRIVABLE"):
        scene.control("redrive", "r")


def test_b36_only_what_failed_and_what_never_ran_runs() -> None:
    steps = (action("a"), action("b", "fail_n", n=1, retry=ONCE), action("c"))
    scene = Scene(flow(*steps, edge("a", "b"), edge("b", "c")))
    scene.settle()
    kept = scene.world.state(scene.run_id).root.nodes["a"]
    redriven(scene)
    assert scene.status == "completed"
    assert [scene.effects(ref) for ref in ("a", "b", "c")] == [1, 2, 1]
    assert scene.world.state(scene.run_id).root.nodes["a"] == kept


def test_b36_a_run_that_fails_again_is_redriven_again() -> None:
    scene = Scene(flow(action("a", "fail_n", n=2, retry=ONCE)))
    scene.settle()
    redriven(scene, "first")
    assert scene.status == "failed"
    redriven(scene, "second")
    assert (scene.status, scene.effects("a")) == ("completed", 3)


def test_b36_two_redrives_at_the_same_moment_are_one() -> None:
    scene = Scene(flow(action("a", "fail_n", n=1, retry=ONCE)))
    scene.settle()
    scene.control("redrive", "one")
    scene.control("redrive", "two")
    scene.settle()
    audit = [one for one in scene.world.history(scene.run_id) if isinstance(one, tr.OperatorAudited)]
    assert [(one.outcome, one.code) for one in audit] == [("applied", ""), ("rejected", "NOT_REDRIVABLE")]
    assert (scene.status, scene.effects("a")) == ("completed", 2)


def test_b36_when_only_a_finalizer_failed_there_is_nothing_to_redrive() -> None:
    last = Compensation(finally_=(CompensationTarget(action="double.boom", retry=ONCE),))
    scene = Scene(flow(action("a", compensation=last)))
    scene.settle()
    assert scene.status == "completed"
    with refused(ErrorCode.FAILED_PRECONDITION, "NOT_REDRIVABLE"):
        scene.control("redrive", "r")


@pytest.mark.parametrize("step", [approval("late"), told("late")])
def test_a_timeout_that_is_changed_before_a_wait_begins_counts_for_it(step: Step) -> None:
    limited = msgspec.structs.replace(step, args={**step.args, "timeout_ms": 600_000})
    scene = Scene(flow(wait("w", "1s"), limited, edge("w", "late")))
    scene.deliver()
    request = NodeRequest(request_id="t", timeout_ms=5_000)
    scene.world.operations.nodes.send(scene.world.caller, scene.run_id, "late", "updateTimeout", request)
    for _ in range(3):
        scene.clock.advance(3_000)
        while scene.world.timer.step() or scene.deliver():
            pass
    error = scene.world.state(scene.run_id).root.nodes["late"].error
    assert error is not None
    assert error.message.endswith("within 5000 ms")
