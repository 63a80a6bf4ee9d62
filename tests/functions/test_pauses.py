"""Approvals, events, sets and signals through the functions: rows in DynamoDB, intents through the queue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from tests.functions.world import SECOND, AwsWorld
from tests.unit.validation.references import REVIEW_JSON

EXAMPLE = Path(__file__).parents[2] / "events" / "payment_and_shipment.yaml"


def started(world: AwsWorld, **args: Any) -> str:
    """A run of the example, with other args for its first step, that waits to be paid."""
    document = yaml.safe_load(EXAMPLE.read_text())["definition"]
    document["steps"][0]["args"] |= args
    run_id = world.trigger(world.publish(document), input={"order": "o-1", "amount": 100})
    world.pump()
    assert world.status(run_id) == "waiting"
    return run_id


def send(world: AwsWorld, name: str, event_id: str, payload: Any = None) -> int:
    body = {"event_name": name, "correlation_key": "o-1", "event_id": event_id, "payload": payload}
    matched = int(world.ok("POST", "/api/v2/workflow-events:publish", body)["matched"])
    world.pump("intents.fifo")
    return matched


def test_events_and_a_set_take_the_example_to_its_end(world: AwsWorld) -> None:
    run_id = started(world)
    assert send(world, "order.paid", "too-little", {"amount": 99}) == 0
    assert send(world, "order.paid", "enough", {"amount": 100, "note": "x" * 20_000}) == 1
    assert send(world, "order.paid", "enough", {"amount": 100}) == 0
    assert send(world, "invoice.sent", "i") == 1
    assert send(world, "parcel.sent", "p") == 1
    assert world.status(run_id) == "completed"


def test_an_event_is_found_by_looking_back(world: AwsWorld) -> None:
    assert send(world, "order.paid", "early", {"amount": 100}) == 0
    started(world)
    assert send(world, "parcel.sent", "p") == 1


def test_a_passed_deadline_closes_the_wait(world: AwsWorld) -> None:
    run_id = started(world, timeout_ms=5 * SECOND)
    world.clock.advance(5 * SECOND)
    world.pump()
    assert world.header(run_id).root.nodes["paid"].status.value == "timed_out"
    assert send(world, "order.paid", "late", {"amount": 100}) == 0


def test_a_signal_ends_the_wait(world: AwsWorld) -> None:
    run_id = started(world)
    body = {"request_id": "s", "name": "order.paid", "payload": {"amount": 100}}
    world.ok("POST", f"/api/v2/workflow-runs/{run_id}:signal", body)
    world.pump("intents.fifo")
    assert world.header(run_id).root.nodes["paid"].status.value == "completed"


def test_the_guides_approval(world: AwsWorld) -> None:
    run_id = world.trigger(world.publish(yaml.safe_load(REVIEW_JSON)))
    world.pump()
    body = {"request_id": "d", "approver_id": "ada", "payload": {"tier": "gold"}}
    world.ok("POST", f"/api/v2/workflow-runs/{run_id}/steps/review:approve", body)
    world.pump("intents.fifo")
    assert world.status(run_id) == "completed"
