"""Functions whose clocks disagree: a wake-up that comes early for one of them is armed again, without haste."""

from __future__ import annotations

from typing import Any

import pytest
from tests.functions.definitions import HELLO
from tests.functions.metering import metered
from tests.functions.world import SECOND, AwsWorld

from ductor.bootstrap import aws_functions
from ductor.bootstrap.aws_parts import AwsSettings, Parts
from ductor.testing.faulty import SkewedClock
from ductor.testing.memory import SeededIds

MINUTE = 60 * SECOND


def off(world: AwsWorld, skew_ms: int, seed: int) -> Parts:
    """The parts of a process whose clock is off by so much."""
    made = Parts(AwsSettings(world.environment), SkewedClock(world.clock, skew_ms), SeededIds(seed, world.clock))
    made.clients = world.parts().clients
    return made


def second_by_second(world: AwsWorld, run_id: str, seconds: int) -> int:
    """After how many seconds the run was completed."""
    for passed in range(seconds + 1):
        world.pump("intents.fifo", "timers")
        if world.status(run_id) == "completed":
            return passed
        world.clock.advance(SECOND)
    raise AssertionError(f"still {world.status(run_id)} after {seconds} s")


@pytest.mark.parametrize("skew", [-5 * SECOND, -1, 1_500, MINUTE])
def test_a_timer_function_whose_clock_is_off_wakes_on_time_or_as_late_as_it_is_behind(
    world: AwsWorld, skew: int
) -> None:
    world.timer = aws_functions.timer(off(world, skew, 71))
    run_id = world.trigger(world.publish(HELLO))
    with metered() as requests:
        passed = second_by_second(world, run_id, 10)
    late_s = -(min(skew, 0) // SECOND)
    assert 2 <= passed <= 2 + late_s + 1
    assert requests["SendMessage"] <= 4, "armed once by the run, and again once or twice"


@pytest.mark.parametrize("skew", [-5 * SECOND, 5 * SECOND])
def test_a_coordinator_whose_clock_is_off_never_spins(world: AwsWorld, skew: int) -> None:
    run_id = world.trigger(world.publish(HELLO))
    world.pump()
    world.coordinator = aws_functions.coordinator(off(world, skew, 72))
    with metered() as requests:
        passed = second_by_second(world, run_id, 10)
    assert 2 <= passed <= 8
    assert requests["SendMessage"] <= 4


def test_a_schedule_that_fires_early_is_delayed_in_the_queue(world: AwsWorld) -> None:
    step: dict[str, Any] = {"ref": "pause", "type": "STEP_TYPE_WAIT", "args": {"duration": "16m"}}
    document = {"environment": "default", "family_slug": "long", "title": "Long", "steps": [step], "edges": []}
    run_id = world.trigger(world.publish(document))
    world.pump()
    at = world.header(run_id).wake_at
    body = f'{{"run_id":"{run_id}","at":{at}}}'
    attributes = {"ApproximateReceiveCount": "1", "SentTimestamp": "0"}
    record = {"messageId": "m", "receiptHandle": "r", "body": body, "attributes": attributes}
    world.clock.advance(14 * MINUTE)
    assert world.timer({"Records": [record]}, None) == {"batchItemFailures": []}
    world.clock.advance(2 * MINUTE - 1)
    assert world.receive("timers") is None
    world.clock.advance(SECOND)
    world.pump()
    assert world.status(run_id) == "completed"


def test_a_long_wait_that_ends_early_leaves_no_schedule_behind(world: AwsWorld) -> None:
    """Rule 20: millions of decided waits must not fill the quota."""
    step: dict[str, Any] = {"ref": "pause", "type": "STEP_TYPE_WAIT", "args": {"duration": "2h"}}
    document = {"environment": "default", "family_slug": "long", "title": "Long", "steps": [step], "edges": []}
    definition_id = world.publish(document)
    runs = [world.trigger(definition_id) for _ in range(2)]
    world.pump()
    scheduler = world.parts().clients("scheduler")
    assert len(scheduler.list_schedules(GroupName="ductor")["Schedules"]) == 2
    world.control(runs[0], "cancel", "early")
    world.pump()
    (left,) = scheduler.list_schedules(GroupName="ductor")["Schedules"]
    assert runs[1] in scheduler.get_schedule(GroupName="ductor", Name=left["Name"])["Target"]["Input"]
