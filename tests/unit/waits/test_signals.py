"""Signals: to the step that waits for their name, or kept for the one that will; given back where an event wins."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.app.refusal import refused
from tests.unit.waits.gates import Gates, person
from tests.unit.waits.test_wait_event import publish, wait

from ductor.app.signals import SignalRequest
from ductor.model.errors import ErrorCode
from ductor.testing.chaos import Crash
from ductor.testing.invariants import violations

OPERATOR = person("operator")


@pytest.fixture
def world() -> Gates:
    return Gates()


def signal(world: Gates, run_id: str, request_id: str = "s", name: str = "order.paid", payload: Any = None) -> None:
    world.signals.signal(OPERATOR, run_id, SignalRequest(request_id=request_id, name=name, payload=payload))
    world.settle()


def test_a_signal_ends_the_wait_for_its_name_whatever_its_key(world: Gates) -> None:
    run_id, other = world.started(wait()), world.started(wait())
    signal(world, run_id, payload={"amount": 1})
    assert world.output(run_id, "w")["payload"] == {"amount": 1}
    assert world.status(run_id) == "completed"
    assert world.statuses(other) == {"w": "waiting"}
    assert violations(world) == []


def test_a_signal_is_kept_for_a_later_wait_and_taken_once(world: Gates) -> None:
    slow = {"ref": "slow", "type": "wait", "args": {"duration": "5s"}}
    run_id = world.started(slow, wait("a"), wait("b"), edges=(("slow", "a", "success"), ("a", "b", "success")))
    signal(world, run_id, payload=1)
    assert [kept.name for kept in world.state(run_id).signals] == ["order.paid"]
    world.wait(5_000)
    assert world.output(run_id, "a")["payload"] == 1
    assert world.statuses(run_id)["b"] == "waiting"
    assert world.state(run_id).signals == ()
    assert violations(world) == []


def test_one_signal_ends_one_of_several_waits(world: Gates) -> None:
    run_id = world.started(wait("a"), wait("b"))
    signal(world, run_id)
    assert world.statuses(run_id) == {"a": "completed", "b": "waiting"}
    signal(world, run_id, "t")
    assert world.status(run_id) == "completed"


@pytest.mark.parametrize("early", [True, False])
def test_a_condition_holds_for_signals_too(world: Gates, early: bool) -> None:
    slow = {"ref": "slow", "type": "wait", "args": {"duration": "5s"}}
    run_id = world.started(slow, wait(condition="EVENT.payload > 1"), edges=(("slow", "w", "success"),))
    if not early:
        world.wait(5_000)
    signal(world, run_id, "one", payload=1)
    world.wait(5_000)
    assert world.statuses(run_id)["w"] == "waiting"
    signal(world, run_id, "two", payload=2)
    assert world.output(run_id, "w")["payload"] == 2
    assert [kept.name for kept in world.state(run_id).signals] == ["order.paid"]


def test_an_event_that_holds_the_wait_wins_and_the_signal_is_kept(world: Gates) -> None:
    run_id = world.started(wait("a"), {"ref": "slow", "type": "wait", "args": {"duration": "9h"}})
    world.chaos.crash_at("events.after_claim")
    with pytest.raises(Crash):
        publish(world)
    signal(world, run_id, payload="signal")
    assert world.output(run_id, "a")["event_id"] == "e1"
    assert [world.value(run_id, kept.payload) for kept in world.state(run_id).signals] == ["signal"]
    assert violations(world) == []


def test_the_hundred_and_first_signal_is_rejected(world: Gates) -> None:
    run_id = world.started({"ref": "slow", "type": "wait", "args": {"duration": "9h"}})
    for number in range(101):
        signal(world, run_id, f"s{number}", payload=number)
    assert len(world.state(run_id).signals) == 100
    assert world.audit(run_id)[-1].code == "SIGNALS_FULL"


def test_a_repeated_request_signals_once(world: Gates) -> None:
    run_id = world.started({"ref": "slow", "type": "wait", "args": {"duration": "9h"}})
    signal(world, run_id)
    signal(world, run_id)
    assert len(world.state(run_id).signals) == 1
    with refused(ErrorCode.FAILED_PRECONDITION, "REQUEST_ID_REUSED"):
        signal(world, run_id, payload="other")


def test_an_ended_run_takes_no_signal(world: Gates) -> None:
    run_id = world.started(wait())
    signal(world, run_id)
    with refused(ErrorCode.FAILED_PRECONDITION, "RUN_TERMINAL"):
        signal(world, run_id, "late")
    with refused(ErrorCode.INVALID_ARGUMENT, "FIELD_INVALID"):
        signal(world, run_id, "odd", name="")
