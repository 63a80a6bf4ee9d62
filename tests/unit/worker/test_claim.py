"""Who may run an attempt, and what becomes of a task that is delivered again."""

from __future__ import annotations

from tests.unit.worker.desk import LEASE_MS, RUN, Desk, returns

from ductor.model.attempt import AttemptStatus
from ductor.model.payload import Inline
from ductor.ports import Outgoing


def test_a_claim_is_a_row_with_a_lease() -> None:
    desk = Desk(returns({}))
    task = desk.send()
    desk.claim_one(desk.worker("a"))
    row = desk.row()
    assert (row.task, row.status, row.worker, row.deliveries) == (task, AttemptStatus.RUNNING, "a", 1)
    assert row.lease_until == desk.clock.now + LEASE_MS


def test_one_of_two_deliveries_at_the_same_time_wins() -> None:
    desk = Desk(returns({}))
    desk.send()
    desk.send()
    assert len(desk.claim(desk.worker())) == 1
    assert desk.row().deliveries == 1


def test_a_delivery_while_another_worker_holds_the_lease_waits_for_its_end() -> None:
    desk = Desk(returns({}))
    desk.send()
    desk.claim_one(desk.worker("a"))
    desk.send()
    assert desk.claim(desk.worker("b")) == []
    assert desk.row().worker == "a"
    desk.clock.advance(LEASE_MS)
    assert desk.claim(desk.worker("b")) == []
    desk.clock.advance(2)
    assert desk.claim_one(desk.worker("b")).row.attempt.deliveries == 2


def test_a_lost_lease_is_taken_over_as_another_delivery_of_the_same_attempt() -> None:
    desk = Desk(returns({}))
    desk.send()
    first = desk.claim_one(desk.worker("a"))
    desk.worker("a").beat(first, {"page": 3})
    desk.clock.advance(1_000)
    desk.worker("a").beat(first, {"page": 4})
    desk.lose_lease()
    second = desk.claim_one(desk.worker("b"))
    attempt = second.row.attempt
    assert (attempt.worker, attempt.deliveries, attempt.task.attempt) == ("b", 2, 1)
    assert attempt.heartbeat_details == {"page": 4}


def test_after_three_deliveries_the_attempt_is_lost_and_its_run_is_told() -> None:
    desk = Desk(returns({}))
    desk.send()
    for _ in range(3):
        desk.claim_one(desk.worker())
        desk.lose_lease()
    assert desk.claim(desk.worker()) == []
    (intent,) = desk.told()
    assert intent.error is not None
    assert (intent.error.code, intent.error.retryable, intent.status) == ("WORKER_LOST", True, desk.row().status)
    assert desk.row().status.ended
    assert desk.steps.depth() == 0


def test_a_second_delivery_of_an_ended_attempt_only_tells_its_end_again() -> None:
    desk = Desk(returns({"v": 1}))
    desk.send()
    desk.work(desk.worker())
    (first,) = desk.told()
    desk.send()
    assert desk.claim(desk.worker("b")) == []
    (again,) = desk.told()
    assert (again.id, again.output, again.status) == (first.id, Inline({"v": 1}), AttemptStatus.SUCCEEDED)
    assert desk.steps.depth() == 0


def test_the_end_of_an_attempt_reaches_its_run_under_the_same_id_and_is_not_swallowed() -> None:
    desk = Desk(returns({}))
    for _ in range(3):
        desk.send()
        desk.work(desk.worker())
    assert [intent.id for intent in desk.told()] == [f"{RUN}/n/1/finished"] * 3


def test_a_revoked_attempt_is_not_run() -> None:
    desk = Desk(returns({}))
    task = desk.send()
    desk.attempts.revoke(task, desk.clock.now)
    assert desk.claim(desk.worker()) == []
    assert desk.steps.depth() == 0
    assert desk.row().status is AttemptStatus.REVOKED


def test_what_is_no_task_is_put_aside_with_the_reason() -> None:
    desk = Desk(returns({}))
    desk.steps.send([Outgoing(b"{"), Outgoing(b'{"run_id":1}'), Outgoing(b"\xff")])
    desk.send()
    assert len(desk.claim(desk.worker())) == 1
    assert all("not a task" in reason for _, reason in desk.steps.dead_letters())
    assert len(desk.steps.dead_letters()) == 3


def test_a_sole_worker_takes_over_at_once_what_a_dead_one_held() -> None:
    desk = Desk(returns({}))
    desk.send()
    desk.claim_one(desk.worker("dead"))
    desk.clock.advance(1)
    desk.send()
    claimed = desk.claim_one(desk.worker("new", sole_since=desk.clock.now))
    assert claimed.row.attempt.deliveries == 2


def test_a_sole_worker_does_not_take_over_from_itself() -> None:
    desk = Desk(returns({}))
    worker = desk.worker("new", sole_since=desk.clock.now)
    desk.send()
    desk.claim_one(worker)
    desk.send()
    assert desk.claim(worker) == []


def test_an_attempt_that_was_asked_to_stop_and_lost_its_worker_is_not_run_again() -> None:
    desk = Desk(returns({}))
    task = desk.send()
    desk.claim_one(desk.worker("dead"))
    desk.attempts.revoke(task, desk.clock.now)
    desk.lose_lease()
    assert desk.claim(desk.worker("b")) == []
    assert desk.row().status is AttemptStatus.REVOKED
    assert [intent.status for intent in desk.told()] == [AttemptStatus.REVOKED]
