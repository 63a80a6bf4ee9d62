"""Runs that events start: which, how many, with what, and what becomes of those that are refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest
from tests.unit.app.refusal import refused
from tests.unit.app.world import HELLO, World

from ductor.adapters.local.blobs import SqliteBlobs
from ductor.adapters.local.database import Database
from ductor.adapters.local.fifo import SqliteFifoQueue
from ductor.adapters.local.system import SystemIds
from ductor.adapters.local.table import SqliteTable
from ductor.adapters.local.unit import SqliteUnit
from ductor.app.environments import EnvironmentChanges
from ductor.app.events import Published
from ductor.app.subscriptions import Subscriptions, matches
from ductor.app.trigger import Triggers
from ductor.model.causation import MAX_DEPTH, depth_of_started
from ductor.model.errors import ErrorCode
from ductor.model.waiting import Event
from ductor.ports import QueueName, UnavailableError
from ductor.testing.memory import VirtualClock

PAID = "order.paid"


def listening(*patterns: str, slug: str = "hello_world", **trigger: Any) -> dict[str, Any]:
    """A document with one trigger; what is no field of a trigger is one of the document."""
    own = {name: trigger.pop(name) for name in ("condition", "input", "correlation_labels") if name in trigger}
    return {**HELLO, "family_slug": slug, "triggers": [{"patterns": list(patterns), **own}], **trigger}


def again(world: World, document: dict[str, Any]) -> str:
    """The id of the next version of a family that has a draft."""
    family, _ = world.library.family(world.tenant, document["family_slug"])
    draft = world.definitions.get(world.caller, family.draft_id)
    changes = {"expected_draft_revision": draft.draft_revision, "triggers": document.get("triggers", [])}
    world.definitions.edit(world.caller, family.draft_id, changes)
    return world.definitions.publish(world.caller, family.draft_id).published.id


def publish(world: World, name: str = PAID, event_id: str = "e1", payload: Any = None, **fields: Any) -> Published:
    event = Event(event_name=name, event_id=event_id, payload=payload, **fields)
    return world.events.publish(world.caller, event)


def codes(done: Published) -> list[tuple[str, str]]:
    return [(one.family_slug, one.code) for one in done.refused_starts]


@pytest.mark.parametrize(
    ("pattern", "names", "others"),
    [
        ("a.b", ["a.b"], ["a", "a.b.c", "a.bc"]),
        ("a.b.*", ["a.b.x", "a.b.x.y"], ["a.b", "a.bx", "a.b."]),
        ("a.*", ["a.b", "a.b.c"], ["a", "ab", "b.a"]),
    ],
)
def test_a_literal_means_itself_and_a_wildcard_everything_below(
    world: World, pattern: str, names: list[str], others: list[str]
) -> None:
    world.published(listening(pattern))
    for name in names:
        assert matches(pattern, name)
        assert len(publish(world, name).started_runs) == 1
    for name in others:
        assert not matches(pattern, name)
        assert publish(world, name).started_runs == ()


def test_the_run_has_the_event_as_its_trigger_and_its_payload_as_input(world: World) -> None:
    definition_id = world.published(listening(PAID))
    (run_id,) = publish(world, payload={"amount": 5}, correlation_key="o-1").started_runs
    origin = world.header(run_id).origin
    assert (origin.definition_id, origin.created_by, origin.depth) == (definition_id, "event", 1)
    assert origin.event == {"event_name": PAID, "correlation_key": "o-1", "event_id": "e1"}
    assert world.payloads.load(run_id, origin.input) == {"amount": 5}
    assert origin.journey_id == origin.root_run_id == run_id
    assert [intent.run_id for intent in world.sent()] == [run_id]


def test_input_and_labels_are_templates_over_the_event_and_the_variables(world: World) -> None:
    document = listening(
        PAID,
        input={"cents": "${{ EVENT.payload.amount * 100 }}", "from": "${{ VARS.shop }} ${{ EVENT.event_id }}"},
        correlation_labels={"order": "${{ EVENT.payload.order }}"},
        variables={"shop": "north"},
    )
    world.published(document)
    (run_id,) = publish(world, payload={"amount": 5, "order": 42}).started_runs
    origin = world.header(run_id).origin
    assert world.payloads.load(run_id, origin.input) == {"cents": 500, "from": "north e1"}
    assert origin.labels == (("order", "42"),)


def test_labels_may_be_written_as_in_a_trigger_request(world: World) -> None:
    world.published(listening(PAID, correlation_labels=[{"key": "order", "id": "${{ EVENT.payload }}"}]))
    (run_id,) = publish(world, payload="o-1").started_runs
    assert world.header(run_id).origin.labels == (("order", "o-1"),)


def test_a_condition_decides(world: World) -> None:
    world.published(listening(PAID, condition="EVENT.payload.amount > 10"))
    assert publish(world, event_id="e1", payload={"amount": 10}).started_runs == ()
    assert len(publish(world, event_id="e2", payload={"amount": 11}).started_runs) == 1


def test_one_run_per_definition_however_many_of_its_triggers_hold(world: World) -> None:
    document = listening(PAID, input={"first": True})
    document["triggers"].append({"patterns": ["order.*", PAID], "input": {"first": False}})
    world.published(document)
    (run_id,) = publish(world).started_runs
    assert world.payloads.load(run_id, world.header(run_id).origin.input) == {"first": True}


def test_an_event_starts_a_run_of_every_definition_that_listens(world: World) -> None:
    for slug, pattern in (("one", PAID), ("two", "order.*"), ("three", "order.shipped")):
        world.published(listening(pattern, slug=slug))
    runs = [world.header(run_id).origin.family_slug for run_id in publish(world).started_runs]
    assert runs == ["one", "two"]


def test_a_repeated_event_starts_nothing(world: World) -> None:
    world.published(listening(PAID))
    assert len(publish(world).started_runs) == 1
    assert (publish(world).started_runs, len(world.sent())) == ((), 1)
    assert len(publish(world, event_id="e2").started_runs) == 1


def test_an_event_that_comes_back_after_a_day_has_its_run(world: World) -> None:
    world.published(listening(PAID))
    first = publish(world).started_runs
    world.clock.advance(25 * 3_600_000)
    assert publish(world).started_runs == first


@pytest.mark.parametrize("point", ["events.after_receive", "events.after_send"])
def test_a_publisher_that_died_is_gone_on_from_with_the_same_run(world: World, point: str) -> None:
    world.published(listening(PAID))
    world.published(listening(PAID, slug="other"))

    def die(at: str) -> None:
        if at == point:
            raise KeyboardInterrupt

    with mock.patch.object(world.events._faults, "at", die), pytest.raises(KeyboardInterrupt):
        publish(world)
    again(world, listening(PAID, slug="other"))
    done = publish(world)
    assert sorted(world.header(run_id).origin.family_slug for run_id in done.started_runs) == ["hello_world", "other"]
    assert {intent.run_id for intent in world.sent()} == set(done.started_runs)
    assert publish(world).started_runs == ()


def test_an_outage_between_two_starts_is_made_up_for_by_the_next_try(world: World) -> None:
    world.published(listening(PAID, slug="one"))
    world.published(listening(PAID, slug="two"))
    real, calls = Triggers.start, iter([True, False])

    def flaky(*args: Any, **fields: Any) -> Any:
        if next(calls, True):
            return real(*args, **fields)
        raise UnavailableError("away")

    with mock.patch.object(Triggers, "start", flaky), pytest.raises(UnavailableError):
        publish(world)
    assert len(publish(world).started_runs) == 2
    assert len({intent.run_id for intent in world.sent()}) == 2


def test_thirty_publishers_at_once_start_one_run(tmp_path: Path) -> None:
    database, clock = Database(tmp_path / "ductor.db"), VirtualClock()
    world = World(
        table=SqliteTable(database),
        blobs=SqliteBlobs(database),
        intents=SqliteFifoQueue(database, QueueName.INTENTS, clock),
        unit=SqliteUnit(database),
        ids=SystemIds(),
    )
    world.published(listening(PAID))
    with ThreadPoolExecutor(30) as pool:
        done = [future.result() for future in [pool.submit(publish, world) for _ in range(30)]]
    assert len({run_id for one in done for run_id in one.started_runs}) == 1
    assert {intent.run_id for intent in world.sent()} == {run_id for one in done for run_id in one.started_runs}
    database.close()


def test_only_the_newest_version_listens(world: World) -> None:
    world.published(listening(PAID))
    newest = again(world, listening("order.*"))
    (run_id,) = publish(world).started_runs
    assert world.header(run_id).origin.definition_id == newest
    again(world, listening("invoice.paid"))
    assert publish(world, event_id="e2").started_runs == ()
    assert len(publish(world, "invoice.paid").started_runs) == 1
    again(world, {"family_slug": "hello_world"})
    assert publish(world, "invoice.paid", "e3").started_runs == ()


@pytest.mark.parametrize("page", [1, 100])
def test_many_patterns_below_one_name_are_told_apart(world: World, page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ductor.app.subscriptions.PAGE", page)
    for slug, pattern in (("a", "x.y"), ("b", "x.y.*"), ("c", "x.*"), ("d", "x.y#z"), ("e", "x.z"), ("f", "x")):
        world.published(listening(pattern, slug=slug))

    def families(name: str) -> list[str]:
        return Subscriptions(world.table, world.library).families(world.tenant, name)

    assert [families(name) for name in ("x.y", "x.y.z", "x.y#z", "x", "y")] == [
        ["a", "c"],
        ["b", "c"],
        ["c", "d"],
        ["f"],
        [],
    ]


def test_what_no_version_listens_to_any_more_is_not_looked_up(world: World) -> None:
    world.published(listening(PAID))
    again(world, listening("invoice.paid"))
    assert not world.events._starts.listens(world.tenant, PAID)
    assert world.events._starts.listens(world.tenant, "invoice.paid")


def test_a_publication_that_died_before_the_clean_up_still_moves_the_triggers(world: World) -> None:
    world.published(listening(PAID))
    with mock.patch("ductor.app.subscriptions.Subscriptions._remove", side_effect=UnavailableError("away")):
        again(world, listening("invoice.paid"))
    assert publish(world).started_runs == ()
    assert len(publish(world, "invoice.paid").started_runs) == 1


def test_a_clean_up_that_comes_late_leaves_what_a_later_version_needs(world: World) -> None:
    first = world.published(listening(PAID))
    with mock.patch("ductor.app.subscriptions.Subscriptions._remove"):
        second = again(world, listening("invoice.paid"))
    again(world, listening(PAID))
    subscriptions = Subscriptions(world.table, world.library)
    subscriptions._remove(world.definitions.row(world.tenant, second), {PAID})
    subscriptions.trim(world.definitions.row(world.tenant, second), first)
    assert len(publish(world).started_runs) == 1


def test_an_archived_version_starts_nothing(world: World) -> None:
    world.published(listening(PAID))
    world.definitions.archive(world.caller, again(world, listening(PAID)))
    assert publish(world) == Published("e1", 0)


def test_a_draft_starts_nothing(world: World) -> None:
    world.definitions.create(world.caller, listening(PAID))
    assert publish(world) == Published("e1", 0)


def test_another_tenants_event_starts_nothing(world: World) -> None:
    world.published(listening(PAID))
    event = Event(event_name=PAID, event_id="e1")
    assert world.events.publish(world.stranger(), event).started_runs == ()


def test_the_newest_version_of_each_environment_listens(world: World) -> None:
    world.admin.environments.create(world.caller, "prod", EnvironmentChanges())
    first = world.published(listening(PAID))
    second = world.admin.promotions.promote(world.caller, first, "prod").published.id
    runs = [world.header(run_id).origin for run_id in publish(world).started_runs]
    assert [(origin.environment, origin.definition_id) for origin in runs] == [("default", first), ("prod", second)]
    world.definitions.archive(world.caller, first)
    assert len(publish(world, event_id="e2").started_runs) == 1


def test_an_environment_that_pins_its_release_is_open_to_events(world: World) -> None:
    changes = EnvironmentChanges(require_release=True, live_deployment="wave-1")
    world.admin.environments.create(world.caller, "prod", changes)
    world.published(listening(PAID, environment="prod"))
    assert len(publish(world).started_runs) == 1


def test_a_refusal_is_recorded_and_keeps_nobody_else_from_starting(world: World) -> None:
    schema = {"type": "object", "required": ["order"]}
    strict = world.published(listening(PAID, slug="a_strict", input_schema=schema))
    world.published(listening(PAID, slug="b_wrong", correlation_labels={"Order": "x"}))
    world.published(listening(PAID, slug="c_broken", condition="EVENT.payload.nope == 1"))
    world.published(listening(PAID, slug="d_fine"))
    done = publish(world, payload={"amount": 1}, correlation_key="o-1")
    assert [world.header(run_id).origin.family_slug for run_id in done.started_runs] == ["d_fine"]
    wrong = [("a_strict", "INPUT_INVALID"), ("b_wrong", "LABEL_INVALID"), ("c_broken", "EXPRESSION_ERROR")]
    assert sorted(codes(done)) == wrong
    listed = world.events.refused_starts(world.caller, None, None).items
    assert sorted((one.family_slug, one.code) for one in listed) == wrong
    (kept,) = (one for one in listed if one.family_slug == "a_strict")
    assert (kept.definition_id, kept.event_name, kept.event_id) == (strict, PAID, "e1")
    assert (kept.correlation_key, kept.environment, kept.at) == ("o-1", "default", world.clock.now_ms())
    assert [fault.field for fault in kept.errors] == ["input.order"]


def test_an_unforeseen_fault_of_one_definition_is_recorded_too(world: World) -> None:
    world.published(listening(PAID, slug="a"))
    world.published(listening(PAID, slug="b"))
    real = Triggers.start

    def broken(self: Triggers, tenant: str, definition_id: str, *rest: Any, **fields: Any) -> Any:
        if world.library.standing(tenant, definition_id).family_slug == "a":
            raise ZeroDivisionError("a bug")
        return real(self, tenant, definition_id, *rest, **fields)

    with mock.patch.object(Triggers, "start", broken):
        done = publish(world)
    assert (codes(done), len(done.started_runs)) == ([("a", "INTERNAL")], 1)


def test_an_inactive_environment_refuses_and_records(world: World) -> None:
    world.admin.environments.create(world.caller, "prod", EnvironmentChanges())
    world.published(listening(PAID, environment="prod"))
    world.admin.environments.update(world.caller, "prod", EnvironmentChanges(active=False))
    assert codes(publish(world)) == [("hello_world", "ENVIRONMENT_INACTIVE")]


def test_refusals_are_listed_in_pages_for_their_tenant_only(world: World) -> None:
    world.published(listening(PAID, input_schema={"type": "object", "required": ["order"]}))
    for number in range(5):
        publish(world, event_id=f"e{number}", payload={})
        world.clock.advance(1)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = world.events.refused_starts(world.caller, 2, cursor)
        seen += [one.event_id for one in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == ["e4", "e3", "e2", "e1", "e0"]
    assert world.events.refused_starts(world.stranger(), None, None).items == ()
    blind = msgspec.structs.replace(world.caller, scopes=frozenset())
    with refused(ErrorCode.PERMISSION_DENIED, "SCOPE_MISSING"):
        world.events.refused_starts(blind, None, None)


def test_names_of_the_engine_cannot_be_published(world: World) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT, "EVENT_NAME_RESERVED", field="event_name"):
        publish(world, "ductor.run.completed")


def test_rule_24_what_is_too_deep_is_refused_and_recorded(world: World) -> None:
    world.published(listening(PAID))
    last = world.events.accept(world.tenant, Event(event_name=PAID, event_id="e1", depth=MAX_DEPTH - 1))
    assert world.header(last.started_runs[0]).origin.depth == MAX_DEPTH
    over = world.events.accept(world.tenant, Event(event_name=PAID, event_id="e2", depth=MAX_DEPTH))
    assert (over.started_runs, codes(over)) == ((), [("hello_world", "CAUSATION_TOO_DEEP")])
    (kept,) = world.events.refused_starts(world.caller, None, None).items
    assert (kept.code, kept.depth) == ("CAUSATION_TOO_DEEP", MAX_DEPTH)


def test_rule_24_listeners_to_each_others_runs_use_the_depth_up_faster() -> None:
    assert depth_of_started("order.paid", 3, 10) == 4
    assert depth_of_started("ductor.run.completed", 3, 1) == 4
    assert depth_of_started("ductor.run.started", 3, 1) == 11
    assert depth_of_started("ductor.run.completed", 3, 2) == 11
    assert depth_of_started("ductor.run.completed", 3, 100) == 19

    def tree(listeners: int, depth: int = 0) -> int:
        """Runs that come of one, if all listen to the start and the end of all."""
        deeper = depth_of_started("ductor.run.completed", depth, listeners)
        early = depth_of_started("ductor.run.started", depth, listeners)
        return 1 + sum(listeners * tree(listeners, one) for one in (deeper, early) if one <= MAX_DEPTH)

    assert max(tree(listeners) for listeners in range(1, 21)) < 3_000


def test_a_publisher_is_not_shown_refusals_of_environments_that_are_closed_to_it(world: World) -> None:
    world.published(listening(PAID, input="${{ EVENT.payload.nope }}"))
    other = frozenset({"another"})
    elsewhere = msgspec.structs.replace(world.caller, environments_read=other, environments_write=other)
    event = Event(event_name=PAID, event_id="e1", payload={})
    assert world.events.publish(elsewhere, event).refused_starts == ()
    assert codes(publish(world, event_id="e2", payload={})) == [("hello_world", "EXPRESSION_ERROR")]
