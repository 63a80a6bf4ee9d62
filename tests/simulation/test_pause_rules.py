"""Safety rules 7, 8 and 16, waits for events: each scenario holds with the mechanism and breaks without it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from tests.simulation.scene import held
from tests.unit.waits.gates import Gates, definition, note, person

from ductor.app import event_triggers, waiters
from ductor.app.decisions import Resolve
from ductor.app.event_rows import Received
from ductor.app.events import Events, Published
from ductor.app.waiters import Waiters
from ductor.engine.context import NodeContext
from ductor.model import transition as tr
from ductor.model.definition import Trigger
from ductor.model.intent import Intent, IntentKind
from ductor.model.lineage import derived_run_id
from ductor.model.transition import Transition
from ductor.model.waiting import Closing, Event, EventWait, Waiter, collected_sk
from ductor.ports import Item
from ductor.steps import event_waiting
from ductor.steps.event_set import EventSetBehaviour
from ductor.steps.event_waiting import EventWaiting
from ductor.steps.wait_event import event_view
from ductor.testing.chaos import Crash
from ductor.testing.invariants import violations

MINUTE = 60_000


def wait(ref: str = "w", **args: Any) -> dict[str, Any]:
    return {"ref": ref, "type": "wait_event", "args": {"event_name": "order.paid", "correlation_key": "o-1", **args}}


def wanted(count: int) -> dict[str, Any]:
    requirements = [{"name": "paid", "event_name": "order.paid", "count": count}]
    return {"ref": "s", "type": "event_set", "args": {"correlation_key": "o-1", "requirements": requirements}}


def publish(world: Gates, event_id: str = "e1", payload: Any = None) -> int:
    event = Event(event_name="order.paid", event_id=event_id, correlation_key="o-1", payload=payload)
    matched = world.events.publish(world.caller, event).matched
    world.settle()
    return matched


def dies(world: Gates, point: str, event_id: str = "e1") -> None:
    """A publisher dies at `point`."""
    world.chaos.crash_at(point)
    with pytest.raises(Crash):
        publish(world, event_id)


# Rule 7: a waiter row carries its condition bound, and whoever ends a wait otherwise claims its row first


def two_waits_with_conditions_of_their_own() -> bool:
    world = Gates()
    step = wait(condition="EVENT.payload.amount >= TRIGGER.payload.due")
    low, high = (world.started(step, value={"due": due}) for due in (100, 200))
    matched = publish(world, payload={"amount": 150})
    return matched == 1 and (world.status(low), world.statuses(high)["w"]) == ("completed", "waiting")


def test_rule_07_a_publisher_evaluates_the_condition_before_it_claims() -> None:
    held(two_waits_with_conditions_of_their_own, patch.object(Waiters, "holds", lambda self, waiter, event: True))


def the_deadline_passes_while_an_event_holds_the_wait() -> bool:
    world = Gates()
    run_id = world.started(wait(timeout_ms=5_000))
    dies(world, "events.after_claim")
    world.wait(5_000)
    world.wait(MINUTE)
    return world.statuses(run_id)["w"] == "completed" and world.output(run_id, "w")["event_id"] == "e1"


def test_rule_07_an_event_that_holds_the_row_wins_over_the_deadline() -> None:
    def due(self: EventWaiting, ctx: NodeContext) -> Iterable[Transition]:
        return self._closed(ctx, Closing("timeout"), Intent("", "", IntentKind.WAIT_CLOSED))

    held(the_deadline_passes_while_an_event_holds_the_wait, patch.object(EventWaiting, "due", due))


def an_operator_resolves_while_an_event_holds_the_wait() -> bool:
    world = Gates()
    run_id = world.started(wait())
    dies(world, "events.after_claim")
    world.decisions.resolve(person("operator"), run_id, "w", Resolve(request_id="a", payload={"by": "hand"}))
    world.settle()
    return bool(world.output(run_id, "w").get("event_id") == "e1")


def test_rule_07_an_event_that_holds_the_row_wins_over_an_operator() -> None:
    without = patch.object(event_waiting, "closing", lambda ctx, pause, why: tr.NodeCompleted(ctx.id, why.output))
    held(an_operator_resolves_while_an_event_holds_the_wait, without)


def the_wait_ends_at_its_deadline_before_the_event() -> bool:
    """What has been given up is matched no more."""
    world = Gates()
    run_id = world.started(wait(timeout_ms=5_000), note("n"), edges=(("w", "n", "timeout"),))
    world.wait(5_000)
    return publish(world) == 0 and world.statuses(run_id) == {"w": "timed_out", "n": "completed"}


def test_rule_07_a_row_that_is_closed_is_claimed_no_more() -> None:
    held(the_wait_ends_at_its_deadline_before_the_event, patch.object(Waiters, "_close_row", lambda *_, **__: None))


# Rule 8: a set collects one row per event; the coordinator counts, and ignores the surplus


def two_publishers_die_after_they_claimed() -> bool:
    world = Gates()
    run_id = world.started(wanted(2))
    dies(world, "events.after_claim", "e1")
    dies(world, "events.after_claim", "e2")
    world.wait(MINUTE)
    world.wait(2 * MINUTE)
    if world.status(run_id) != "completed":
        return False
    return [event["event_id"] for event in world.output(run_id, "s")["events"]["paid"]] == ["e1", "e2"]


def test_rule_08_each_event_of_a_set_has_a_row_of_its_own() -> None:

    def one_row(node: str, generation: int, place: int, digest: str = "") -> str:
        return collected_sk(node, generation, place, digest and "the-last")

    held(two_publishers_die_after_they_claimed, patch.object(waiters, "collected_sk", one_row))


def three_events_before_the_run_hears_of_any() -> bool:
    world = Gates()
    run_id = world.started(wanted(2))
    for number in (1, 2, 3):
        event = Event(event_name="order.paid", event_id=f"e{number}", correlation_key="o-1")
        world.events.publish(world.caller, event)
    world.settle()
    events = world.output(run_id, "s")["events"]["paid"]
    return [event["event_id"] for event in events] == ["e1", "e2"] and violations(world, final=True) == []


def test_rule_08_what_comes_beyond_a_count_is_ignored() -> None:
    def counts_everything(
        self: EventSetBehaviour, ctx: NodeContext, pause: EventWait, intent: Intent
    ) -> Iterator[Transition]:
        events = (*(pause.collected[0] if pause.collected else ()), event_view(ctx, pause, intent))
        if len(events) < 3:
            yield event_waiting.changed(ctx, msgspec.structs.replace(pause, collected=(events,)), 0)
        else:
            yield tr.NodeCompleted(ctx.id, ctx.tick.keep({"events": {"paid": list(events)}}))

    held(three_events_before_the_run_hears_of_any, patch.object(EventSetBehaviour, "matched", counts_everything))


def test_rule_08_an_event_that_is_told_twice_counts_once() -> None:
    world = Gates()
    run_id = world.started(wanted(2))
    publish(world, "e1")
    dies(world, "events.after_claim", "e2")
    for _ in range(2):
        world.wait(MINUTE)  # the look finds both, and tells of both once more
    assert [event["event_id"] for event in world.output(run_id, "s")["events"]["paid"]] == ["e1", "e2"]


# Rule 16: an event reaches the waits that were there when it came, once, and nobody overlooks the other


def a_publication_is_taken_up_after_a_wait_began() -> bool:
    world = Gates()
    dies(world, "events.after_receive")
    world.wait(5_000)
    run_id = world.started(wait())
    return publish(world) == 0 and world.statuses(run_id)["w"] == "waiting"


def test_rule_16_a_resumed_publication_claims_only_waits_from_before_the_event() -> None:
    without = patch("ductor.app.events._live_at", lambda waiter, event, *, resumed: True)
    held(a_publication_is_taken_up_after_a_wait_began, without)


def two_waits_in_turn_look_back() -> bool:
    world = Gates()
    first, second = wait("w"), wait("x", lookback_ms=3_600_000)
    run_id = world.started(first, second, edges=(("w", "x", "success"),))
    publish(world)
    world.wait(MINUTE)
    return world.statuses(run_id) == {"w": "completed", "x": "waiting"}


def test_rule_16_a_run_remembers_the_events_that_it_consumed() -> None:
    held(two_waits_in_turn_look_back, patch.object(event_waiting, "seen", lambda ctx, on: iter(())))


def a_wait_registers_while_a_publisher_looks() -> bool:
    """The publisher has found nobody yet when the wait begins; the wait looks back before the publisher goes on."""
    world = Gates()
    look = Waiters.waiting
    started: list[str] = []

    def meanwhile(self: Waiters, pk: str, now: int) -> Iterator[tuple[Item, Waiter]]:
        found = list(look(self, pk, now))
        if not started:
            started.append(world.started(wait(lookback_ms=MINUTE)))
        return iter(found)

    with patch.object(Waiters, "waiting", meanwhile):
        publish(world)
    return world.statuses(started[0])["w"] == "completed"


def looks_first(self: Events, tenant: str, event: Event, row: Item, received: Received, *, resumed: bool) -> Published:
    """The event is kept for those who look back only after its publisher has looked for those who wait."""
    event = msgspec.structs.replace(event, received_at=received.received_at)
    matched = self._tell(self._claim_all(tenant, event, resumed=resumed))
    self._rows.keep(tenant, event)
    self._rows.finish(row, Received(received.received_at, True, matched, ()))
    return Published(event.event_id, matched)


def test_rule_16_a_publisher_is_seen_by_those_it_does_not_see() -> None:
    held(a_wait_registers_while_a_publisher_looks, patch.object(Events, "_deliver", looks_first))


def test_rule_16_both_that_find_each_other_claim_once() -> None:
    """The wait finds the event by looking back, and its publisher finds the wait: one of them claims it."""
    world = Gates()
    dies(world, "events.after_keep")
    run_id = world.started(wait(lookback_ms=MINUTE), note("n"), edges=(("w", "n", "success"),))
    assert publish(world) in (0, 1)
    ended = [step for step in world.history(run_id) if isinstance(step, tr.NodeCompleted) and step.node == "w"]
    assert len(ended) == 1
    assert violations(world, final=True) == []


def a_new_version_between_a_start_and_its_repetition() -> bool:
    """The publisher dies when it has started a run; before it tries again the family gets another version."""
    world = Gates()
    listening = msgspec.structs.replace(definition(note("n")), triggers=(Trigger(("order.paid",)),))
    world.publish(listening)
    dies(world, "events.after_send")
    before = world.run_ids()
    world.publish(listening)
    event = Event(event_name="order.paid", event_id="e1", correlation_key="o-1")
    done = world.events.publish(world.caller, event)
    return len(before) == 1 and list(done.started_runs) == before == world.run_ids()


def test_rule_16_started_runs_are_keyed_by_family_and_event() -> None:
    calls = iter(range(100))

    def by_version(*parts: str) -> str:
        return derived_run_id(*parts, str(next(calls)))

    held(a_new_version_between_a_start_and_its_repetition, patch.object(event_triggers, "derived_run_id", by_version))
