"""Runs from the API's handler to their end, through the queues and functions of the deployment."""

from __future__ import annotations

from tests.functions.definitions import HELLO, chain
from tests.functions.metering import metered
from tests.functions.world import SECOND, AwsWorld


def test_the_hello_world_waits_in_the_timers_queue_and_completes(world: AwsWorld) -> None:
    run_id = world.trigger(world.publish(HELLO))
    world.pump()
    assert world.status(run_id) == "waiting"
    world.clock.advance(2 * SECOND)
    world.pump()
    assert world.status(run_id) == "completed"


def test_a_missing_key_is_refused_in_the_shape_of_the_api(world: AwsWorld) -> None:
    world.key = "dk_unknown_unknown"
    status, answer = world.request("GET", "/api/workflow-definitions")
    assert (status, answer["error_code"]) == (401, "UNAUTHENTICATED")


def test_a_chain_of_actions_runs_to_its_end(world: AwsWorld) -> None:
    run_id = world.trigger(world.publish(chain(4)))
    world.pump()
    assert world.status(run_id) == "completed"
    for queue in ("intents.fifo", "steps"):
        assert world.receive(queue) is None


def test_a_large_payload_travels_by_reference(world: AwsWorld) -> None:
    document = chain(1)
    document["steps"][0]["args"] = {"said": "${{ TRIGGER.payload.text }}"}
    run_id = world.trigger(world.publish(document), input={"text": "x" * 100_000})
    world.pump()
    assert world.status(run_id) == "completed"


def test_each_further_action_step_makes_the_same_few_requests(world: AwsWorld) -> None:
    """The difference between two chains is what a step costs, whatever a run costs beside it."""
    short, long = world.publish(chain(2, "short")), world.publish(chain(12, "long"))
    for definition_id in (short, long):
        world.trigger(definition_id)
        world.pump()
    with metered() as of_short:
        world.trigger(short)
        world.pump("intents.fifo", "steps")
    with metered() as of_long:
        world.trigger(long)
        world.pump("intents.fifo", "steps")
    each = {name: (of_long[name] - of_short[name]) / 10 for name in of_long}
    assert {name: count for name, count in each.items() if count and name not in OF_LAMBDA_ITSELF} == {
        "GetItem": 1.0,  # the header
        "PutItem": 4.0,  # the header, the history row before it, the claim and the result of the attempt
        "SendMessageBatch": 2.0,  # the task, and the attempt's end
    }


OF_LAMBDA_ITSELF = {"ReceiveMessage", "DeleteMessage", "GetQueueUrl"}


def test_a_sweep_starts_a_run_whose_start_was_lost(world: AwsWorld) -> None:
    run_id = world.trigger(world.publish(chain(1)))
    lost = world.receive("intents.fifo")
    assert lost is not None
    world.deliver("intents.fifo", lambda event, context: {"batchItemFailures": []}, lost)
    world.clock.advance(120 * SECOND)
    assert world.sweeper({}, None) == {"woken": 1}
    world.pump()
    assert world.status(run_id) == "completed"
