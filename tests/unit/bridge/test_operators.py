"""Bridge steps in the hands of operators: redriven, reset, forked and resolved, whoever has the task."""

from __future__ import annotations

from tests.unit.bridge.desk import WORKER, Desk, failed

from ductor.app.decisions import ErrorGiven, Resolve


def test_a_redriven_run_asks_for_the_work_again() -> None:
    desk = Desk()
    first = desk.take()
    failed(desk, first, retryable=False)
    desk.control("redrive")
    desk.wake()
    second = desk.take()
    assert (second.attempt, second.idempotency_key) == (2, first.idempotency_key)
    desk.complete(second)
    desk.wake()
    assert desk.status == "completed"


def test_a_reset_step_leaves_the_worker_behind() -> None:
    desk = Desk()
    first = desk.take()
    desk.world.control_node(desk.run_id, "b", "reset", "n1")
    desk.wake()
    assert desk.bridge.answers.heartbeat(WORKER, first.task_token).cancel_requested
    second = desk.take()
    desk.complete(second, {"v": 2})
    desk.complete(first, {"v": 1})
    desk.wake()
    assert desk.world.output(desk.run_id, "b") == {"v": 2}


def test_a_fork_asks_for_the_work_itself() -> None:
    desk = Desk()
    desk.complete(desk.take(), {"v": 1})
    desk.wake()
    fork = desk.world.reset(desk.run_id, 1, "f1", b={"other": True})
    desk.wake()
    task = desk.take()
    assert (task.run_id, task.input) == (fork, {"other": True})


def test_an_operator_resolves_a_step_that_no_worker_does() -> None:
    desk = Desk()
    desk.world.decisions.resolve(desk.world.caller, desk.run_id, "b", Resolve(request_id="r", payload={"by": "hand"}))
    desk.settle()
    assert (desk.status, desk.world.output(desk.run_id, "b")) == ("completed", {"by": "hand"})
    assert desk.row().status.value == "revoked"
    assert desk.poll() == ()


def test_an_operator_resolves_a_step_that_a_worker_has() -> None:
    desk = Desk()
    task = desk.take()
    given = Resolve(request_id="r", error=ErrorGiven(code="GIVEN_UP"))
    desk.world.decisions.resolve(desk.world.caller, desk.run_id, "b", given)
    desk.wake()
    assert desk.steps["b"] == "failed"
    assert desk.bridge.answers.heartbeat(WORKER, task.task_token).cancel_requested
    desk.bridge.answers.release(WORKER, task.task_token)
    assert desk.faults == []
