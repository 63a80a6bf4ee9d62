"""Batches with runs that fail or kill the function (B57): the others go on, and nothing is remembered or lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import msgspec
from tests.contract.moto_backend import CLIENTS
from tests.functions.definitions import HELLO, chain
from tests.functions.world import SECOND, AwsWorld, Killed

from ductor.adapters.aws.faults import AwsRefusedError
from ductor.adapters.aws.queue import SqsQueue
from ductor.app.claims import Claimed, Finished
from ductor.app.commit import Committer
from ductor.app.headers import run_pk
from ductor.app.worker import Worker
from ductor.lambdas.poison import HOPELESS, SUSPICIOUS
from ductor.model.attempt import Attempt, AttemptStatus, attempt_sk
from ductor.model.intent import Intent, IntentKind
from ductor.ports import Outgoing, UnavailableError


@contextmanager
def ticking(fault: Callable[[str], None]) -> Iterator[list[list[str]]]:
    """Every tick first calls `fault` with its run; yields the intents of each tick that came so far."""
    seen: list[list[str]] = []
    commit = Committer.commit

    def watched(
        self: Any, graph: Any, state: Any, intents: Sequence[Intent], applied: Any, also: Sequence[Any] = ()
    ) -> Any:
        fault(state.run_id)
        seen.append([intent.id for intent in intents])
        return commit(self, graph, state, intents, applied, also)

    with mock.patch.object(Committer, "commit", watched):
        yield seen


def failing(run_id: str, error: BaseException) -> Callable[[str], None]:
    def fault(ticked: str) -> None:
        if ticked == run_id:
            raise error

    return fault


def nudge(world: AwsWorld, run_id: str, name: str) -> None:
    intent = Intent(id=f"{run_id}:{name}", run_id=run_id, kind=IntentKind.NUDGE)
    world.send_intent(msgspec.json.encode(intent).decode(), run_id, name)


def deliveries(world: AwsWorld, number: int) -> None:
    """That many times: everything visible is delivered once, and what failed becomes visible again."""
    for _ in range(number):
        batch = world.receive("intents.fifo")
        if batch is not None:
            world.deliver("intents.fifo", world.coordinator, batch)
        world.clock.advance(61 * SECOND)


def test_one_run_that_fails_leaves_the_others_of_its_batch_alone(world: AwsWorld) -> None:
    definition_id = world.publish(HELLO)
    bad, *good = [world.trigger(definition_id) for _ in range(3)]
    for number in range(2):
        for run_id in (bad, *good):
            nudge(world, run_id, f"{run_id[-4:]}{number}")
    batch = world.receive("intents.fifo")
    assert batch is not None
    with ticking(failing(bad, RuntimeError("a bug"))):
        failed = world.deliver("intents.fifo", world.coordinator, batch)
    of_bad = [r["messageId"] for r in batch["Records"] if r["attributes"]["MessageGroupId"] == bad]
    assert failed == sorted(of_bad)
    assert [world.status(run_id) for run_id in good] == ["waiting", "waiting"]

    # By hand: moto does not keep the order of several messages of a group that come again.
    again = {"Records": [r for r in batch["Records"] if r["messageId"] in failed]}
    with ticking(failing("", RuntimeError())) as ticks:
        assert world.deliver("intents.fifo", world.coordinator, again) == []
    assert ticks == [[f"{bad}:start", f"{bad}:{bad[-4:]}0", f"{bad}:{bad[-4:]}1"]]
    world.clock.advance(2 * SECOND)
    world.pump()
    assert [world.status(run_id) for run_id in (bad, *good)] == ["completed"] * 3


def test_a_run_that_always_kills_its_process_is_stalled_and_the_others_go_on(world: AwsWorld) -> None:
    definition_id = world.publish(chain(1))
    bad, good = world.trigger(definition_id), world.trigger(definition_id)
    with ticking(failing(bad, Killed())):
        deliveries(world, SUSPICIOUS + 2)
        assert world.header(good).version > 1
        assert world.run(bad)["summary"].get("stalled") is None
        deliveries(world, HOPELESS)
    assert "10 times" in world.run(bad)["summary"]["stalled"]["reason"]
    world.control(bad, "redrive", "again")
    world.pump()
    assert [world.status(run_id) for run_id in (bad, good)] == ["completed", "completed"]
    assert world.run(bad)["summary"].get("stalled") is None
    world.sweeper({}, None)
    told = [event["detail-type"] for event in world.told() if event["detail"]["payload"]["run_id"] == bad]
    assert sorted(told)[1:] == ["ductor.run.redriven", "ductor.run.stalled", "ductor.run.started"]


def test_a_suspicious_run_is_ticked_alone_while_the_others_are_visible_again(world: AwsWorld) -> None:
    definition_id = world.publish(chain(1))
    runs = [world.trigger(definition_id) for _ in range(3)]
    batch = world.receive("intents.fifo")
    assert batch is not None
    batch["Records"][1]["attributes"]["ApproximateReceiveCount"] = str(SUSPICIOUS)
    with ticking(failing("", RuntimeError())) as ticks:
        failed = world.deliver("intents.fifo", world.coordinator, batch)
    assert ticks == [[f"{runs[1]}:start"]]
    assert failed == sorted(batch["Records"][place]["messageId"] for place in (0, 2))
    again = world.receive("intents.fifo")
    assert again is not None
    assert {r["attributes"]["MessageGroupId"] for r in again["Records"]} >= {runs[0], runs[2]}


def test_an_outage_however_long_stalls_nothing(world: AwsWorld) -> None:
    run_id = world.trigger(world.publish(chain(1)))
    with ticking(failing(run_id, UnavailableError("the table is away"))):
        deliveries(world, HOPELESS + 3)
    assert world.run(run_id)["summary"].get("stalled") is None
    world.pump()
    assert world.status(run_id) == "completed"


def test_code_that_always_fails_stalls_its_run_too(world: AwsWorld) -> None:
    run_id = world.trigger(world.publish(chain(1)))
    with ticking(failing(run_id, RuntimeError("AccessDenied"))):
        deliveries(world, HOPELESS + 1)
    assert "RuntimeError: AccessDenied" in world.run(run_id)["summary"]["stalled"]["reason"]


def test_a_stored_state_that_cannot_be_unpacked_stalls_its_run_at_once(world: AwsWorld) -> None:
    definition_id = world.publish(HELLO)
    bad, good = world.trigger(definition_id), world.trigger(definition_id)
    world.pump()
    table, key = CLIENTS("dynamodb"), {"pk": {"S": run_pk(bad)}, "sk": {"S": "HEAD"}}
    row = table.get_item(TableName="ductor", Key=key)["Item"]
    assert "packed" in row
    table.put_item(TableName="ductor", Item={**row, "body": {"B": b"neither JSON nor deflated"}})
    world.clock.advance(2 * SECOND)
    world.pump()
    assert world.status(good) == "completed"
    assert world.request("GET", f"/api/workflows/runs/{bad}")[0] == 409
    kept = table.get_item(TableName="ductor", Key=key)["Item"]
    table.put_item(TableName="ductor", Item={**kept, "body": row["body"], "packed": row["packed"]})
    assert "cannot be read" in world.run(bad)["summary"]["stalled"]["reason"]
    world.control(bad, "redrive", "repaired")
    world.pump()
    assert world.status(bad) == "completed"


def test_a_steps_queue_that_refuses_for_good_fails_no_invocation_and_stalls_with_its_reason(world: AwsWorld) -> None:
    tasks, waits = world.trigger(world.publish(chain(1))), world.trigger(world.publish(HELLO))
    send = SqsQueue.send

    def refused(queue: SqsQueue, messages: Sequence[Outgoing]) -> Any:
        if queue.fifo:
            return send(queue, messages)
        raise AwsRefusedError("AccessDenied", "not authorized to perform: sqs:SendMessage")

    with mock.patch.object(SqsQueue, "send", refused):
        deliveries(world, HOPELESS + 1)
    reason = world.run(tasks)["summary"]["stalled"]["reason"]
    assert "AccessDenied: not authorized to perform: sqs:SendMessage" in reason
    world.pump()
    assert world.status(waits) == "completed"
    world.control(tasks, "redrive", "permitted")
    world.pump()
    assert world.status(tasks) == "completed"


def test_what_is_no_intent_goes_to_the_dead_letters_and_blocks_nobody(world: AwsWorld) -> None:
    run_id = world.trigger(world.publish(chain(1)))
    world.send_intent("not an intent", run_id, "odd")
    world.pump()
    assert world.status(run_id) == "completed"
    ((dead, reason),) = world.emulator.intents.dead_letters()
    assert (dead.body, dead.group) == (b"not an intent", run_id)
    assert "not an intent" in reason


def test_an_intent_for_a_run_that_does_not_exist_is_buried_after_some_minutes(world: AwsWorld) -> None:
    nudge(world, "nobody", "one")
    deliveries(world, HOPELESS - 1)
    assert world.emulator.intents.dead_letters() == ()
    deliveries(world, 2)
    ((dead, reason),) = world.emulator.intents.dead_letters()
    assert dead.group == "nobody"
    assert "does not exist" in reason
    assert world.receive("intents.fifo") is None


def test_an_action_that_kills_its_process_uses_up_no_deliveries_of_others(world: AwsWorld) -> None:
    bad, good = world.trigger(world.publish(chain(1, "bad"))), world.trigger(world.publish(chain(1, "good")))
    execute = Worker.execute

    def deadly(self: Worker, claimed: Claimed) -> Finished:
        if claimed.task.run_id == bad:
            raise Killed
        return execute(self, claimed)

    world.pump("intents.fifo")
    with mock.patch.object(Worker, "execute", deadly):
        for _ in range(4):
            tasks = world.receive("steps")
            if tasks is not None:
                world.deliver("steps", world.step, tasks)
            world.clock.advance(61 * SECOND)
        world.pump()
    row = world.emulator.table.get(run_pk(good), attempt_sk("s0", 1))
    assert row is not None
    assert msgspec.json.decode(row.body, type=Attempt).status is AttemptStatus.SUCCEEDED
    assert [world.status(run_id) for run_id in (bad, good)] == ["failed", "completed"]
