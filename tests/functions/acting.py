"""Runs whose steps call AWS services, start other runs and publish events, on the functions."""

from __future__ import annotations

from typing import Any

from tests.contract.moto_backend import CLIENTS
from tests.functions.definitions import chain
from tests.functions.world import SECOND, AwsWorld

LARGE = "x" * 60_000


def document(slug: str, action: str, args: dict[str, Any]) -> dict[str, Any]:
    """A definition of one step, `act`."""
    step: dict[str, Any] = {"ref": "act", "type": "STEP_TYPE_ACTION", "action": action, "args": args}
    return {"environment": "default", "family_slug": slug, "title": slug, "steps": [step], "edges": []}


def done(world: AwsWorld, slug: str, action: str, args: dict[str, Any]) -> dict[str, Any]:
    """Run one step to its end; its output."""
    run_id = world.trigger(world.publish(document(slug, action, args)))
    world.pump()
    assert world.status(run_id) == "completed", world.run(run_id)
    output: dict[str, Any] = world.ok("GET", f"/api/v2/workflow-runs/{run_id}/nodes/act/output")["output"]
    return output


def act(world: AwsWorld) -> None:
    """Every way of these actions that takes a permission of its own."""
    url = CLIENTS("sqs").create_queue(QueueName="orders")["QueueUrl"]
    assert done(world, "told", "sqs.send", {"queue_url": url, "body": {"order": 1}})["message_id"]
    started = chain(1, "by-run") | {"concurrency": {"key": '"one"', "limit": 1, "on_limit": "queue"}}
    world.publish(started)
    args: dict[str, Any] = {"family_slug": "by-run", "input": {"text": LARGE * 4}}
    run_id = done(world, "starts", "ductor.trigger", args)["run_id"]
    assert world.status(run_id) == "completed"
    _waits(world)
    event = {"event_name": "run.told", "correlation_key": "o-9", "payload": {"text": LARGE}}
    assert done(world, "tells", "ductor.publish_event", event)["matched"] == 2
    world.publish({**chain(1, "heard"), "triggers": [{"patterns": ["run.told"]}]})
    world.clock.advance(26 * 3_600 * SECOND)  # the rows of those pauses have outlived their use
    event["payload"] = {"text": LARGE * 4}
    (heard,) = done(world, "tells-again", "ductor.publish_event", event)["started_runs"]
    assert world.status(heard) == "completed"


def _waits(world: AwsWorld) -> None:
    """A pause that one event ends, under a condition over a large value, and one that collects."""
    condition = "TRIGGER.payload.text != EVENT.payload.text"
    one = {"event_name": "run.told", "correlation_key": "o-9", "condition": condition}
    every = {"correlation_key": "o-9", "requirements": [{"name": "a", "event_name": "run.told", "count": 2}]}
    for slug, kind, args in (("one", "WAIT_EVENT", one), ("every", "EVENT_SET", every)):
        step = {"ref": "pause", "type": f"STEP_TYPE_{kind}", "args": args}
        waits = {"environment": "default", "family_slug": slug, "title": slug, "steps": [step], "edges": []}
        world.trigger(world.publish(waits), input={"text": "y" * 400_000})
    world.pump()
