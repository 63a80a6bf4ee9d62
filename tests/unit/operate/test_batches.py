"""Batches: every matching run is asked once and counted once, whoever dies in between."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import msgspec
import pytest
from tests.unit.app.refusal import refused
from tests.unit.app.world import HELLO, World

from ductor.app.admission import TriggerRequest
from ductor.app.batches import STILL_MS, BatchRequest, BatchStatus
from ductor.app.environments import EnvironmentChanges
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
    with patch.multiple("ductor.app.batches", PAGE=1, PAGES_AT_ONCE=1, PAGES_PER_MESSAGE=1):
        yield


def request(request_id: str = "b", operation: str = "cancel", **wanted: str) -> BatchRequest:
    return BatchRequest(request_id=request_id, operation=operation, filter=wanted or WANTED)


class Shop(World):
    """An installation with one published definition."""

    def __init__(self) -> None:
        super().__init__()
        self.definition_id = self.published()


def triggered(world: World, definition_id: str = "") -> str:
    wanted = definition_id or getattr(world, "definition_id", "")
    return world.triggers.trigger(world.caller, wanted, TriggerRequest()).run_id


def received(world: World) -> list[Intent]:
    """Whatever lies in the queue; controls stay out of the way."""
    found: list[Intent] = []
    while more := world.sent():
        found += more
    return found


def handled(world: World) -> list[Intent]:
    """Messages are handled until no batch goes on; the controls that were asked for meanwhile."""
    asked: list[Intent] = []
    while intents := received(world):
        asked += [intent for intent in intents if intent.kind is not IntentKind.BATCH]
        for intent in intents:
            if intent.kind is IntentKind.BATCH:
                world.operations.batches.deliver([intent])
    return asked


def asked(world: World, kind: IntentKind = IntentKind.CANCEL) -> list[str]:
    return sorted(intent.run_id for intent in handled(world) if intent.kind is kind)


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
    assert asked(world) == sorted([early, second])


def test_rule_25_messages_move_a_batch_page_by_page(world: Shop, one_by_one: None) -> None:
    runs = sorted(triggered(world) for _ in range(5))
    received(world)
    batch = world.operations.batches.begin(world.caller, request())
    assert (batch.status, batch.accepted) == (BatchStatus.RUNNING, 1)
    assert asked(world) == runs
    done = world.operations.batches.get(world.caller, batch.batch_id)
    assert (done.status, done.accepted) == (BatchStatus.COMPLETED, 5)


def test_rule_25_a_batch_goes_on_from_its_cursor_after_a_crash(world: Shop, one_by_one: None) -> None:
    runs = sorted(triggered(world) for _ in range(3))
    received(world)
    batch = world.operations.batches.begin(world.caller, request())
    (message,) = [intent for intent in received(world) if intent.kind is IntentKind.BATCH]
    with patch.object(world.table, "write", side_effect=UnavailableError("down")), pytest.raises(UnavailableError):
        world.operations.batches.deliver([message])  # the page's controls are sent, the cursor does not move
    world.operations.batches.deliver([message])
    assert sorted({*asked(world), *runs}) == runs
    done = world.operations.batches.get(world.caller, batch.batch_id)
    assert (done.status, done.accepted) == (BatchStatus.COMPLETED, 3)


def test_rule_25_whoever_moved_the_cursor_and_died_is_followed(world: Shop, one_by_one: None) -> None:
    for _ in range(4):
        triggered(world)
    received(world)
    batch = world.operations.batches.begin(world.caller, request())
    (message,) = [intent for intent in received(world) if intent.kind is IntentKind.BATCH]
    dead = patch.object(world.operations.batches, "_tell", side_effect=UnavailableError("down"))
    with dead, pytest.raises(UnavailableError):
        world.operations.batches.deliver([message])
    world.operations.batches.deliver([message])  # the cursor has moved: it only sends the next message
    assert world.operations.batches.get(world.caller, batch.batch_id).accepted == 2
    handled(world)
    assert world.operations.batches.get(world.caller, batch.batch_id).accepted == 4


def test_rule_25_a_message_delivered_twice_makes_no_second_chain(world: Shop, one_by_one: None) -> None:
    for _ in range(4):
        triggered(world)
    received(world)
    batch = world.operations.batches.begin(world.caller, request())
    (message,) = [intent for intent in received(world) if intent.kind is IntentKind.BATCH]
    world.operations.batches.deliver([message])
    world.operations.batches.deliver([message])
    assert [intent.kind for intent in received(world)].count(IntentKind.BATCH) == 1
    assert world.operations.batches.get(world.caller, batch.batch_id).accepted == 2


def test_rule_25_two_who_advance_one_batch_count_each_run_once(world: Shop, one_by_one: None) -> None:
    for _ in range(3):
        triggered(world)
    batches = world.operations.batches
    batch = batches.begin(world.caller, request())
    batches._pages(batch, 2, 1)
    batches._pages(batch, 2, 1)
    assert batches.get(world.caller, batch.batch_id).accepted == 2


def test_rule_25_the_sweeper_finds_a_batch_whose_message_was_lost(world: Shop, one_by_one: None) -> None:
    runs = sorted(triggered(world) for _ in range(3))
    world.operations.batches.begin(world.caller, request())
    first = [intent.run_id for intent in received(world) if intent.kind is IntentKind.CANCEL]
    assert world.operations.batches.sweep() == 0  # it may just be busy
    world.clock.advance(STILL_MS)
    assert world.operations.batches.sweep() == 1
    assert sorted([*first, *asked(world)]) == runs


def test_runs_where_the_key_may_not_write_are_neither_asked_nor_counted_nor_named(world: Shop) -> None:
    own = triggered(world)
    world.admin.environments.create(world.caller, "prod", EnvironmentChanges())
    triggered(world, world.published({**HELLO, "family_slug": "in_prod", "environment": "prod"}))
    received(world)
    caller = msgspec.structs.replace(world.caller, environments_write=frozenset({"default"}))
    batch = world.operations.batches.begin(caller, request(active_only="true"))
    assert (batch.accepted, batch.refused, batch.refusals) == (1, 0, ())
    assert asked(world) == [own]


def test_a_batch_of_a_key_with_more_environments_is_not_shown_to_one_with_fewer(world: Shop) -> None:
    triggered(world)
    batch = world.operations.batches.begin(world.caller, request())
    caller = msgspec.structs.replace(world.caller, environments_write=frozenset({"default"}))
    with refused(ErrorCode.NOT_FOUND, "BATCH_NOT_FOUND"):
        world.operations.batches.get(caller, batch.batch_id)
    with refused(ErrorCode.FAILED_PRECONDITION, "REQUEST_ID_REUSED"):
        world.operations.batches.begin(caller, request())


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
