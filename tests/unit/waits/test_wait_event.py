"""Waiting for events: who is matched, once, in whatever order event, registration, deadline and repetition come."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.waits.gates import Gates, definition, note, person

from ductor.app.access import Caller
from ductor.app.decisions import Resolve
from ductor.app.headers import run_pk
from ductor.app.presenting import waiting_on
from ductor.model.waiting import Event, waiter_pk
from ductor.testing.chaos import Crash
from ductor.testing.invariants import violations

PRODUCER = Caller("producer", "t", frozenset({"workflow_events:publish"}))
OPERATOR = person("operator")


@pytest.fixture
def world() -> Gates:
    return Gates()


def wait(ref: str = "w", **args: Any) -> dict[str, Any]:
    return {"ref": ref, "type": "wait_event", "args": {"event_name": "order.paid", "correlation_key": "o-1", **args}}


def publish(world: Gates, event_id: str = "e1", payload: Any = None, name: str = "order.paid", key: str = "o-1") -> int:
    event = Event(event_name=name, event_id=event_id, correlation_key=key, payload=payload)
    matched = world.events.publish(PRODUCER, event).matched
    world.settle()
    return matched


def test_an_event_ends_the_wait_with_its_payload(world: Gates) -> None:
    run_id = world.started(wait(), note("n"), edges=(("w", "n", "success"),))
    assert publish(world, payload={"amount": 12900}) == 1
    output = world.output(run_id, "w")
    assert output.pop("received_at").endswith("Z")
    assert output == {
        "event_name": "order.paid",
        "correlation_key": "o-1",
        "event_id": "e1",
        "payload": {"amount": 12900},
    }
    assert world.status(run_id) == "completed"
    assert violations(world, final=True) == []


@pytest.mark.parametrize(("name", "key"), [("order.paid", "o-2"), ("order.shipped", "o-1"), ("order.paid", "")])
def test_another_name_or_key_does_not_match(world: Gates, name: str, key: str) -> None:
    run_id = world.started(wait())
    assert publish(world, name=name, key=key) == 0
    assert world.statuses(run_id) == {"w": "waiting"}


def test_the_key_is_rendered_when_the_wait_begins(world: Gates) -> None:
    run_id = world.started(wait(correlation_key="o-${{ TRIGGER.payload.order }}"), value={"order": 7})
    assert publish(world, key="o-7") == 1
    assert world.status(run_id) == "completed"


@pytest.mark.parametrize("value", [None, "", [], True, "x" * 1_025])
def test_a_key_that_is_none_fails_the_step(world: Gates, value: Any) -> None:
    run_id = world.started(wait(correlation_key="${{ TRIGGER.payload.order }}"), value={"order": value})
    error = world.state(run_id).error
    assert error is not None
    assert error.code == "CORRELATION_KEY_INVALID"


def test_the_condition_is_evaluated_on_the_event_with_what_the_run_knew(world: Gates) -> None:
    condition = "EVENT.payload.amount >= TRIGGER.payload.price"
    run_id = world.started(wait(condition=condition), value={"price": 100, "padding": "x" * 20_000})
    assert publish(world, "e1", {"amount": 99}) == 0
    assert publish(world, "e2", {"other": 1}) == 0
    assert publish(world, "e3", {"amount": 100}) == 1
    assert world.output(run_id, "w")["event_id"] == "e3"


def test_an_event_before_the_wait_is_gone_and_a_new_one_matches(world: Gates) -> None:
    slow = {"ref": "slow", "type": "wait", "args": {"duration": "2s"}}
    run_id = world.started(slow, wait(), edges=(("slow", "w", "success"),))
    assert publish(world) == 0
    world.wait(2_000)
    assert world.statuses(run_id)["w"] == "waiting"
    assert publish(world, "e1") == 0
    assert publish(world, "e2") == 1


def test_with_lookback_an_event_from_before_counts(world: Gates) -> None:
    slow = {"ref": "slow", "type": "wait", "args": {"duration": "2s"}}
    run_id = world.started(slow, wait(lookback_ms=2_000), edges=(("slow", "w", "success"),))
    assert publish(world, payload=1) == 0
    world.wait(2_000)
    assert world.output(run_id, "w")["payload"] == 1
    assert violations(world, final=True) == []


def test_lookback_has_an_end_and_a_condition(world: Gates) -> None:
    slow = {"ref": "slow", "type": "wait", "args": {"duration": "5s"}}
    condition = "EVENT.payload > 1"
    run_id = world.started(slow, wait(lookback_ms=3_000, condition=condition), edges=(("slow", "w", "success"),))
    publish(world, "too-early", 5)
    world.wait(3_000)
    publish(world, "too-small", 1)
    world.wait(2_000)
    assert world.statuses(run_id)["w"] == "waiting"


def test_one_event_resolves_every_wait_of_runs_and_branches_of_the_tenant(world: Gates) -> None:
    first = world.started(wait())
    second = world.started(wait("a"), wait("b"))
    stranger = Caller("producer", "other", frozenset({"workflow_events:publish"}))
    event = Event(event_name="order.paid", event_id="e1", correlation_key="o-1")
    assert world.events.publish(stranger, event).matched == 0
    assert publish(world) == 3
    assert [world.status(run) for run in (first, second)] == ["completed", "completed"]


def test_waits_in_turn_take_one_event_each_and_no_event_twice(world: Gates) -> None:
    run_id = world.started(wait("a"), wait("b", lookback_ms=60_000), edges=(("a", "b", "success"),))
    assert publish(world, "e1") == 1
    assert world.statuses(run_id) == {"a": "completed", "b": "waiting"}
    assert publish(world, "e1") == 0
    assert world.statuses(run_id)["b"] == "waiting"
    assert publish(world, "e2") == 1
    assert [world.output(run_id, ref)["event_id"] for ref in ("a", "b")] == ["e1", "e2"]


def test_of_two_events_one_resolves_the_wait_and_the_other_is_nowhere(world: Gates) -> None:
    run_id = world.started(wait())
    first = Event(event_name="order.paid", event_id="e3", correlation_key="o-1", payload="three")
    second = Event(event_name="order.paid", event_id="e4", correlation_key="o-1", payload="four")
    matched = [world.events.publish(PRODUCER, event).matched for event in (first, second)]
    world.settle()
    assert matched == [1, 0]
    assert world.output(run_id, "w")["payload"] == "three"


def test_a_repetition_after_a_day_is_a_new_event(world: Gates) -> None:
    world.started(wait())
    assert publish(world) == 1
    run_id = world.started(wait())
    assert publish(world) == 0
    world.wait(86_400_000)
    assert publish(world) == 1
    assert world.status(run_id) == "completed"


@pytest.mark.parametrize(
    ("on_timeout", "kind", "status", "run"),
    [
        (None, "timeout", "timed_out", "completed"),
        ("fail", "error", "timed_out", "completed"),
        ("fail", "success", "timed_out", "failed"),
        ("skip", "done", "skipped", "completed"),
    ],
)
def test_a_passed_deadline(world: Gates, on_timeout: str | None, kind: str, status: str, run: str) -> None:
    args: dict[str, Any] = {"timeout_ms": 5_000} | ({"on_timeout": on_timeout} if on_timeout else {})
    run_id = world.started(wait(**args), note("n"), edges=(("w", "n", kind),))
    world.wait(4_999)
    assert world.statuses(run_id)["w"] == "waiting"
    world.wait(1)
    assert (world.statuses(run_id)["w"], world.status(run_id)) == (status, run)
    assert publish(world) == 0
    assert violations(world, final=True) == []


def test_an_event_that_holds_the_wait_wins_over_its_deadline(world: Gates) -> None:
    run_id = world.started(wait(timeout_ms=5_000))
    world.chaos.crash_at("events.after_claim")
    with pytest.raises(Crash):
        publish(world)
    world.wait(5_000)
    assert world.output(run_id, "w")["event_id"] == "e1"
    assert violations(world, final=True) == []


@pytest.mark.parametrize(
    "point", ["events.after_receive", "events.after_keep", "events.after_claim", "events.after_send"]
)
def test_a_publisher_that_died_is_taken_up_where_it_was(world: Gates, point: str) -> None:
    run_id = world.started(wait())
    world.chaos.crash_at(point)
    with pytest.raises(Crash):
        publish(world)
    assert publish(world) == 1
    assert world.status(run_id) == "completed"
    assert publish(world) == 0


def test_a_resumed_publication_matches_no_wait_that_began_after_the_event(world: Gates) -> None:
    world.chaos.crash_at("events.after_receive")
    with pytest.raises(Crash):
        publish(world)
    world.wait(5_000)
    run_id = world.started(wait())
    assert publish(world) == 0
    assert world.statuses(run_id)["w"] == "waiting"


def test_a_claimed_wait_whose_publisher_died_is_found_by_its_check(world: Gates) -> None:
    run_id = world.started(wait())
    world.chaos.crash_at("events.after_claim")
    with pytest.raises(Crash):
        publish(world)
    assert world.statuses(run_id)["w"] == "waiting"
    world.wait(60_000)
    assert world.output(run_id, "w")["event_id"] == "e1"


@pytest.mark.parametrize("control", ["cancel", "terminate"])
def test_an_ended_run_is_matched_no_more(world: Gates, control: str) -> None:
    run_id = world.started(wait())
    world.control(run_id, control, "c")
    world.settle()
    assert publish(world) == 0


def test_an_event_during_a_pause_is_kept_and_nothing_starts_before_the_resume(world: Gates) -> None:
    run_id = world.started(wait(), note("n"), edges=(("w", "n", "success"),))
    world.control(run_id, "pause", "p")
    world.settle()
    assert publish(world) == 1
    assert world.statuses(run_id)["n"] == "pending"
    world.control(run_id, "resume", "q")
    world.settle()
    assert world.status(run_id) == "completed"


def test_an_operator_resolves_the_wait_and_no_event_matches_it_after(world: Gates) -> None:
    run_id = world.started(wait(), note("n"), edges=(("w", "n", "success"),))
    world.decisions.resolve(OPERATOR, run_id, "w", Resolve(request_id="a", payload={"by": "hand"}))
    world.settle()
    assert world.output(run_id, "w") == {"by": "hand"}
    assert publish(world) == 0


def test_an_event_that_holds_the_wait_wins_over_an_operator(world: Gates) -> None:
    run_id = world.started(wait())
    world.chaos.crash_at("events.after_claim")
    with pytest.raises(Crash):
        publish(world)
    world.decisions.resolve(OPERATOR, run_id, "w", Resolve(request_id="a", payload={"by": "hand"}))
    world.settle()
    assert world.output(run_id, "w")["event_id"] == "e1"


def test_a_wait_without_end_is_looked_after_ever_less_often(world: Gates) -> None:
    run_id = world.started(wait())
    for _ in range(200):
        world.wait(3_600_000)
    assert world.state(run_id).version < 30
    assert publish(world) == 1


def test_nothing_is_left_of_an_ended_wait_but_rows_that_expire(world: Gates) -> None:
    run_id = world.started(wait())
    publish(world)
    pk = waiter_pk("t", "order.paid", "o-1")
    assert world.table.query(run_pk(run_id), prefix="W").items == ()
    assert all(item.ttl for item in world.table.query(pk).items)
    world.wait(2 * 86_400_000)
    publish(world, "e9")
    assert world.table.query(pk).items == ()


def test_what_is_waited_for_is_shown(world: Gates) -> None:
    run_id = world.started(wait(timeout_ms=5_000))
    state, step = world.state(run_id), world.graph(run_id).by_ref["w"].step
    shown = waiting_on("w", step, state.root.nodes["w"])
    assert shown is not None
    assert (shown.kind, shown.detail) == ("event", "step w: event order.paid for o-1")
    assert shown.deadline_at == world.clock.now + 5_000


def test_an_event_that_hundreds_wait_for(world: Gates) -> None:
    definition_id = world.publish(definition(wait("a"), wait("b"), wait("c")))
    runs = [world.trigger(definition_id) for _ in range(80)]
    world.settle()
    assert publish(world) == 240
    assert {world.status(run_id) for run_id in runs} == {"completed"}
