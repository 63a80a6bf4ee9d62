"""Events that start runs, and events about runs, under crashes: once, at least once, and never for ever."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.simulation.family import POINTS, Family, act, boom, hold, sub, undo

from ductor.model.causation import MAX_DEPTH
from ductor.model.definition import Trigger
from ductor.model.lineage import COMPENSATION, HOOK
from ductor.model.waiting import Event
from ductor.ports import UnavailableError
from ductor.testing.chaos import Crash
from ductor.testing.invariants import violations

PAID = Trigger(("order.paid",))


def publish(family: Family, event_id: str = "e1", depth: int = 0) -> tuple[str, ...]:
    event = Event(event_name="order.paid", event_id=event_id, payload={"n": 1}, depth=depth)
    return family.world.events.accept("t", event).started_runs


def told(family: Family) -> list[tuple[str, str]]:
    """(name, id) of each event that the bus took, each once."""
    return list(dict.fromkeys((one.event.event_name, one.event.event_id) for one in family.world.bus.told))


@pytest.mark.parametrize("point", ["events.after_receive", "events.after_send"])
def test_rule_16_a_resumed_publication_starts_no_second_run(point: str) -> None:
    family = Family()
    family.add("listens", act("a"), triggers=(PAID,))
    family.world.chaos.crash_at(point)
    with pytest.raises(Crash):
        publish(family)
    family.add("listens", act("a"), act("b"), triggers=(PAID,))  # a newer version, published meanwhile
    assert len(publish(family)) == 1
    assert publish(family) == ()
    family.rest()
    assert len(family.runs("listens")) == 1


def test_rule_16_started_runs_are_keyed_by_family_and_not_by_version() -> None:
    family = Family()
    family.add("listens", act("a"), triggers=(PAID,))
    first = publish(family)
    family.add("listens", act("a"), act("b"), triggers=(PAID,))
    family.world.clock.advance(25 * 3_600_000)  # the event is not remembered any more, its run is
    assert publish(family) == first
    family.rest()
    assert len(family.runs("listens")) == 1


@pytest.mark.parametrize("point", POINTS)
def test_a_coordinator_that_dies_anywhere_tells_of_the_end_all_the_same(point: str) -> None:
    family = Family()
    family.add("tells", act("a"))
    family.start("tells")
    for passing in (1, 2, 3):
        family.world.chaos.crash_at(point, passing)
        family.work(6)
    family.rest()
    assert [name for name, _ in told(family)] == ["ductor.run.started", "ductor.run.completed"]
    assert family.crashes > 0


def test_what_the_bus_never_takes_does_not_keep_the_run_from_going_on() -> None:
    family = Family()
    family.add("tells", act("a"), act("b"))
    family.start("tells")
    real = family.world.bus.put

    def away(tellings: Any) -> Any:
        raise UnavailableError("the bus is away")

    family.world.bus.put = away  # type: ignore[method-assign]
    family.work(12)
    assert family.state().status.value == "completed"
    assert family.world.sweeper.sweep() == 0
    assert told(family) == []
    family.world.bus.put = real  # type: ignore[method-assign]
    family.rest()
    assert [name for name, _ in told(family)] == ["ductor.run.started", "ductor.run.completed"]


def test_a_run_is_started_by_the_end_of_another_although_their_coordinator_dies() -> None:
    family = Family()
    condition = 'EVENT.payload.family_slug == "first"'
    family.add("second", act("b"), triggers=(Trigger(("ductor.run.completed",), condition=condition),))
    family.add("first", act("a"))
    family.start("first")
    for point in ("events.after_receive", "events.after_send", "coordinator.after_send"):
        family.world.chaos.crash_at(point)
        family.work(10)
    family.rest()
    assert family.one("second").status.value == "completed"
    assert family.crashes > 0


def test_a_fork_tells_that_it_has_started() -> None:
    family = Family()
    family.add("source", act("a"), hold())
    family.start("source")
    family.work(6)
    fork = family.world.reset(family.root, 0, "again")
    family.rest()
    names = [name for name, event_id in told(family) if event_id.startswith(fork)]
    assert names == ["ductor.run.started", "ductor.run.completed"]


def test_rule_24_a_definition_that_starts_on_its_own_end_is_refused_at_the_limit() -> None:
    family = Family()
    family.add("loop", act("a"), triggers=(Trigger(("ductor.run.completed",)),))
    family.start("loop")
    family.rest()
    assert sorted(state.origin.depth for state in family.runs("loop")) == list(range(MAX_DEPTH + 1))
    (refused,) = family.world.events.refused_starts(family.world.caller, None, None).items
    assert (refused.code, refused.depth) == ("CAUSATION_TOO_DEEP", MAX_DEPTH)


def test_rule_24_two_definitions_that_listen_to_each_other_come_to_an_end() -> None:
    family = Family()
    for slug in ("one", "two"):
        family.add(slug, act("a"), triggers=(Trigger(("ductor.run.*",)),))
    family.start("one")
    family.rest()
    assert len(family.world.run_ids()) < 500
    assert {one.code for one in family.world.events.refused_starts(family.world.caller, 200, None).items} == {
        "CAUSATION_TOO_DEEP"
    }


def test_rule_24_children_successors_forks_hooks_and_compensations_have_the_depth_of_their_run() -> None:
    family = Family()
    family.add("child", act("c"))
    hooks = {"on_failed": {"action": "double.ok", "args": {"v": "hook"}}}
    effect = act("effect", compensation=undo("effect"))
    family.add("parent", effect, sub("child", "child"), hold(), boom("boom"), hooks=hooks, triggers=(PAID,))
    (first,) = publish(family, depth=6)
    family.work(12)
    family.world.continue_as_new(first, "continueAsNew", "move")
    family.work(6)
    fork = family.world.reset(first, 0, "fork")
    family.rest()
    states = [family.world.state(run_id) for run_id in family.world.run_ids()]
    assert {state.origin.depth for state in states} == {7}
    assert {state.origin.kind for state in states} == {"workflow", COMPENSATION, HOOK}
    assert {fork} < {state.run_id for state in states}
    assert any(state.origin.source_run_id == first and state.run_id != fork for state in states)
    assert {one.event.depth for one in family.world.bus.told} == {7}


def test_rule_24_the_tasks_of_a_run_say_how_deep_it_is() -> None:
    family = Family()
    family.add("listens", act("a"), triggers=(PAID,))
    publish(family, depth=4)
    family.world.coordinators[0].deliver(10)
    (message,) = family.world.steps.receive(1, visibility_ms=0)
    assert msgspec.json.decode(message.body)["depth"] == 5
    assert violations(family.world) == []
