"""Signs of life, timeouts, and giving back."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.worker.desk import LEASE_MS, Desk, does, returns

from ductor.actions.context import ActionContext
from ductor.app.claims import Claimed
from ductor.app.worker import Worker
from ductor.model.attempt import AttemptStatus
from ductor.ports import UnavailableError
from ductor.testing.memory import MemoryTable


def begun(desk: Desk, worker: Worker, **task: Any) -> Claimed:
    """A claimed attempt whose action has begun and does not end."""
    desk.send(**task)
    claimed = desk.claim_one(worker)
    worker.execute(claimed)
    return claimed


def test_a_renewal_keeps_the_attempt_for_another_lease() -> None:
    desk = Desk(returns({}))
    worker = desk.worker()
    claimed = begun(desk, worker)
    for _ in range(5):
        desk.clock.advance(LEASE_MS // 2)
        worker.renew([claimed])
        assert desk.claim(desk.worker("b")) == []
    assert desk.row().lease_until == desk.clock.now + LEASE_MS
    assert desk.row().deliveries == 1


def test_a_renewal_is_due_after_a_third_of_the_lease() -> None:
    desk = Desk(returns({}))
    worker = desk.worker()
    claimed = begun(desk, worker)
    assert not worker.wants_renewal(claimed)
    desk.clock.advance(LEASE_MS // 3)
    assert worker.wants_renewal(claimed)
    worker.renew([claimed])
    assert not worker.wants_renewal(claimed)


def test_a_request_to_stop_reaches_the_action_with_the_next_renewal() -> None:
    desk = Desk(returns({}))
    worker = desk.worker()
    desk.send()
    claimed = desk.claim_one(worker)
    desk.attempts.revoke(claimed.task, desk.clock.now)
    assert not claimed.stop.is_set()
    worker.renew([claimed])
    assert claimed.stop.is_set()
    assert desk.row().cancel_requested


def test_a_renewal_finds_that_the_attempt_was_taken_over() -> None:
    desk = Desk(returns({}))
    worker = desk.worker("a")
    claimed = begun(desk, worker)
    desk.lose_lease()
    desk.claim_one(desk.worker("b"))
    taken = desk.stored()
    worker.renew([claimed])
    assert claimed.stop.is_set()
    assert (desk.stored().version, desk.row().worker) == (taken.version, "b")


def test_an_older_delivery_in_the_same_process_learns_that_it_is_over() -> None:
    desk = Desk(returns({}))
    worker = desk.worker()
    stale = begun(desk, worker)
    desk.lose_lease()
    fresh = desk.claim_one(worker)
    worker.renew([stale, fresh])
    assert (stale.stop.is_set(), fresh.stop.is_set()) == (True, False)


def test_renewing_before_the_action_begins_keeps_what_an_earlier_delivery_reported() -> None:
    seen: list[Any] = []

    def run(args: dict[str, Any], ctx: ActionContext) -> dict[str, Any]:
        seen.append(ctx.last_heartbeat)
        return {}

    desk = Desk(does(run))
    desk.send()
    first = desk.worker("a")
    claimed = desk.claim_one(first)
    desk.clock.advance(1_000)
    first.beat(claimed, {"page": 3})
    desk.lose_lease()
    second = desk.worker("b")
    waiting = desk.claim_one(second)
    second.renew([waiting])
    second.execute(waiting)
    assert seen == [{"page": 3}]
    assert desk.row().heartbeat_details == {"page": 3}


def test_a_heartbeat_without_details_keeps_the_last_ones() -> None:
    desk = Desk(returns({}))
    worker = desk.worker()
    desk.send()
    claimed = desk.claim_one(worker)
    for details in ({"page": 1}, None):
        desk.clock.advance(1_000)
        worker.beat(claimed, details)
    assert desk.row().heartbeat_details == {"page": 1}


def test_many_heartbeats_are_few_writes() -> None:
    desk = Desk(returns({}))
    worker = desk.worker()
    desk.send()
    claimed = desk.claim_one(worker)
    before = desk.stored().version
    for _ in range(100):
        desk.clock.advance(30)
        worker.beat(claimed, {"at": desk.clock.now})
    assert 2 <= desk.stored().version - before <= 3


def test_an_attempt_past_its_timeout_ends_at_once() -> None:
    desk = Desk(returns({}))
    worker = desk.worker()
    claimed = begun(desk, worker, timeout_ms=1_000)
    desk.clock.advance(999)
    assert worker.expire([claimed]) == []
    desk.clock.advance(1)
    assert worker.overdue([claimed])
    assert worker.expire([claimed]) == [claimed]
    (intent,) = desk.told()
    assert intent.error is not None
    assert (intent.status, intent.error.code, intent.error.retryable) == (
        AttemptStatus.TIMED_OUT,
        "ATTEMPT_TIMEOUT",
        True,
    )
    assert claimed.stop.is_set()
    assert desk.steps.depth() == 0
    assert worker.expire([claimed]) == []


def test_an_attempt_without_a_heartbeat_in_time_ends() -> None:
    desk = Desk(returns({}))
    worker = desk.worker()
    claimed = begun(desk, worker, timeout_ms=60_000, heartbeat_timeout_ms=1_000)
    desk.clock.advance(900)
    worker.beat(claimed, None)
    desk.clock.advance(900)
    assert worker.expire([claimed]) == []
    desk.clock.advance(100)
    worker.expire([claimed])
    error = desk.row().error
    assert error is not None
    assert (desk.row().status, error.code) == (AttemptStatus.TIMED_OUT, "HEARTBEAT_TIMEOUT")


def test_a_renewal_is_no_heartbeat_of_the_action() -> None:
    desk = Desk(returns({}))
    worker = desk.worker()
    claimed = begun(desk, worker, timeout_ms=60_000, heartbeat_timeout_ms=1_000)
    desk.clock.advance(1_000)
    worker.renew([claimed])
    assert worker.expire([claimed]) == [claimed]


def test_waiting_for_a_thread_is_no_part_of_the_timeout() -> None:
    desk = Desk(returns({}))
    worker = desk.worker()
    desk.send(timeout_ms=1_000, heartbeat_timeout_ms=1_000)
    claimed = desk.claim_one(worker)
    desk.clock.advance(5_000)
    assert worker.expire([claimed]) == []


def test_the_timeout_of_a_lost_worker_does_not_end_the_attempt_that_another_one_runs() -> None:
    desk = Desk(returns({}))
    lost = desk.worker("lost")
    claimed = begun(desk, lost, timeout_ms=5_000)
    desk.lose_lease()
    desk.claim_one(desk.worker("b"))
    lost.expire([claimed])
    assert (desk.row().status, desk.row().worker) == (AttemptStatus.RUNNING, "b")
    assert claimed.stop.is_set()
    assert desk.told() == []
    assert desk.steps.depth() == 1


def test_what_is_given_back_runs_elsewhere_at_once() -> None:
    desk = Desk(returns({"v": 1}))
    worker = desk.worker("a")
    claimed = begun(desk, worker)
    worker.give_back([claimed])
    other = desk.worker("b")
    desk.work(other)
    assert (desk.row().worker, desk.row().status) == ("b", AttemptStatus.SUCCEEDED)


def test_giving_back_uses_none_of_an_attempts_three_deliveries() -> None:
    desk = Desk(returns({"v": 1}))
    for turn in range(5):
        worker = desk.worker(f"stopping-{turn}")
        worker.give_back([begun(desk, worker) if turn == 0 else desk.claim_one(worker)])
    for name in ("lost", "lost too"):
        desk.claim_one(desk.worker(name))
        desk.lose_lease()
    desk.work(desk.worker("last"))
    assert (desk.row().status, desk.row().deliveries, desk.row().returned) == (AttemptStatus.SUCCEEDED, 8, 5)


def test_what_was_given_back_is_neither_renewed_nor_failed_by_its_old_worker() -> None:
    def run(args: dict[str, Any], ctx: ActionContext) -> dict[str, Any]:
        worker.give_back([claimed])
        worker.renew([claimed])
        ctx.heartbeat()
        return {}

    desk = Desk(does(run))
    worker = desk.worker("a")
    desk.send()
    claimed = desk.claim_one(worker)
    worker.finish([worker.execute(claimed)])
    assert desk.row().status is AttemptStatus.RUNNING
    assert desk.row().lease_until < desk.clock.now
    assert len(desk.claim(desk.worker("b"))) == 1


class Moody(MemoryTable):
    """Refuses to write while `down`."""

    down = False

    def write(self, ops: Any) -> Any:
        if self.down:
            raise UnavailableError("throttled")
        return super().write(ops)


def test_a_heartbeat_that_cannot_be_stored_does_not_fail_the_action() -> None:
    def run(args: dict[str, Any], ctx: ActionContext) -> dict[str, Any]:
        desk.clock.advance(2_000)
        table.down = True
        ctx.heartbeat({"page": 1})
        table.down = False
        return {}

    table = Moody()
    desk = Desk(does(run), table=table)
    desk.send()
    desk.work(desk.worker())
    assert desk.row().status is AttemptStatus.SUCCEEDED


@pytest.mark.parametrize("code", ["CANCELLED"])
def test_an_action_that_stops_when_asked_ends_as_cancelled_and_is_not_retried(code: str) -> None:
    def run(args: dict[str, Any], ctx: ActionContext) -> dict[str, Any]:
        desk.attempts.revoke(task, desk.clock.now)
        desk.clock.advance(1_000)
        ctx.heartbeat()
        return {}

    desk = Desk(does(run))
    task = desk.send()
    desk.work(desk.worker())
    error = desk.row().error
    assert error is not None
    assert (error.code, error.retryable) == (code, False)
