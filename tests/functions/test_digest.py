"""Runs that meet in a digest, through the functions: windows and members are rows in DynamoDB."""

from __future__ import annotations

from pathlib import Path

import yaml
from tests.functions.world import SECOND, AwsWorld

EXAMPLE = Path(__file__).parents[2] / "events" / "order_digest.yaml"


def arrived(world: AwsWorld, definition_id: str, order: str, amount: int) -> str:
    run_id = world.trigger(definition_id, input={"customer": "ada", "order": order, "amount": amount})
    world.pump("intents.fifo")
    assert world.status(run_id) == "waiting"
    return run_id


def test_the_example_mails_all_orders_at_once(world: AwsWorld) -> None:
    definition_id = world.publish(yaml.safe_load(EXAMPLE.read_text())["definition"])
    first, second, third = (
        arrived(world, definition_id, order, amount) for order, amount in (("o-1", 40), ("o-2", 75), ("o-1", 40))
    )
    world.clock.advance(10 * SECOND)
    world.pump()

    assert [world.status(run_id) for run_id in (first, second, third)] == ["completed", "merged", "merged"]
    assert world.header(first).root.nodes["mail"].status.value == "completed"
    assert world.header(third).merged_into == first


def test_a_cancelled_leader_is_followed_by_another(world: AwsWorld) -> None:
    definition_id = world.publish(yaml.safe_load(EXAMPLE.read_text())["definition"])
    first, second = arrived(world, definition_id, "o-1", 40), arrived(world, definition_id, "o-2", 75)
    world.ok("POST", f"/api/v2/workflow-runs/{first}:cancel", {"request_id": "c", "reason": "gone"})
    world.pump()
    world.clock.advance(10 * SECOND)
    world.pump()

    assert (world.status(first), world.status(second)) == ("cancelled", "completed")
