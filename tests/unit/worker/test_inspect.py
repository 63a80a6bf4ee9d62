"""What a run is told about an attempt that it waits for, and how it closes one."""

from __future__ import annotations

from tests.unit.worker.desk import Desk, returns

from ductor.model.attempt import AttemptStatus
from ductor.model.intent import Intent


def test_an_attempt_that_nobody_claimed_must_be_sent_again() -> None:
    desk = Desk(returns({}))
    task = desk.send()
    assert desk.attempts.inspect(task, desk.clock.now) is task


def test_an_attempt_with_a_live_worker_is_left_alone() -> None:
    desk = Desk(returns({}))
    task = desk.send()
    desk.claim_one(desk.worker())
    assert desk.attempts.inspect(task, desk.clock.now) is None


def test_an_attempt_whose_worker_is_lost_must_be_sent_again() -> None:
    desk = Desk(returns({}))
    task = desk.send()
    desk.claim_one(desk.worker())
    desk.lose_lease()
    assert desk.attempts.inspect(task, desk.clock.now) is task


def test_the_end_that_the_run_has_not_heard_of_is_told() -> None:
    desk = Desk(returns({"v": 1}))
    task = desk.send()
    desk.work(desk.worker())
    (told,) = desk.told()
    assert desk.attempts.inspect(task, desk.clock.now) == told


def test_revoking_before_the_claim_closes_the_attempt() -> None:
    desk = Desk(returns({}))
    task = desk.send()
    intent = desk.attempts.revoke(task, desk.clock.now)
    assert isinstance(intent, Intent)
    assert intent.status is desk.row().status is AttemptStatus.REVOKED


def test_revoking_twice_tells_the_same_end() -> None:
    desk = Desk(returns({}))
    task = desk.send()
    first = desk.attempts.revoke(task, desk.clock.now)
    version = desk.stored().version
    assert desk.attempts.revoke(task, desk.clock.now) == first
    assert desk.stored().version == version


def test_revoking_a_running_attempt_asks_its_worker_to_stop() -> None:
    desk = Desk(returns({}))
    task = desk.send()
    desk.claim_one(desk.worker())
    assert desk.attempts.revoke(task, desk.clock.now) is None
    assert (desk.row().status, desk.row().cancel_requested) == (AttemptStatus.RUNNING, True)


def test_revoking_an_attempt_whose_worker_is_lost_closes_it() -> None:
    desk = Desk(returns({}))
    task = desk.send()
    desk.claim_one(desk.worker())
    desk.lose_lease()
    intent = desk.attempts.revoke(task, desk.clock.now)
    assert intent is not None
    assert intent.status is AttemptStatus.REVOKED


def test_revoking_an_ended_attempt_tells_its_end() -> None:
    desk = Desk(returns({"v": 1}))
    task = desk.send()
    desk.work(desk.worker())
    intent = desk.attempts.revoke(task, desk.clock.now)
    assert intent is not None
    assert intent.status is AttemptStatus.SUCCEEDED
