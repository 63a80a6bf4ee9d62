"""What happens between reading an attempt's row and writing it: the other side was first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.unit.worker.desk import RUN, Desk, does, returns

from ductor.model.attempt import AttemptStatus
from ductor.model.payload import Inline
from ductor.ports import Conflict, Item, Op, Put, UnavailableError
from ductor.testing.memory import MemoryTable


class Interrupted(MemoryTable):
    """Runs `meanwhile` once, just before the next write over a row that exists."""

    meanwhile: Callable[[], object] | None = None

    def write(self, ops: Sequence[Op]) -> Conflict | None:
        first = ops[0]
        if self.meanwhile is not None and isinstance(first, Put) and isinstance(first.expect, int):
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return super().write(ops)


class Throttled(MemoryTable):
    """Refuses to read while `down`."""

    down = False

    def get(self, pk: str, sk: str) -> Item | None:
        if self.down:
            raise UnavailableError("throttled")
        return super().get(pk, sk)


def test_of_two_takeovers_in_the_same_millisecond_one_holds_the_attempt() -> None:
    table = Interrupted()
    desk = Desk(returns({}), table=table)
    desk.send()
    desk.claim_one(desk.worker("dead"))
    desk.lose_lease()
    desk.send()
    one, two = desk.steps.receive(10, visibility_ms=1_000)
    table.meanwhile = lambda: desk.worker("b").claim([two])
    assert desk.worker("c").claim([one]) == []
    assert (desk.row().worker, desk.row().deliveries) == ("b", 2)


def test_a_worker_that_comes_back_to_life_is_not_lost() -> None:
    table = Interrupted()
    desk = Desk(returns({}), table=table)
    desk.send()
    for _ in range(2):
        desk.claim_one(desk.worker("dead"))
        desk.lose_lease()
    slow = desk.worker("slow")
    claimed = desk.claim_one(slow)
    desk.lose_lease()
    table.meanwhile = lambda: slow.renew([claimed])
    assert desk.claim(desk.worker("b")) == []
    assert (desk.row().status, desk.row().worker) == (AttemptStatus.RUNNING, "slow")
    assert desk.told() == []


def test_revoking_an_attempt_that_is_just_taken_over_asks_the_new_worker_to_stop() -> None:
    table = Interrupted()
    desk = Desk(returns({}), table=table)
    task = desk.send()
    desk.claim_one(desk.worker("dead"))
    desk.lose_lease()
    table.meanwhile = lambda: desk.claim_one(desk.worker("b"))
    assert desk.attempts.revoke(task, desk.clock.now) is None
    assert (desk.row().worker, desk.row().status, desk.row().cancel_requested) == ("b", AttemptStatus.RUNNING, True)


def test_a_result_and_a_request_to_stop_at_once_keep_the_result() -> None:
    table = Interrupted()
    desk = Desk(returns({"v": 1}), table=table)
    task = desk.send()
    worker = desk.worker()
    finished = worker.execute(desk.claim_one(worker))
    table.meanwhile = lambda: desk.attempts.revoke(task, desk.clock.now)
    worker.finish([finished])
    assert desk.row().status is AttemptStatus.SUCCEEDED


def test_a_result_that_was_recorded_is_not_timed_out() -> None:
    desk = Desk(returns({"v": 1}))
    desk.send(timeout_ms=1_000)
    worker = desk.worker()
    claimed = desk.claim_one(worker)
    finished = worker.execute(claimed)
    worker.finish([finished])
    desk.clock.advance(1_000)
    worker.expire([claimed])
    assert desk.row().status is AttemptStatus.SUCCEEDED
    assert {intent.status for intent in desk.told()} == {AttemptStatus.SUCCEEDED}


def test_a_result_that_comes_after_the_timeout_is_kept_beside_it() -> None:
    desk = Desk(returns({"v": 1}))
    desk.send(timeout_ms=1_000)
    worker = desk.worker()
    claimed = desk.claim_one(worker)
    finished = worker.execute(claimed)
    desk.clock.advance(1_000)
    worker.expire([claimed])
    worker.finish([finished])
    assert (desk.row().status, desk.row().late_output) == (AttemptStatus.TIMED_OUT, Inline({"v": 1}))
    assert {intent.status for intent in desk.told()} == {AttemptStatus.TIMED_OUT}


def test_an_input_that_cannot_be_read_now_is_read_at_the_next_delivery() -> None:
    table = Throttled()
    desk = Desk(does(lambda args, ctx: {"length": len(args["x"]), "by": ctx.deliveries}), table=table)
    desk.send(args=desk.payloads.keep(RUN, {"x": "y" * 5_000}))
    table.down = True
    desk.work(desk.worker())
    table.down = False
    assert (desk.row().status, desk.told()) == (AttemptStatus.RUNNING, [])
    desk.lose_lease()
    desk.work(desk.worker("b"))
    assert desk.row().output == Inline({"length": 5_000, "by": 2})
