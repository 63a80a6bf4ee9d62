"""Controls of single steps: hold and release, begin anew, other retries and timeouts; what is refused, and repeats."""

from __future__ import annotations

import pytest
from tests.simulation.scene import Scene, action, edge, flow, wait
from tests.unit.app.refusal import refused

from ductor.app.node_controls import NodeRequest
from ductor.model import transition as tr
from ductor.model.definition import Retry
from ductor.model.errors import ErrorCode
from ductor.testing.invariants import violations

AGAIN = Retry(max_attempts=3, backoff_ms=10_000, jitter=0)


def send(scene: Scene, node: str, operation: str, request_id: str = "", **fields: object) -> None:
    request = NodeRequest(request_id=request_id or f"{operation}-{node}", reason="r", **fields)  # type: ignore[arg-type]
    scene.world.operations.nodes.send(scene.world.caller, scene.run_id, node, operation, request)
    scene.deliver()


def audited(scene: Scene) -> list[tuple[str, str, str]]:
    entries = [entry for entry in scene.world.history(scene.run_id) if isinstance(entry, tr.OperatorAudited)]
    return [(entry.operation, entry.outcome, entry.code) for entry in entries]


def status(scene: Scene, node: str) -> str:
    return scene.world.statuses(scene.run_id)[node]


def test_a_held_step_does_not_start_until_it_is_released() -> None:
    scene = Scene(flow(action("a"), action("b"), edge("a", "b")))
    send(scene, "b", "pause")
    scene.settle()
    assert (status(scene, "a"), status(scene, "b"), scene.effects("b")) == ("completed", "paused", 0)
    send(scene, "b", "resume")
    scene.settle()
    assert (scene.status, scene.effects("b")) == ("completed", 1)
    assert violations(scene.world, final=True) == []


def test_a_step_held_at_work_ends_what_it_does_but_is_not_tried_again() -> None:
    scene = Scene(flow(action("a", "fail_n", n=1, retry=AGAIN)))
    scene.deliver()
    send(scene, "a", "pause")
    scene.settle()
    assert (status(scene, "a"), scene.world.state(scene.run_id).root.nodes["a"].attempt) == ("paused", 1)
    began = scene.clock.now
    send(scene, "a", "resume")
    scene.settle()
    assert (scene.status, scene.clock.now - began >= 10_000) == ("completed", True)


def test_a_run_is_cancelled_while_one_of_its_steps_is_held() -> None:
    scene = Scene(flow(action("a"), action("b"), edge("a", "b")))
    send(scene, "b", "pause")
    scene.settle()
    scene.world.control(scene.run_id, "cancel", "c")
    scene.settle()
    assert (scene.status, status(scene, "b"), scene.effects("b")) == ("cancelled", "cancelled", 0)
    assert violations(scene.world, final=True) == []


def test_a_step_that_is_begun_anew_ignores_the_attempt_of_before() -> None:
    scene = Scene(flow(action("a")))
    scene.deliver()
    send(scene, "a", "reset")
    scene.settle()
    entry = scene.world.state(scene.run_id).root.nodes["a"]
    assert (scene.status, entry.attempt, entry.first_attempt) == ("completed", 2, 2)
    assert violations(scene.world, final=True) == []


def test_a_timer_that_is_begun_anew_counts_from_then() -> None:
    scene = Scene(flow(wait("w", "10s")))
    scene.deliver()
    began = scene.clock.now
    scene.clock.advance(9_000)
    send(scene, "w", "reset")
    scene.settle()
    assert scene.status == "completed"
    assert scene.clock.now - began >= 19_000


def test_another_retry_policy_counts_from_the_next_failure_on() -> None:
    scene = Scene(flow(action("a", "boom", retryable=True, retry=Retry(max_attempts=1))))
    send(scene, "a", "updateRetryPolicy", retry={"max_attempts": 3, "backoff_ms": 1})
    scene.settle()
    assert (scene.status, scene.world.state(scene.run_id).root.nodes["a"].attempt) == ("failed", 3)


def test_another_timeout_moves_the_deadline_of_what_waits() -> None:
    scene = Scene(flow(wait("w", "10s")))
    scene.deliver()
    began = scene.clock.now
    send(scene, "w", "updateTimeout", timeout_ms=60_000)
    scene.settle()
    assert (scene.status, scene.clock.now - began >= 60_000) == ("completed", True)


@pytest.mark.parametrize(("operation", "code"), [("pause", "NOT_PAUSABLE"), ("resume", "NOT_PAUSED")])
def test_what_cannot_be_done_now_is_rejected_in_the_audit_trail(operation: str, code: str) -> None:
    scene = Scene(flow(wait("w", "10s")))
    scene.deliver()
    send(scene, "w", operation)
    assert audited(scene) == [(f"node_{operation}", "rejected", code)]


def test_a_repeat_does_nothing_and_another_operation_under_its_id_is_refused() -> None:
    scene = Scene(flow(action("a"), action("b"), edge("a", "b")))
    send(scene, "b", "pause", "one")
    send(scene, "b", "pause", "one")
    assert audited(scene) == [("node_pause", "applied", "")]
    with refused(ErrorCode.FAILED_PRECONDITION, "REQUEST_ID_REUSED"):
        send(scene, "b", "resume", "one")


def test_unknown_and_ended_steps_are_refused_at_once() -> None:
    scene = Scene(flow(action("a"), wait("w", "1h")))
    scene.deliver()
    scene.work()
    scene.deliver()
    with refused(ErrorCode.NOT_FOUND, "NODE_NOT_FOUND"):
        send(scene, "nope", "pause")
    with refused(ErrorCode.FAILED_PRECONDITION, "NODE_ENDED"):
        send(scene, "a", "reset")
    with refused(ErrorCode.FAILED_PRECONDITION, "STEP_TYPE_WRONG"):
        send(scene, "w", "updateRetryPolicy", retry={"max_attempts": 2})
