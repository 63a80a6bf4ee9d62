"""AI steps under a worker: what they used stands in the row however an attempt ends, and storage that is away
ends nothing.
"""

from __future__ import annotations

from typing import Any

from tests.unit.ai.room import Room, says
from tests.unit.worker.desk import RUN, Desk

from ductor.actions.ai.model import AiCode, ai_error
from ductor.app.claims import Claimed
from ductor.app.worker import Worker
from ductor.model.attempt import AttemptStatus, ModelUse
from ductor.model.payload import Inline
from ductor.ports import UnavailableError

ARGS = {"model": "m", "prompt": "hello", "max_tokens": 50}
ONCE = ModelUse("scripted", "m", 1, 10, 5, 100)


class Place:
    """A desk whose workers run AI steps with the model of a room."""

    def __init__(self, *answers: Any) -> None:
        self.room = Room(*answers)
        self.desk = Desk(table=self.room.table)
        self.room.clock = self.desk.clock
        self.room.model._clock = self.desk.clock

    def worker(self, name: str = "a") -> Worker:
        return self.desk.worker(name, step_actions=self.room.steps().actions())

    def claimed(self, worker: Worker, **task: Any) -> Claimed:
        self.desk.send("ai_action", Inline({**ARGS, "output_schema": {"type": "object"}}), **task)
        return self.desk.claim_one(worker)


def test_a_success_has_its_usage() -> None:
    place = Place(says("{}"))
    worker = place.worker()
    worker.finish([worker.execute(place.claimed(worker))])
    assert (place.desk.row().status, place.desk.row().usage) == (AttemptStatus.SUCCEEDED, (ONCE,))


def test_a_failure_has_what_it_used_before_it_failed() -> None:
    place = Place(says("no"), ai_error(AiCode.THROTTLED, "slow down"))
    worker = place.worker()
    worker.finish([worker.execute(place.claimed(worker))])
    row = place.desk.row()
    assert (row.status, row.error and row.error.code, row.usage) == (AttemptStatus.FAILED, "AI_THROTTLED", (ONCE,))


def test_an_attempt_that_ran_out_of_time_has_its_usage() -> None:
    place = Place(says("{}"))
    worker = place.worker()
    claimed = place.claimed(worker, timeout_ms=1_000)
    worker.execute(claimed)
    place.desk.clock.advance(1_000)
    worker.expire([claimed])
    assert (place.desk.row().status, place.desk.row().usage) == (AttemptStatus.TIMED_OUT, (ONCE,))


def test_an_attempt_that_goes_on_elsewhere_keeps_what_it_used() -> None:
    place = Place(says("no"), UnavailableError("away"), says("{}"))
    first, second = place.worker("a"), place.worker("b")
    claimed = place.claimed(first)
    assert first.execute(claimed).begun is False
    first.give_back([claimed])
    place.desk.clock.advance(1)
    place.desk.work(second)
    row = place.desk.row()
    assert (row.status, row.deliveries) == (AttemptStatus.SUCCEEDED, 2)
    assert [(use.calls, use.input_tokens) for use in row.usage] == [(2, 20)]


def test_storage_that_is_away_leaves_the_attempt_to_its_next_delivery() -> None:
    place = Place(UnavailableError("away"), says("{}"))
    worker = place.worker()
    worker.finish([worker.execute(place.claimed(worker))])
    assert (place.desk.row().status, place.desk.told()) == (AttemptStatus.RUNNING, [])
    place.desk.lose_lease()
    place.desk.work(place.worker("b"))
    assert place.desk.row().status is AttemptStatus.SUCCEEDED


def test_an_action_of_the_same_name_as_a_step_type_is_no_action_step() -> None:
    place = Place(says("{}"))
    worker = place.worker()
    claimed = place.claimed(worker)
    assert claimed.action is not None
    assert (claimed.action.name, "ai_action" in place.desk.registry, claimed.task.run_id) == ("ai_action", False, RUN)
