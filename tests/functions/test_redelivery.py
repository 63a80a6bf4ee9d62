"""Queues deliver twice, early and late; nothing is lost, done twice or left asleep."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.functions.definitions import HELLO, chain
from tests.functions.world import SECOND, AwsWorld

from ductor.adapters.aws.timers import Wake
from ductor.app.attempts import Attempts
from ductor.app.headers import run_pk
from ductor.app.history import read_history
from ductor.model.attempt import Attempt, attempt_sk
from ductor.ports import UnavailableError

KEEP: dict[str, Any] = {"batchItemFailures": []}


def test_a_batch_delivered_again_is_applied_once(world: AwsWorld) -> None:
    run_id = world.trigger(world.publish(chain(2)))
    batch = world.receive("intents.fifo")
    assert batch is not None
    assert world.coordinator(batch, None) == KEEP
    version = world.header(run_id).version
    assert world.coordinator(batch, None) == KEEP
    assert world.header(run_id).version == version
    world.deliver("intents.fifo", world.coordinator, batch)
    world.pump()
    assert world.status(run_id) == "completed"
    seqs = [entry.seq for entry in read_history(world.emulator.table, world.header(run_id))]
    assert seqs == list(range(1, len(seqs) + 1))


def test_a_task_delivered_again_is_not_run_again(world: AwsWorld) -> None:
    run_id = world.trigger(world.publish(chain(1)))
    world.pump("intents.fifo")
    task = world.receive("steps")
    assert task is not None
    for _ in range(2):
        assert world.step(task, _context(60_000)) == KEEP
    world.pump()
    assert world.status(run_id) == "completed"
    row = world.emulator.table.get(run_pk(run_id), attempt_sk("s0", 1))
    assert row is not None
    assert msgspec.json.decode(row.body, type=Attempt).deliveries == 1


def test_sends_that_fail_after_the_commit_are_made_up_for(world: AwsWorld, monkeypatch: Any) -> None:
    run_id = world.trigger(world.publish(chain(1)))
    batch = world.receive("intents.fifo")
    assert batch is not None
    queue = type(world.emulator.steps)
    with monkeypatch.context() as patched:
        patched.setattr(queue, "send", _unavailable)
        failed = world.deliver("intents.fifo", world.coordinator, batch)
    assert len(failed) == 1
    assert world.header(run_id).version > 1
    world.clock.advance(2 * SECOND)
    world.pump()
    assert world.status(run_id) == "completed"


def test_an_attempt_without_time_left_is_given_back_and_run_by_the_next_invocation(world: AwsWorld) -> None:
    document = chain(1)
    document["steps"][0] |= {"action": "core.sleep", "args": {"duration_ms": 300}}
    run_id = world.trigger(world.publish(document))
    world.pump("intents.fifo")
    task = world.receive("steps")
    assert task is not None
    answer = world.step(task, _short_context())
    assert answer["batchItemFailures"] == [{"itemIdentifier": task["Records"][0]["messageId"]}]
    world.clock.advance(SECOND)
    world.pump()
    assert world.status(run_id) == "completed"


def test_attempts_whose_claims_a_failing_table_cut_short_run_when_their_leases_have_ended(
    world: AwsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [world.trigger(world.publish(chain(1, slug))) for slug in ("one", "two")]
    world.pump("intents.fifo")
    tasks = world.receive("steps")
    assert tasks is not None
    create = Attempts.create
    created: list[Attempt] = []

    def once(self: Attempts, attempt: Attempt) -> Any:
        if created:
            _unavailable()
        created.append(attempt)
        return create(self, attempt)

    with monkeypatch.context() as patched:
        patched.setattr(Attempts, "create", once)
        assert len(world.deliver("steps", world.step, tasks)) == 2
    assert world.receive("steps") is None
    world.clock.advance(32 * SECOND)
    world.pump()
    assert [world.status(run_id) for run_id in runs] == ["completed", "completed"]


def test_a_run_whose_wake_up_was_lost_is_found_by_the_sweep(world: AwsWorld) -> None:
    run_id = world.trigger(world.publish(HELLO))
    world.pump("intents.fifo")
    world.clock.advance(2 * SECOND)
    lost = world.receive("timers")
    assert lost is not None
    world.deliver("timers", lambda event, context: KEEP, lost)
    world.clock.advance(60 * SECOND)
    world.sweeper({}, None)
    world.pump("intents.fifo")
    assert world.status(run_id) == "completed"


def test_a_wake_up_that_comes_early_twice_still_wakes_on_time(world: AwsWorld) -> None:
    """B45: every send is new, so no queue swallows the wake-up that was put off."""
    run_id = world.trigger(world.publish(HELLO))
    world.pump()
    at = world.header(run_id).wake_at
    world.clock.advance(SECOND)
    for _ in range(2):
        early = {"Records": [_wake_record(run_id, at)]}
        assert world.timer(early, None) == KEEP
    world.pump()
    assert world.status(run_id) == "waiting"
    world.clock.advance(SECOND)
    world.pump()
    assert world.status(run_id) == "completed"


def test_a_run_paused_and_resumed_twice_within_minutes_wakes_on_time(world: AwsWorld) -> None:
    """B45: the same controls again are new intents."""
    run_id = world.trigger(world.publish(HELLO))
    world.pump()
    for number in range(2):
        for verb in ("pause", "resume"):
            world.control(run_id, verb, f"{verb}-{number}")
            world.pump("intents.fifo")
            assert world.status(run_id) == ("paused" if verb == "pause" else "waiting")
    world.clock.advance(2 * SECOND)
    world.pump()
    assert world.status(run_id) == "completed"


def test_a_control_sent_twice_is_applied_once(world: AwsWorld) -> None:
    run_id = world.trigger(world.publish(HELLO))
    world.pump()
    world.control(run_id, "pause", "one")
    world.pump("intents.fifo")
    version = world.header(run_id).version
    world.control(run_id, "pause", "one")
    world.pump("intents.fifo")
    assert world.header(run_id).version == version


def test_a_task_that_nobody_takes_for_hours_is_sent_again_ever_more_rarely(world: AwsWorld) -> None:
    """Rule 19: a backlog of tasks does not feed itself, and sweeps in between add nothing."""
    run_id = world.trigger(world.publish(chain(1)))
    world.pump("intents.fifo")
    commits = []
    for _ in range(10):
        for _ in range(2):
            world.clock.advance(1_800 * SECOND)
            world.sweeper({}, None)
            world.pump("timers", "intents.fifo")
        commits.append(world.header(run_id).version)
    assert waiting_in(world, "steps") <= 11, "each look may send it again, and looks are twice as far apart each time"
    assert commits[-1] - commits[-6] <= 2
    world.pump()
    assert world.status(run_id) == "completed"
    row = world.emulator.table.get(run_pk(run_id), attempt_sk("s0", 1))
    assert row is not None
    assert msgspec.json.decode(row.body, type=Attempt).deliveries == 1


def test_a_node_reset_twice_within_a_minute_runs_twice_more(world: AwsWorld) -> None:
    """B45: two tasks of one node within minutes are two messages."""
    document = chain(1)
    document["steps"][0] |= {"action": "core.fail", "args": {"message": "on purpose"}, "retry_max_attempts": 1}
    run_id = world.trigger(world.publish(document))
    world.pump()
    for number in range(2):
        world.control(run_id, "redrive", f"again-{number}")
        world.pump()
        world.clock.advance(10 * SECOND)
    attempts = world.ok("GET", f"/api/v2/workflow-runs/{run_id}/attempts")["items"]
    assert [attempt["attempt"] for attempt in attempts] == [1, 2, 3]


def waiting_in(world: AwsWorld, queue: str) -> int:
    """How many messages there are that nobody has taken."""
    sqs = world.parts().clients("sqs")
    url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    name = "ApproximateNumberOfMessages"
    return int(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name])


def _wake_record(run_id: str, at: int) -> dict[str, Any]:
    return {
        "messageId": "m",
        "receiptHandle": "r",
        "body": msgspec.json.encode(Wake(run_id, at)).decode(),
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "0"},
    }


def _context(remaining_ms: int) -> Any:
    class Context:
        def get_remaining_time_in_millis(self) -> int:
            return remaining_ms

    return Context()


def _short_context() -> Any:
    """Time enough to begin, and none a moment later."""
    left = [10_000]

    class Context:
        def get_remaining_time_in_millis(self) -> int:
            return left.pop() if left else 1_000

    return Context()


def _unavailable(*_: Any) -> Any:
    raise UnavailableError("the queue is away")
