"""Batches: every matching run is asked once and counted once, whoever dies in between."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest
from tests.unit.app.refusal import refused
from tests.unit.app.world import World

from ductor.app.admission import TriggerRequest
from ductor.app.batches import BatchRequest, BatchStatus
from ductor.model.enums import RunStatus
from ductor.model.errors import ErrorCode
from ductor.model.intent import Intent, IntentKind
from ductor.ports import UnavailableError

WANTED = {"workflow_type": "hello_world"}


@pytest.fixture
def world() -> Shop:
    return Shop()


@pytest.fixture
def one_by_one() -> Iterator[None]:
    """One run a page, one page at once."""
    with patch("ductor.app.batches.PAGE", 1), patch("ductor.app.batches.PAGES_AT_ONCE", 1):
        yield


def request(request_id: str = "b", operation: str = "cancel", **wanted: str) -> BatchRequest:
    return BatchRequest(request_id=request_id, operation=operation, filter=wanted or WANTED)


class Shop(World):
    """An installation with one published definition."""

    def __init__(self) -> None:
        super().__init__()
        self.definition_id = self.published()


def triggered(world: Shop) -> str:
    return world.triggers.trigger(world.caller, world.definition_id, TriggerRequest()).run_id


def sent(world: World) -> list[Intent]:
    found: list[Intent] = []
    while more := world.sent():
        found += more
    return found


def asked(world: World, kind: IntentKind = IntentKind.CANCEL) -> list[str]:
    return sorted(intent.run_id for intent in sent(world) if intent.kind is kind)


def test_every_matching_run_is_asked_once(world: Shop) -> None:
    runs = sorted(triggered(world) for _ in range(3))
    batch = world.operations.batches.begin(world.caller, request())
    assert (batch.status, batch.accepted, batch.refused) == (BatchStatus.COMPLETED, 3, 0)
    assert asked(world) == runs


def test_runs_that_refuse_are_counted_and_named(world: Shop) -> None:
    run_id = triggered(world)
    state = world.header(run_id)
    state.status = RunStatus.COMPLETED
    world.store(state)
    batch = world.operations.batches.begin(world.caller, request())
    assert (batch.accepted, batch.refused) == (0, 1)
    assert [(one.run_id, one.code) for one in batch.refusals] == [(run_id, "RUN_TERMINAL")]


def test_runs_admitted_afterwards_are_left_alone(world: Shop, one_by_one: None) -> None:
    early = triggered(world)
    world.clock.advance(1_000)
    second = triggered(world)
    world.operations.batches.begin(world.caller, request())
    world.clock.advance(1_000)
    triggered(world)
    for _ in range(5):
        world.operations.batches.sweep()
    assert asked(world) == sorted([early, second])


def test_rule_25_a_batch_goes_on_from_its_cursor_after_a_crash(world: Shop, one_by_one: None) -> None:
    runs = sorted(triggered(world) for _ in range(3))
    batch = world.operations.batches.begin(world.caller, request())
    assert (batch.status, batch.accepted) == (BatchStatus.RUNNING, 1)
    with patch.object(world.table, "write", side_effect=UnavailableError("down")):
        world.operations.batches.sweep()  # the page's controls are sent, the cursor does not move
    while world.operations.batches.sweep():
        pass
    done = world.operations.batches.get(world.caller, batch.batch_id)
    assert (done.status, done.accepted) == (BatchStatus.COMPLETED, 3)
    assert sorted(set(asked(world))) == runs


def test_rule_25_two_who_advance_one_batch_count_each_run_once(world: Shop, one_by_one: None) -> None:
    for _ in range(3):
        triggered(world)
    batches = world.operations.batches
    batch = batches.begin(world.caller, request())
    batches._advance(batch, 2, 1)
    batches._advance(batch, 2, 1)
    assert batches.get(world.caller, batch.batch_id).accepted == 2


def test_a_repeat_answers_how_far_the_job_is_and_another_one_is_refused(world: Shop) -> None:
    triggered(world)
    first = world.operations.batches.begin(world.caller, request())
    assert world.operations.batches.begin(world.caller, request()) == first
    with refused(ErrorCode.FAILED_PRECONDITION, "REQUEST_ID_REUSED"):
        world.operations.batches.begin(world.caller, request(operation="pause"))


def test_a_filter_that_names_nothing_and_an_unknown_control_are_refused(world: Shop) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT, "FILTER_REQUIRED"):
        world.operations.batches.begin(world.caller, BatchRequest(request_id="b", operation="cancel", filter={}))
    with refused(ErrorCode.INVALID_ARGUMENT, "OPERATION_UNKNOWN"):
        world.operations.batches.begin(world.caller, request(operation="explode"))
    with refused(ErrorCode.NOT_FOUND, "BATCH_NOT_FOUND"):
        world.operations.batches.get(world.caller, "nope")
