"""Tasks that a worker gives back: another one has them at once, and it costs no delivery."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.bridge.desk import ANSWERS, WORKER, Desk, bridge, refusal

from ductor.app.bridge_poll import TaskGiven
from ductor.testing.chaos import Crash


def test_a_task_that_is_given_back_goes_to_another_worker_at_once_and_costs_no_delivery() -> None:
    desk = Desk()
    for number in range(1, 6):
        task = desk.take()
        assert (task.attempt, task.delivery) == (1, number)
        for _ in range(2):
            desk.bridge.answers.release(WORKER, task.task_token)
        for used in ("heartbeat", "complete", "fail"):
            assert refusal(ANSWERS[used], desk, task)[1] == "TASK_TOKEN_EXPIRED"
    desk.complete(desk.take(), {"v": 1})
    desk.settle()
    assert (desk.status, desk.faults) == ("completed", [])


def test_a_poll_that_was_out_when_its_worker_gave_a_task_back_does_not_get_it() -> None:
    desk = Desk()
    task = desk.take()

    def gives_back(ms: int) -> bool:
        desk.clock.advance(ms)
        desk.bridge.answers.release(WORKER, task.task_token)
        return True

    desk.bridge.polls._pause = gives_back
    assert desk.poll(wait_seconds=3) == ()
    assert desk.poll(worker="another")[0].delivery == 2


def test_a_task_that_is_given_back_keeps_its_place_in_the_queue() -> None:
    desk = Desk()
    first = desk.take()
    desk.clock.advance(10)
    desk.world.trigger("d0", {"n": 2})
    desk.wake()
    desk.bridge.answers.release(WORKER, first.task_token)
    assert desk.poll(max=1)[0].run_id == desk.run_id


def test_whoever_takes_a_task_while_it_is_given_back_keeps_its_time_limit() -> None:
    desk = Desk(bridge(timeout_ms=60_000))
    first = desk.take()
    desk.clock.advance(1_000)
    put, taken = desk.bridge.answers._queue.put, list[TaskGiven]()

    def and_taken(*args: Any) -> None:
        put(*args)
        taken.extend(desk.poll(worker="another"))

    desk.bridge.answers._queue.put = and_taken  # type: ignore[method-assign,assignment]
    desk.bridge.answers.release(WORKER, first.task_token)
    desk.wake()
    node = desk.world.state(desk.run_id).root.nodes["b"]
    assert (node.worker, node.deadline) == ("another", taken[0].deadline_at)


def test_a_worker_that_dies_while_it_gives_back_loses_nothing() -> None:
    desk = Desk()
    desk.world.chaos.crash_at("bridge.after_release")
    with pytest.raises(Crash):
        desk.bridge.answers.release(WORKER, desk.take().task_token)
    assert desk.take().delivery == 2
