"""The tasks and the events of a batch leave together, and no crash, refusal or redelivery loses one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import msgspec
import pytest
from botocore.client import BaseClient
from tests.functions.definitions import chain
from tests.functions.metering import metered
from tests.functions.world import SECOND, AwsWorld, Killed

from ductor.adapters.aws.bus import EventBridgeBus
from ductor.adapters.aws.queue import SqsQueue
from ductor.app.commit import Committer
from ductor.app.lifecycle import Untold
from ductor.model.intent import Intent, IntentKind
from ductor.ports import Outgoing, UnavailableError

Send = Callable[[SqsQueue, Sequence[Outgoing]], Any]


def three_runs(world: AwsWorld) -> tuple[list[str], dict[str, Any]]:
    """Three runs, and the batch that starts them."""
    definition_id = world.publish(chain(2))
    runs = [world.trigger(definition_id) for _ in range(3)]
    batch = world.receive("intents.fifo")
    assert batch is not None
    assert len(batch["Records"]) == 3
    return runs, batch


def of_steps(instead: Send) -> Any:
    """The steps queue sends so; the other queues as ever."""
    send = SqsQueue.send

    def patched(queue: SqsQueue, messages: Sequence[Outgoing]) -> Any:
        return send(queue, messages) if queue.fifo else instead(queue, messages)

    return mock.patch.object(SqsQueue, "send", patched)


def raising(error: BaseException) -> Send:
    def send(queue: SqsQueue, messages: Sequence[Outgoing]) -> Any:
        raise error

    return send


def all_complete(world: AwsWorld, runs: list[str]) -> bool:
    world.clock.advance(61 * SECOND)
    world.pump()
    return [world.status(run_id) for run_id in runs] == ["completed"] * len(runs)


def test_the_tasks_of_all_runs_of_a_batch_are_one_request(world: AwsWorld) -> None:
    runs, batch = three_runs(world)
    with metered() as requests:
        assert world.coordinator(batch, None) == {"batchItemFailures": []}
    assert requests["SendMessageBatch"] == 1
    world.deliver("intents.fifo", world.coordinator, batch)
    assert all_complete(world, runs)


def test_a_process_that_dies_before_it_sends_leaves_its_tasks_to_the_redelivery(world: AwsWorld) -> None:
    runs, batch = three_runs(world)
    with of_steps(raising(Killed())):
        world.deliver("intents.fifo", world.coordinator, batch)
    assert all(world.header(run_id).version > 1 for run_id in runs)
    assert world.receive("steps") is None
    assert all_complete(world, runs)


def test_what_a_broken_invocation_held_is_not_sent_by_the_next(world: AwsWorld) -> None:
    _, batch = three_runs(world)
    with of_steps(raising(Killed())):
        world.deliver("intents.fifo", world.coordinator, batch)
    with metered() as requests:
        assert world.coordinator({"Records": []}, None) == {"batchItemFailures": []}
    assert requests["SendMessageBatch"] == 0


def test_tasks_that_the_queue_does_not_take_now_bring_all_intents_back(world: AwsWorld) -> None:
    runs, batch = three_runs(world)
    with of_steps(raising(UnavailableError("away"))):
        failed = world.deliver("intents.fifo", world.coordinator, batch)
    assert len(failed) == 3
    assert all_complete(world, runs)


def test_a_task_that_the_queue_never_takes_fails_its_own_run_only(world: AwsWorld) -> None:
    runs, batch = three_runs(world)
    bad = runs[1].encode()
    send = SqsQueue.send

    def refusing(queue: SqsQueue, messages: Sequence[Outgoing]) -> Any:
        if any(bad in message.body for message in messages):
            raise ValueError("the queue never takes this")
        return send(queue, messages)

    with of_steps(refusing):
        assert len(world.deliver("intents.fifo", world.coordinator, batch)) == 3
        world.clock.advance(61 * SECOND)
        world.pump()
    assert [world.status(run_id) for run_id in runs] == ["completed", "failed", "completed"]


def test_what_a_commit_asked_for_that_was_not_sent_goes_out_before_the_next_commit(world: AwsWorld) -> None:
    """The next commit overwrites the stored commands, so they are not held when intents come again."""
    (run_id, *_), batch = three_runs(world)
    with of_steps(raising(Killed())):
        world.deliver("intents.fifo", world.coordinator, batch)
    (again,) = [record for record in batch["Records"] if record["attributes"]["MessageGroupId"] == run_id]
    pause = Intent(id=f"{run_id}:pause", run_id=run_id, kind=IntentKind.PAUSE, request_id="p-1", actor="me")
    newer = {**again, "messageId": "newer", "receiptHandle": "newer", "body": msgspec.json.encode(pause).decode()}
    again["attributes"] = {**again["attributes"], "ApproximateReceiveCount": "2"}
    order = watched(world, {"Records": [again, newer]})
    assert order == ["SendMessageBatch", "PutEvents", "commit", "PutEvents"]


def test_a_redrive_sends_before_it_forgets_what_to_send(world: AwsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = world.trigger(world.publish(chain(1)))
    start = world.receive("intents.fifo")
    assert start is not None
    with monkeypatch.context() as patched, of_steps(raising(Killed())):
        world.deliver("intents.fifo", world.coordinator, start)
        patched.setattr(Committer, "read", unreadable)
        world.clock.advance(61 * SECOND)
        world.pump("intents.fifo")
    assert world.run(run_id)["summary"]["stalled"]
    world.control(run_id, "redrive", "r-1")
    redrive = world.receive("intents.fifo")
    assert redrive is not None
    with of_steps(raising(Killed())):
        world.deliver("intents.fifo", world.coordinator, redrive)
    assert world.run(run_id)["summary"]["stalled"]
    assert all_complete(world, [run_id])


# Events about the runs of a batch


def told_of(world: AwsWorld) -> dict[str, list[str]]:
    """What was put on the bus of each run, each event once, in order."""
    told: dict[str, dict[str, None]] = {}
    for event in world.told():
        told.setdefault(event["detail"]["payload"]["run_id"], {})[event["detail-type"].rsplit(".", 1)[1]] = None
    return {run_id: list(names) for run_id, names in told.items()}


def to_the_bus(error: BaseException) -> Any:
    return mock.patch.object(EventBridgeBus, "put", mock.Mock(side_effect=error))


def test_the_events_of_all_runs_of_a_batch_are_one_request_after_one_look_at_who_listens(world: AwsWorld) -> None:
    runs, batch = three_runs(world)
    with metered() as requests:
        world.deliver("intents.fifo", world.coordinator, batch)
    assert (requests["PutEvents"], requests["Query"]) == (1, 1)
    assert told_of(world) == {run_id: ["started"] for run_id in runs}


def test_a_process_that_dies_before_it_tells_leaves_its_events_to_the_redelivery(world: AwsWorld) -> None:
    runs, batch = three_runs(world)
    with to_the_bus(Killed()):
        world.deliver("intents.fifo", world.coordinator, batch)
    assert all(world.header(run_id).version > 1 for run_id in runs)
    assert told_of(world) == {}
    assert all_complete(world, runs)
    assert told_of(world) == {run_id: ["started", "completed"] for run_id in runs}


def test_events_that_are_neither_told_nor_kept_bring_all_intents_back(world: AwsWorld) -> None:
    runs, batch = three_runs(world)
    with to_the_bus(UnavailableError("away")), mock.patch.object(Untold, "keep", side_effect=UnavailableError("away")):
        assert len(world.deliver("intents.fifo", world.coordinator, batch)) == 3
    assert all_complete(world, runs)
    assert told_of(world) == {run_id: ["started", "completed"] for run_id in runs}


def test_tasks_that_are_not_taken_keep_no_event_back(world: AwsWorld) -> None:
    runs, batch = three_runs(world)
    with of_steps(raising(UnavailableError("away"))):
        assert len(world.deliver("intents.fifo", world.coordinator, batch)) == 3
    assert told_of(world) == {run_id: ["started"] for run_id in runs}


def test_what_a_stalled_run_had_to_tell_is_told_before_its_end_overwrites_it(
    world: AwsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = world.trigger(world.publish(chain(1)))
    start = world.receive("intents.fifo")
    assert start is not None
    with monkeypatch.context() as patched, to_the_bus(Killed()):
        world.deliver("intents.fifo", world.coordinator, start)
        patched.setattr(Committer, "read", unreadable)
        world.clock.advance(61 * SECOND)
        world.pump("intents.fifo")
    world.control(run_id, "terminate", "t-1")
    terminate = world.receive("intents.fifo")
    assert terminate is not None
    order = watched(world, terminate)
    assert order[:2] == ["PutEvents", "commit"]
    assert told_of(world)[run_id][0] == "started"


def unreadable(committer: Any, item: Any) -> Any:
    raise msgspec.DecodeError("written by nobody")


def watched(world: AwsWorld, event: dict[str, Any]) -> list[str]:
    """The order of sends to the workers and commits while the coordinator handles a batch."""
    order: list[str] = []
    call = BaseClient._make_api_call

    def noted(client: Any, operation: str, arguments: Any) -> Any:
        if operation == "PutEvents" or (operation == "SendMessageBatch" and arguments["QueueUrl"].endswith("/steps")):
            order.append(operation)
        rows = [
            arguments.get("Item"),
            *(part.get("Put", {}).get("Item") for part in arguments.get("TransactItems", ())),
        ]
        order.extend("commit" for row in rows if row is not None and row["sk"]["S"] == "HEAD")
        return call(client, operation, arguments)

    with mock.patch.object(BaseClient, "_make_api_call", noted):
        world.coordinator(event, None)
    return order
