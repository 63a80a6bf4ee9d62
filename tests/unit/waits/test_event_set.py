"""Waiting for a set of events: each counts once, the surplus is ignored, the deadline asks what has arrived."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.waits.gates import Gates, note
from tests.unit.waits.test_wait_event import PRODUCER, publish

from ductor.app.headers import run_pk
from ductor.model.waiting import Event
from ductor.testing.chaos import Crash
from ductor.testing.invariants import violations

TWO = [{"name": "paid", "event_name": "order.paid"}, {"name": "sent", "event_name": "order.sent"}]


@pytest.fixture
def world() -> Gates:
    return Gates()


def wanted(requirements: Any = None, **args: Any) -> dict[str, Any]:
    args = {"correlation_key": "o-1", "requirements": requirements or TWO, **args}
    return {"ref": "s", "type": "event_set", "args": args}


def ids(world: Gates, run_id: str) -> dict[str, list[str]]:
    events = world.output(run_id, "s")["events"]
    return {name: [event["event_id"] for event in found] for name, found in events.items()}


def test_the_set_is_complete_when_each_requirement_is(world: Gates) -> None:
    run_id = world.started(wanted(), note("n"), edges=(("s", "n", "success"),))
    assert publish(world, "e1", payload=1) == 1
    assert world.statuses(run_id)["s"] == "waiting"
    assert publish(world, "e2", name="order.sent", payload=2) == 1
    assert ids(world, run_id) == {"paid": ["e1"], "sent": ["e2"]}
    assert world.status(run_id) == "completed"
    assert violations(world, final=True) == []


def test_counts_conditions_and_keys_of_their_own(world: Gates) -> None:
    requirements = [
        {"name": "big", "event_name": "order.paid", "condition": "EVENT.payload > 10", "count": 2},
        {"name": "other", "event_name": "order.paid", "correlation_key": "o-2"},
    ]
    run_id = world.started(wanted(requirements))
    assert publish(world, "small", payload=5) == 0
    assert publish(world, "a", payload=11) == 1
    assert publish(world, "a", payload=11) == 0
    assert publish(world, "b", payload=12) == 1
    assert publish(world, "c", key="o-2") == 1
    assert ids(world, run_id) == {"big": ["a", "b"], "other": ["c"]}


def test_what_comes_beyond_a_count_is_ignored(world: Gates) -> None:
    run_id = world.started(wanted())
    for number in range(5):
        publish(world, f"e{number}")
    assert world.statuses(run_id)["s"] == "waiting"
    publish(world, "last", name="order.sent")
    assert ids(world, run_id) == {"paid": ["e0"], "sent": ["last"]}


def test_one_member_early_one_late(world: Gates) -> None:
    slow = {"ref": "slow", "type": "wait", "args": {"duration": "2s"}}
    run_id = world.started(slow, wanted(lookback_ms=5_000), edges=(("slow", "s", "success"),))
    assert publish(world, "early") == 0
    world.wait(2_000)
    assert publish(world, "late", name="order.sent") == 1
    assert ids(world, run_id) == {"paid": ["early"], "sent": ["late"]}


@pytest.mark.parametrize(("on_timeout", "status"), [("fail", "timed_out"), ("skip", "skipped")])
def test_an_incomplete_set_at_its_deadline(world: Gates, on_timeout: str, status: str) -> None:
    run_id = world.started(wanted(timeout_ms=5_000, on_timeout=on_timeout), note("n"), edges=(("s", "n", "done"),))
    publish(world)
    world.wait(5_000)
    assert world.statuses(run_id) == {"s": status, "n": "completed"}
    assert publish(world, name="order.sent") == 0


def test_a_set_that_was_complete_before_its_deadline_wins_though_nobody_had_told_it(world: Gates) -> None:
    run_id = world.started(wanted(timeout_ms=5_000))
    publish(world, "e1")
    world.chaos.crash_at("events.after_claim")
    with pytest.raises(Crash):
        publish(world, "e2", name="order.sent")
    world.wait(5_000)
    assert ids(world, run_id) == {"paid": ["e1"], "sent": ["e2"]}
    assert violations(world, final=True) == []


def test_two_sets_in_turn_share_no_event(world: Gates) -> None:
    first = wanted([TWO[0]])
    second = {**wanted([TWO[0]], lookback_ms=60_000), "ref": "t"}
    run_id = world.started(first, second, edges=(("s", "t", "success"),))
    assert publish(world, "e1") == 1
    assert world.statuses(run_id) == {"s": "completed", "t": "waiting"}
    assert publish(world, "e2") == 1
    assert world.output(run_id, "t")["events"]["paid"][0]["event_id"] == "e2"


def test_a_set_of_many_large_events(world: Gates) -> None:
    run_id = world.started(wanted([{"name": "all", "event_name": "order.paid", "count": 30}]))
    for number in range(30):
        event = Event(event_name="order.paid", event_id=f"e{number}", correlation_key="o-1", payload="x" * 20_000)
        assert world.events.publish(PRODUCER, event).matched == 1
    world.settle()
    assert len(ids(world, run_id)["all"]) == 30
    assert world.table.query(run_pk(run_id), prefix="WEV#").items == ()
