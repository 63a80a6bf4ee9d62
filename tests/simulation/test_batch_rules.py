"""Rule 25 in a world where processes die: a batch asks every run, counts each once, and comes to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from unittest.mock import patch

import pytest
from tests.simulation.scene import Scene, flow, wait

from ductor.app.batches import Batches, BatchRequest, BatchStatus
from ductor.app.headers import request_sk, run_pk
from ductor.ports import UnavailableError
from ductor.testing.actors import VISIBILITY_MS
from ductor.testing.batches import ALL_RUNS
from ductor.testing.chaos import Crash
from ductor.testing.invariants import violations

RUNS = 7
POINTS = ("coordinator.before_ack", "coordinator.before_commit", "coordinator.after_commit", "coordinator.after_send")


class Crowd(Scene):
    """Seven runs that wait for an hour, and a batch over all of them, two runs a page."""

    def __init__(self) -> None:
        super().__init__(flow(wait("w", "1h")))
        for _ in range(RUNS - 1):
            self.world.trigger("d0")
        with self.world.limits():
            while self.deliver():
                pass
        self.batch_id = ""

    def begin(self, operation: str = "cancel") -> None:
        request = BatchRequest(request_id="all", operation=operation, filter=ALL_RUNS)
        batch = self.world.operations.batches.begin(self.world.caller, request)
        self.world.batches[batch.batch_id] = frozenset(self.world.run_ids())
        self.batch_id = batch.batch_id

    def counts(self) -> tuple[BatchStatus, int, int]:
        batch = self.world.operations.batches.get(self.world.caller, self.batch_id)
        return batch.status, batch.accepted, batch.refused

    def answered(self) -> int:
        sk = request_sk(f"batch:{self.batch_id}")
        return sum(self.world.table.get(run_pk(run_id), sk) is not None for run_id in self.world.run_ids())


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    scene = Crowd()
    with scene.world.limits():
        yield scene


def done(crowd: Crowd) -> None:
    """Whatever happened: all runs are cancelled, each was asked and counted once."""
    crowd.settle()
    assert crowd.counts() == (BatchStatus.COMPLETED, RUNS, 0)
    assert crowd.answered() == RUNS
    assert {crowd.world.state(run_id).status.value for run_id in crowd.world.run_ids()} == {"cancelled"}
    assert violations(crowd.world, final=True) == []


def deliver_all(crowd: Crowd) -> None:
    while crowd.deliver(1):
        pass


def test_rule_25_messages_bring_a_batch_to_its_end(crowd: Crowd) -> None:
    crowd.begin()
    assert crowd.counts() == (BatchStatus.RUNNING, 2, 0)
    with patch.object(crowd.world.sweeper, "sweep", return_value=0):
        done(crowd)


@pytest.mark.parametrize("passing", [1, 2, 3])
@pytest.mark.parametrize("point", POINTS)
def test_rule_25_whoever_moves_a_batch_may_die_anywhere(crowd: Crowd, point: str, passing: int) -> None:
    crowd.begin()
    crowd.world.chaos.crash_at(point, passing)
    with pytest.raises(Crash):
        deliver_all(crowd)
    for actor in crowd.world.coordinators:
        actor.restart()
    crowd.clock.advance(VISIBILITY_MS + 1)
    done(crowd)


@pytest.mark.parametrize("write", [1, 2, 3])
def test_rule_25_storage_that_fails_while_a_page_is_counted(crowd: Crowd, write: int) -> None:
    crowd.begin()
    inner: Callable[..., tuple[object, int]] = Batches._pages
    calls = {"n": 0}

    def failing(batches: Batches, *args: object) -> tuple[object, int]:
        calls["n"] += 1
        after = inner(batches, *args)
        if calls["n"] == write:
            raise UnavailableError("the answer was lost")
        return after

    with patch.object(Batches, "_pages", failing):
        done(crowd)


def test_rule_25_a_message_that_comes_twice_and_late_changes_nothing(crowd: Crowd) -> None:
    crowd.begin()
    (kept,) = [one for one in crowd.world.intents.receive(10, visibility_ms=1) if one.group == crowd.batch_id]
    crowd.clock.advance(VISIBILITY_MS)
    done(crowd)
    crowd.world.coordinators[0].coordinator.handle([kept])
    done(crowd)


def test_rule_25_the_sweeper_finds_a_batch_whose_message_is_gone(crowd: Crowd) -> None:
    crowd.begin()
    lost = [one for one in crowd.world.intents.receive(10, visibility_ms=60_000) if one.group == crowd.batch_id]
    crowd.world.intents.ack([one.receipt for one in lost])
    crowd.clock.advance(60_000)
    done(crowd)


def test_rule_25_a_request_that_died_before_its_message_is_repeated(crowd: Crowd) -> None:
    with patch.object(Batches, "_tell", side_effect=UnavailableError("gone")):
        crowd.begin()
    crowd.begin()
    crowd.clock.advance(60_000)
    assert crowd.world.operations.batches.sweep() == 1
    done(crowd)


def test_a_batch_of_pauses_is_undone_by_one_of_resumes(crowd: Crowd) -> None:
    crowd.begin("pause")
    crowd.settle()
    assert {crowd.world.state(run_id).status.value for run_id in crowd.world.run_ids()} == {"paused"}
    request = BatchRequest(request_id="on", operation="resume", filter=ALL_RUNS)
    batch = crowd.world.operations.batches.begin(crowd.world.caller, request)
    crowd.world.batches[batch.batch_id] = frozenset(crowd.world.run_ids())
    crowd.settle()
    assert {crowd.world.state(run_id).status.value for run_id in crowd.world.run_ids()} == {"completed"}
    assert violations(crowd.world, final=True) == []
