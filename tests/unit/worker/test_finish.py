"""One conditional write ends an attempt; what its row says is what its run is told."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.worker.desk import RUN, Desk, does, raises, returns, takes

from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.model.attempt import AttemptStatus
from ductor.model.payload import BlobRef, Inline, RowRef


def test_a_success_is_in_the_row_and_told_and_the_task_is_gone() -> None:
    desk = Desk(returns({"v": 1}))
    desk.send()
    desk.work(desk.worker())
    row = desk.row()
    assert (row.status, row.output, row.finished_at) == (AttemptStatus.SUCCEEDED, Inline({"v": 1}), desk.clock.now)
    (intent,) = desk.told()
    assert (intent.run_id, intent.node, intent.attempt, intent.generation) == (RUN, "n", 1, 7)
    assert (intent.status, intent.output, intent.error) == (AttemptStatus.SUCCEEDED, Inline({"v": 1}), None)
    assert desk.steps.depth() == 0


def test_a_failure_is_in_the_row_and_told() -> None:
    desk = Desk(raises(ActionError("BOOM", "no")))
    desk.send()
    desk.work(desk.worker())
    (intent,) = desk.told()
    assert desk.row().status is intent.status is AttemptStatus.FAILED
    assert desk.row().error == intent.error
    assert intent.error is not None
    assert intent.error.code == "BOOM"


@pytest.mark.parametrize(
    ("size", "kind"), [(10, Inline), (240, Inline), (300, RowRef), (8_100, RowRef), (9_000, BlobRef)]
)
def test_the_run_is_told_a_small_output_and_a_reference_to_a_larger_one(size: int, kind: type) -> None:
    output = {"x": "y" * size}
    desk = Desk(returns(output))
    desk.send()
    desk.work(desk.worker())
    (intent,) = desk.told()
    assert isinstance(intent.output, kind)
    assert desk.payloads.load(RUN, intent.output) == output


def test_results_of_a_batch_end_apart() -> None:
    desk = Desk(does(lambda args, ctx: {"v": 1} if ctx.node == "good" else {"v": object()}))
    for node in ("good", "bad", "worse"):
        desk.send(node=node)
    desk.work(desk.worker())
    assert [desk.row(node).status for node in ("good", "bad", "worse")] == [
        AttemptStatus.SUCCEEDED,
        AttemptStatus.FAILED,
        AttemptStatus.FAILED,
    ]
    assert len(desk.told()) == 3


def test_a_result_survives_the_request_to_stop_that_came_before_it() -> None:
    desk = Desk(returns({"v": 1}))
    task = desk.send()
    worker = desk.worker()
    claimed = desk.claim_one(worker)
    assert desk.attempts.revoke(task, desk.clock.now) is None
    worker.finish([worker.execute(claimed)])
    assert (desk.row().status, desk.row().output) == (AttemptStatus.SUCCEEDED, Inline({"v": 1}))


def test_the_failure_of_a_lost_worker_is_not_the_end_of_the_attempt_that_another_one_runs() -> None:
    desk = Desk(raises(ActionError("BOOM", "no")))
    desk.send()
    lost = desk.worker("lost")
    claimed = desk.claim_one(lost)
    desk.lose_lease()
    desk.claim_one(desk.worker("b"))
    lost.finish([lost.execute(claimed)])
    assert (desk.row().status, desk.row().worker) == (AttemptStatus.RUNNING, "b")
    assert desk.told() == []
    assert desk.steps.depth() == 1


def test_an_action_that_stops_because_its_lease_was_lost_does_not_end_the_attempt() -> None:
    def run(args: dict[str, Any], ctx: ActionContext) -> dict[str, Any]:
        if ctx.deliveries == 1:
            desk.lose_lease()
            held.append(desk.claim_one(other))
            ctx.heartbeat()
        return {"by": ctx.deliveries}

    held: list[Any] = []
    desk = Desk(does(run))
    other = desk.worker("b")
    desk.send()
    desk.work(desk.worker("lost"))
    assert desk.row().status is AttemptStatus.RUNNING
    other.finish([other.execute(held[0])])
    assert (desk.row().status, desk.row().output) == (AttemptStatus.SUCCEEDED, Inline({"by": 2}))


def test_a_worker_that_lost_its_own_lease_to_itself_does_not_fail_the_new_delivery() -> None:
    desk = Desk(raises(ActionError("BOOM", "no")))
    desk.send()
    worker = desk.worker()
    stale = desk.claim_one(worker)
    desk.lose_lease()
    desk.claim_one(worker)
    worker.finish([worker.execute(stale)])
    assert (desk.row().status, desk.row().deliveries) == (AttemptStatus.RUNNING, 2)


def test_the_success_of_a_lost_worker_counts_and_the_second_one_changes_nothing() -> None:
    desk = Desk(takes([{"v": "first"}, {"v": "second"}]))
    desk.send()
    lost, other = desk.worker("lost"), desk.worker("b")
    claimed = desk.claim_one(lost)
    desk.lose_lease()
    again = desk.claim_one(other)
    lost.finish([lost.execute(claimed)])
    other.finish([other.execute(again)])
    row = desk.row()
    assert (row.status, row.output, row.late_output) == (AttemptStatus.SUCCEEDED, Inline({"v": "first"}), None)


@pytest.mark.parametrize("status", [AttemptStatus.TIMED_OUT, AttemptStatus.LOST, AttemptStatus.REVOKED])
def test_a_success_after_the_end_is_kept_beside_it(status: AttemptStatus) -> None:
    desk = Desk(returns({"v": 1}))
    desk.send()
    worker = desk.worker()
    claimed = desk.claim_one(worker)
    desk.end(status)
    worker.finish([worker.execute(claimed)])
    row = desk.row()
    assert (row.status, row.output, row.late_output) == (status, Inline(None), Inline({"v": 1}))
    assert {intent.status for intent in desk.told()} == {status}


def test_a_failure_after_the_end_changes_nothing() -> None:
    desk = Desk(raises(ValueError("late")))
    desk.send()
    worker = desk.worker()
    claimed = desk.claim_one(worker)
    desk.end(AttemptStatus.TIMED_OUT)
    before = desk.stored()
    worker.finish([worker.execute(claimed)])
    assert (desk.stored().version, desk.row().late_output) == (before.version, None)
