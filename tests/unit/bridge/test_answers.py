"""What workers say: one result counts, repetitions are harmless, and what comes too late is told so and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.simulation.scene import action, edge
from tests.unit.bridge.desk import ANSWERS, STRANGER, WORKER, Answer, Desk, bridge, failed, refusal

from ductor.app.bridge_answers import MAX_DETAILS_BYTES, Failure
from ductor.app.decisions import ErrorGiven, Resolve
from ductor.model import transition as tr
from ductor.model.definition import Compensation, CompensationTarget, Retry
from ductor.model.enums import EdgeType
from ductor.model.payload import MAX_OUTPUT_BYTES
from ductor.testing.chaos import Crash


@pytest.mark.parametrize("output", [{"url": "x"}, None, 7, ["a"], {"text": "x" * 60_000}, {"text": "x" * 1_000}])
def test_the_result_is_the_steps_output(output: Any) -> None:
    desk = Desk(bridge(), action("next"), edge("b", "next"))
    desk.complete(desk.take(), output)
    desk.settle()
    assert (desk.status, desk.world.output(desk.run_id, "b")) == ("completed", output)
    assert desk.faults == []


def test_the_attempt_names_the_key_that_answered() -> None:
    desk = Desk()
    task = desk.take()
    assert desk.row().actor == "worker-key"
    desk.complete(task, {"v": 1}, caller=msgspec.structs.replace(WORKER, key_id="another-key"))
    assert desk.row().actor == "another-key"


def test_the_same_result_may_be_sent_again() -> None:
    desk = Desk()
    task = desk.take()
    for _ in range(3):
        desk.complete(task, {"v": [1, {"w": "x" * 9_000}]})
    desk.wake()
    desk.complete(task, {"v": [1, {"w": "x" * 9_000}]})
    assert sum(isinstance(one, tr.NodeCompleted) for one in desk.world.history(desk.run_id)) == 1


def test_another_result_is_refused() -> None:
    desk = Desk()
    task = desk.take()
    desk.complete(task, {"v": 1})
    assert refusal(ANSWERS["complete"], desk, task) == ("FAILED_PRECONDITION", "TASK_ENDED")
    desk.wake()
    assert desk.world.output(desk.run_id, "b") == {"v": 1}
    assert desk.row().late_output is None


@pytest.mark.parametrize("late", sorted(ANSWERS))
def test_a_worker_that_was_followed_by_another_one_is_told_so(late: str) -> None:
    desk = Desk()
    first = desk.take()
    desk.lose_lease()
    second = desk.take()
    assert refusal(ANSWERS[late], desk, first) == ("FAILED_PRECONDITION", "TASK_TOKEN_EXPIRED")
    desk.complete(second, {"v": 2})
    assert refusal(ANSWERS[late], desk, first) == ("FAILED_PRECONDITION", "TASK_TOKEN_EXPIRED")
    desk.wake()
    assert desk.world.output(desk.run_id, "b") == {"v": 2}


def test_a_worker_whose_lease_is_over_may_still_answer_while_nobody_else_has_the_task() -> None:
    desk = Desk()
    task = desk.take()
    desk.lose_lease()
    desk.bridge.answers.heartbeat(WORKER, task.task_token)
    desk.lose_lease()
    desk.complete(task, {"v": 1})
    desk.wake()
    assert desk.status == "completed"


@pytest.mark.parametrize("answer", sorted(ANSWERS))
@pytest.mark.parametrize(
    "change",
    [
        lambda token: "",
        lambda token: "x",
        lambda token: token[:-1],
        lambda token: token + "A",
        lambda token: token.split(".")[0] + ".AAAA",
        lambda token: "é" + token,
        lambda token: "A" * 5_000 + "." + "B" * 24,
        lambda token: token.replace(".", ""),
    ],
)
def test_a_token_that_was_never_issued_is_unknown(answer: str, change: Callable[[str], str]) -> None:
    desk = Desk()
    task = desk.take()
    forged = msgspec.structs.replace(task, task_token=change(task.task_token))
    assert refusal(ANSWERS[answer], desk, forged) == ("NOT_FOUND", "TASK_NOT_FOUND")


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({"tenant": STRANGER.tenant}, ("NOT_FOUND", "TASK_NOT_FOUND")),
        ({"environments_write": frozenset({"staging"})}, ("NOT_FOUND", "TASK_NOT_FOUND")),
        ({"scopes": frozenset({"workflow_run:write"})}, ("PERMISSION_DENIED", "SCOPE_MISSING")),
    ],
)
def test_a_token_in_foreign_hands_changes_nothing(changes: dict[str, Any], answer: tuple[str, str]) -> None:
    desk = Desk()
    task, foreign = desk.take(), msgspec.structs.replace(WORKER, **changes)
    before = dict(desk.world.blobs._data)
    assert refusal(lambda d, t: d.complete(t, {"x": "y" * 50_000}, caller=foreign), desk, task) == answer
    assert desk.world.blobs._data == before
    desk.complete(task, {"v": 1})
    desk.wake()
    assert desk.world.output(desk.run_id, "b") == {"v": 1}


def test_a_failure_follows_the_retry_policy() -> None:
    desk = Desk(bridge(retry=Retry(max_attempts=2, backoff_ms=1_000, jitter=0.0)))
    failed(desk, desk.take(), code="BUSY", message="later")
    assert desk.steps["b"] == "retrying"
    desk.clock.advance(1_000)
    desk.wake()
    second = desk.take()
    assert (second.attempt, second.delivery, second.input) == (2, 1, {"for": "b"})
    failed(desk, second, code="BUSY", message="x" * 10_000, details={"n": 1})
    error = desk.world.state(desk.run_id).root.nodes["b"].error
    assert (desk.steps["b"], error.code if error else "") == ("failed", "BUSY")
    told = desk.row(2).error
    assert told is not None
    assert (len(told.message), told.details) == (8_192, {"n": 1})


@pytest.mark.parametrize(
    ("retry", "failure"),
    [
        (Retry(max_attempts=5), {"retryable": False}),
        (Retry(max_attempts=5, non_retryable_codes=("FATAL",)), {"code": "FATAL"}),
    ],
)
def test_a_failure_that_is_for_good_is_not_tried_again(retry: Retry, failure: dict[str, Any]) -> None:
    desk = Desk(bridge(retry=retry), action("plan_b"), edge("b", "plan_b", EdgeType.ERROR))
    failed(desk, desk.take(), **failure)
    desk.settle()
    assert (desk.steps["b"], desk.steps["plan_b"], desk.status) == ("failed", "completed", "completed")


def test_the_same_failure_may_be_sent_again_and_a_result_after_it_is_refused() -> None:
    desk = Desk()
    task = desk.take()
    for _ in range(2):
        desk.bridge.answers.fail(WORKER, task.task_token, Failure(code="BUSY"))
    assert refusal(ANSWERS["fail"], desk, task)[1] == "TASK_ENDED"
    assert refusal(ANSWERS["complete"], desk, task)[1] == "TASK_ENDED"
    assert desk.row().late_output is None


@pytest.mark.parametrize("message", ["", " \n"])
def test_a_failure_without_a_message_says_so_wherever_it_is_shown(message: str) -> None:
    desk = Desk()
    failed(desk, desk.take(), code="BUSY", message=message, retryable=False)
    desk.settle()
    state = desk.world.state(desk.run_id)
    told, node, run = desk.row().error, state.root.nodes["b"].error, state.error
    assert told
    assert node
    assert run
    assert (told.message, node.message, run.message) == (*["no message was given"] * 2, "b: no message was given")


def test_a_resolution_as_failed_without_a_message_says_so() -> None:
    desk = Desk()
    given = Resolve(request_id="r", error=ErrorGiven(code="LOST", message=""))
    desk.world.decisions.resolve(desk.world.caller, desk.run_id, "b", given)
    desk.settle()
    error = desk.world.state(desk.run_id).root.nodes["b"].error
    assert error
    assert (error.code, error.message) == ("LOST", "no message was given")


@pytest.mark.parametrize("code_", ["", "x" * 65])
def test_odd_codes(code_: str) -> None:
    desk = Desk()
    answer: Answer = lambda d, t: d.bridge.answers.fail(WORKER, t.task_token, Failure(code=code_))  # noqa: E731
    assert refusal(answer, desk, desk.take()) == ("INVALID_ARGUMENT", "FIELD_INVALID")


def test_what_is_too_large_is_refused_and_the_task_goes_on() -> None:
    desk = Desk()
    task, answers = desk.take(), desk.bridge.answers
    large, details = "x" * (MAX_OUTPUT_BYTES - 1), "x" * MAX_DETAILS_BYTES
    assert refusal(lambda d, t: d.complete(t, large), desk, task) == ("PAYLOAD_TOO_LARGE", "OUTPUT_TOO_LARGE")
    for answer in (
        lambda d, t: answers.heartbeat(WORKER, t.task_token, details),
        lambda d, t: answers.fail(WORKER, t.task_token, Failure(details=details)),
    ):
        assert refusal(answer, desk, task) == ("PAYLOAD_TOO_LARGE", "DETAILS_TOO_LARGE")
    desk.complete(task, large[:-1])
    desk.wake()
    assert desk.status == "completed"


@pytest.mark.parametrize("point", ["bridge.after_answer", "bridge.after_send"])
def test_a_crash_after_a_result_was_recorded_does_not_lose_it(point: str) -> None:
    desk = Desk()
    desk.world.chaos.crash_at(point)
    with pytest.raises(Crash):
        desk.complete(desk.take(), {"v": 1})
    desk.lose_lease()
    assert desk.poll() == ()
    desk.wake()
    assert (desk.status, desk.world.output(desk.run_id, "b")) == ("completed", {"v": 1})
    assert desk.queued() == []


def test_without_any_worker_a_recorded_result_is_found_by_the_run_itself() -> None:
    desk = Desk()
    desk.world.chaos.crash_at("bridge.after_answer")
    with pytest.raises(Crash):
        desk.complete(desk.take(), {"v": 1})
    desk.settle()
    assert (desk.status, desk.world.output(desk.run_id, "b")) == ("completed", {"v": 1})


def test_a_cancelled_run_tells_the_worker_at_its_next_heartbeat_and_waits_for_it() -> None:
    desk = Desk()
    task = desk.take()
    assert not desk.bridge.answers.heartbeat(WORKER, task.task_token).cancel_requested
    desk.control("cancel")
    desk.wake()
    assert desk.bridge.answers.heartbeat(WORKER, task.task_token).cancel_requested
    assert desk.status == "cancelling"
    desk.bridge.answers.release(WORKER, task.task_token)
    desk.wake()
    assert (desk.status, desk.row().status.value) == ("cancelled", "revoked")
    assert desk.poll() == ()


def test_a_result_counts_while_a_run_is_cancelled() -> None:
    desk = Desk()
    task = desk.take()
    desk.control("cancel")
    desk.wake()
    desk.complete(task, {"v": 1})
    desk.wake()
    assert (desk.status, desk.steps["b"]) == ("cancelled", "completed")


def test_a_cancelled_run_gives_its_tasks_to_nobody() -> None:
    desk = Desk()
    desk.control("cancel")
    desk.wake()
    assert (desk.status, desk.poll(), desk.queued()) == ("cancelled", (), [])


def test_a_cancelled_run_ends_when_its_worker_was_lost() -> None:
    desk = Desk()
    desk.take()
    desk.control("cancel")
    desk.settle()
    assert (desk.status, desk.row().status.value, desk.faults) == ("cancelled", "revoked", [])


@pytest.mark.parametrize("late", sorted(ANSWERS))
def test_a_terminated_run_waits_for_no_worker(late: str) -> None:
    desk = Desk()
    task = desk.take()
    desk.control("terminate")
    desk.wake()
    assert desk.status == "terminated"
    assert desk.bridge.answers.heartbeat(WORKER, task.task_token).cancel_requested
    desk.bridge.answers.release(WORKER, task.task_token)
    assert refusal(ANSWERS[late], desk, task)[1] == "TASK_ENDED" if late != "release" else True


def test_a_success_that_comes_too_late_is_refused_and_undone() -> None:
    undo = Compensation(on_cancel=(CompensationTarget(action="double.ok", args={"v": "${{ STEPS.b.output }}"}),))
    desk = Desk(bridge(compensation=undo))
    task = desk.take()
    desk.control("cancel")
    desk.settle()
    assert desk.status == "cancelled"
    assert refusal(ANSWERS["complete"], desk, task) == ("FAILED_PRECONDITION", "TASK_ENDED")
    desk.settle()
    assert desk.row().late_output is not None
    assert desk.world.ledger.effects[-1].output is not None
    assert desk.world.ledger.effects[-1].output["v"] == {"late": True}


def test_a_success_that_came_too_late_is_undone_although_nobody_could_tell_the_run_then() -> None:
    undo = Compensation(on_cancel=(CompensationTarget(action="double.ok", args={"v": "${{ STEPS.b.output }}"}),))
    desk = Desk(bridge(compensation=undo))
    task = desk.take()
    desk.control("cancel")
    desk.settle()
    desk.world.chaos.crash_at("bridge.after_late")
    with pytest.raises(Crash):
        desk.complete(task, {"v": 1})
    assert desk.poll() == ()
    desk.settle()
    assert desk.world.ledger.effects[-1].output is not None
    assert desk.world.ledger.effects[-1].output["v"] == {"v": 1}
    assert desk.queued() == []
