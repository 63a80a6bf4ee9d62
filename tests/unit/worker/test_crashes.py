"""A crash at any fault point is followed by a redelivery that ends with one recorded result, told to its run."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.worker.desk import RUN, Desk, does, takes

from ductor.actions.context import ActionContext
from ductor.model.attempt import AttemptStatus
from ductor.model.payload import Inline
from ductor.ports import QueueName, UnavailableError
from ductor.testing.chaos import Crash
from ductor.testing.memory import MemoryQueue

POINTS = ["before_claim", "after_claim", "before_finish", "after_finish", "after_send", "after_ack"]
BEFORE_THE_RECORD = {"before_claim", "after_claim", "before_finish"}


def crash_and_recover(desk: Desk, rounds: int = 4) -> int:
    """Work with a worker that dies, then with others; how many died."""
    died = 0
    for number in range(rounds):
        try:
            desk.work(desk.worker(f"w{number}"))
        except Crash:
            died += 1
        desk.lose_lease()
    return died


@pytest.mark.parametrize("point", POINTS)
def test_one_result_is_recorded_and_told(point: str) -> None:
    desk = Desk(takes([{"n": 1}, {"n": 2}, {"n": 3}]), point=f"worker.{point}")
    desk.send()
    assert crash_and_recover(desk) == 1
    executions = 2 if point == "before_finish" else 1
    assert desk.row().output == Inline({"n": executions})
    told = desk.told()
    assert {(intent.id, intent.status) for intent in told} == {(f"{RUN}/n/1/finished", AttemptStatus.SUCCEEDED)}
    assert all(intent.output == Inline({"n": executions}) for intent in told)
    assert desk.steps.depth() == 0


@pytest.mark.parametrize("point", sorted(set(POINTS) - BEFORE_THE_RECORD))
def test_a_recorded_result_is_never_executed_again(point: str) -> None:
    runs: list[int] = []

    def run(args: dict[str, Any], ctx: ActionContext) -> dict[str, Any]:
        runs.append(ctx.deliveries)
        return {}

    desk = Desk(does(run), point=f"worker.{point}")
    desk.send()
    crash_and_recover(desk)
    assert runs == [1]


@pytest.mark.parametrize("point", POINTS)
def test_a_whole_batch_survives_a_crash(point: str) -> None:
    desk = Desk(does(lambda args, ctx: {"node": ctx.node}), point=f"worker.{point}")
    nodes = [f"n{number}" for number in range(20)]
    for node in nodes:
        desk.send(node=node)
    crash_and_recover(desk)
    assert [desk.row(node).output for node in nodes] == [Inline({"node": node}) for node in nodes]
    assert {intent.node for intent in desk.told()} == set(nodes)


def test_an_action_that_kills_every_worker_ends_as_lost() -> None:
    def run(args: dict[str, Any], ctx: ActionContext) -> dict[str, Any]:
        raise Crash("out of memory")

    desk = Desk(does(run))
    desk.send()
    assert crash_and_recover(desk, rounds=6) == 3
    error = desk.row().error
    assert error is not None
    assert error.code == "WORKER_LOST"
    assert desk.told() != []


class Deaf(MemoryQueue):
    """Accepts nothing while `deaf`."""

    deaf = True

    def send(self, messages: Any) -> tuple[int, ...]:
        return tuple(range(len(messages))) if self.deaf else super().send(messages)


def test_a_result_that_could_not_be_told_is_told_after_the_redelivery() -> None:
    desk = Desk(takes([{"n": 1}]))
    deaf = desk.intents = Deaf(QueueName.INTENTS, desk.clock)
    desk.send()
    with pytest.raises(UnavailableError):
        desk.work(desk.worker())
    assert desk.steps.depth() == 1
    deaf.deaf = False
    desk.lose_lease()
    desk.work(desk.worker("b"))
    assert [intent.output for intent in desk.told()] == [Inline({"n": 1})]
    assert desk.steps.depth() == 0
