"""Every function may do exactly what it does: a missing permission is a failure here, and a superfluous one too."""

from __future__ import annotations

import copy
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml
from tests.contract.moto_backend import CLIENTS
from tests.functions.acting import act
from tests.functions.definitions import HELLO, chain
from tests.functions.policy import RECEIVING, Asked, Pair, allowed, faults, listed, roles, statements, template
from tests.functions.world import SECOND, AwsWorld
from tests.unit.ai.speaker import Say, Speaker

from ductor.adapters.aws.bus import EventBridgeBus
from ductor.adapters.aws.cron import AwsCronSchedules
from ductor.api.models.common import rfc3339
from ductor.app.commit import Committer
from ductor.app.entitlements import Entitlements, EntitlementStore
from ductor.app.keys import Keys
from ductor.app.tenants import Tenants
from ductor.app.worker import Worker
from ductor.ports import UnavailableError
from ductor.testing.memory import SeededIds

pytestmark = [pytest.mark.timeout(400), pytest.mark.xdist_group("policies")]
"""Everything that the functions do takes its time on a busy machine, and is done once for all tests."""

SOURCES = {
    "Coordinator": "IntentsQueue",
    "Step": "StepsQueue",
    "Timer": "TimersQueue",
    "Schedule": "ScheduleQueue",
}
FUNCTIONS = ("Api", "Authorizer", "Coordinator", "Step", "Timer", "Schedule", "Event", "Sweeper")
EXAMPLE = Path(__file__).parents[2] / "events" / "payment_and_shipment.yaml"
ORDER = {"order": "o-1", "amount": 100}


@pytest.fixture(scope="module")
def asked() -> dict[str, set[Pair]]:
    """What the functions asked for while runs went every way that takes a permission of its own."""
    world, seen = AwsWorld(), Asked()
    try:
        for function in FUNCTIONS:
            setattr(world, function.lower(), seen.wrap(function, getattr(world, function.lower())))
        with seen.watching():
            _everything(world)
    finally:
        world.close()
    seen.pairs["Event"].add(("sqs:SendMessage", "EventsDeadLetters"))  # Lambda itself, after its last try
    for function, queue in SOURCES.items():
        seen.pairs[function] |= {(action, queue) for action in RECEIVING}
    return seen.pairs


def _everything(world: AwsWorld) -> None:
    _ordinary(world)
    _large(world)
    _small(world)
    _failures(world)
    _lost(world)
    _waits(world)
    _odd(world)
    _administration(world)
    _models(world)
    _schedules(world)
    _bus(world)
    act(world)
    _limits(world)
    _batches(world)


def _batches(world: AwsWorld) -> None:
    """Controls of many runs that the request leaves to messages, found by their state and by their time."""
    world.trigger(world.publish(chain(1, "many")))
    with mock.patch("ductor.app.batches.PAGES_AT_ONCE", 0):
        for name, wanted in (("state", {"active_only": True}), ("time", {"started_after": "-1h"})):
            body = {"request_id": f"batch-{name}", "operation": "cancel", "filter": wanted}
            begun = world.ok("POST", "/api/v2/workflow-runs:batch", body)
            world.pump()
            done = world.ok("GET", f"/api/v2/workflow-runs/batches/{begun['batch_id']}")
            assert (begun["status"], done["status"]) == ("running", "completed")


def _limits(world: AwsWorld) -> None:
    """Slots that pass from run to run, a rate limit, and runs that are kept for a day."""
    rule = {"key": '"one"', "limit": 1, "on_limit": "queue"}
    definition_id = world.publish(chain(1, "limited") | {"concurrency": rule})
    runs = [world.trigger(definition_id, input={"text": "x" * 100_000}, idempotency_key=f"l{n}") for n in range(3)]
    world.control(runs[2], "pause", "later")
    world.pump()
    assert [world.status(run_id) for run_id in runs] == ["completed", "completed", "paused"]
    world.control(runs[2], "resume", "now")
    world.pump()
    world.clock.advance(60 * SECOND)
    world.sweeper({}, None)
    kept = Entitlements(requests_per_second=1_000, retention_days=1)
    EntitlementStore(world.emulator.table).set(world.tenant, kept)
    world.clock.advance(2 * 24 * 3_600 * SECOND)
    for _ in range(3):
        world.sweeper({}, None)
    assert [world.request("GET", f"/api/workflows/runs/{run_id}")[0] for run_id in runs] == [404] * 3


def _ordinary(world: AwsWorld) -> None:
    run_id = world.trigger(world.publish(HELLO), idempotency_key="once")
    world.pump()
    for path in ("", "?status=completed", "?active_only=true", f"/{run_id}", f"/{run_id}/steps", f"/{run_id}/events"):
        world.ok("GET", f"/api/workflows/runs{path}")
    world.ok("GET", "/api/workflow-definitions")
    world.control(world.trigger(world.publish(chain(3))), "cancel", "stop")
    world.pump()


def _large(world: AwsWorld) -> None:
    document = chain(2, "large")
    document["steps"][0]["args"] = {"said": "${{ TRIGGER.payload.text }}"}
    document["steps"][1]["args"] = {"said": "${{ STEPS.s0.output.said }}"}
    run_id = world.trigger(world.publish(document), input={"text": "x" * 100_000})
    world.pump()
    assert world.status(run_id) == "completed"
    world.ok("GET", f"/api/v2/workflow-runs/{run_id}/nodes/s0/output")


def _waits(world: AwsWorld) -> None:
    pause: dict[str, Any] = {"ref": "pause", "type": "STEP_TYPE_WAIT", "args": {"duration": "40m"}}
    document = {"environment": "default", "family_slug": "long", "title": "Long", "steps": [pause], "edges": []}
    definition_id = world.publish(document)
    run_id = world.trigger(definition_id)
    early = world.trigger(definition_id)
    world.pump()
    world.control(early, "cancel", "early")
    world.pump()
    at = world.clock.now_ms()
    for minutes in (30, 10):  # a wake-up that is still far away, and one that is near
        body = f'{{"run_id":"{run_id}","at":{at + minutes * 60 * SECOND}}}'
        record = {"messageId": "m", "receiptHandle": "r", "body": body, "attributes": _attributes()}
        assert world.timer({"Records": [record]}, None) == {"batchItemFailures": []}
    _events(world)
    world.clock.advance(60 * 60 * SECOND)
    world.sweeper({}, None)
    world.pump()
    assert world.status(run_id) == "completed"


def _events(world: AwsWorld) -> None:
    run_id = world.trigger(world.publish(yaml.safe_load(EXAMPLE.read_text())["definition"]), input=ORDER)
    world.pump()
    for name, payload in (("order.paid", {"amount": 99}), ("order.paid", {"amount": 100}), ("nobody.waits", None)):
        event = {"event_name": name, "correlation_key": "o-1", "event_id": f"{name}{payload}", "payload": payload}
        world.ok("POST", "/api/v2/workflow-events:publish", event)
        world.pump()
    world.control(run_id, "cancel", "enough")
    requirements = [{"name": "late", "event_name": "nobody.waits"}, {"name": "never", "event_name": "never"}]
    args = {"correlation_key": "o-1", "requirements": requirements, "lookback_ms": 60_000}
    step = {"ref": "set", "type": "STEP_TYPE_EVENT_SET", "args": args}
    document = {"environment": "default", "family_slug": "set", "title": "Set", "steps": [step], "edges": []}
    world.trigger(world.publish(document))
    world.pump()


def _small(world: AwsWorld) -> None:
    """A payload that is too large for a message and too small for the bucket, handed to a child."""
    document = chain(2, "child")
    document["steps"][1]["args"] = {"said": "${{ TRIGGER.payload.text }}"}
    world.publish(document)
    step: dict[str, Any] = {"ref": "child", "type": "STEP_TYPE_SUBWORKFLOW"}
    step |= {"args": {"family_slug": "child", "input": {"text": "${{ TRIGGER.payload.text }}"}}}
    parent = {"environment": "default", "family_slug": "parent", "title": "Parent", "steps": [step], "edges": []}
    run_id = world.trigger(world.publish(parent), input={"text": "x" * 4_000})
    world.pump()
    assert world.status(run_id) == "completed"


def _failures(world: AwsWorld) -> None:
    """Batches that fail come again soon: their visibility is changed."""
    run_id = world.trigger(world.publish(chain(1, "again")))
    for owner, method, queue in ((Committer, "commit", "intents.fifo"), (Worker, "claim", "steps")):
        batch = world.receive(queue)
        assert batch is not None
        handler = world.coordinator if queue == "intents.fifo" else world.step
        with mock.patch.object(owner, method, side_effect=UnavailableError("away")):
            assert world.deliver(queue, handler, batch)
        world.clock.advance(61 * SECOND)
        world.pump("intents.fifo")
    world.pump()
    assert world.status(run_id) == "completed"


def _odd(world: AwsWorld) -> None:
    """Messages that are none: they end in the dead letters."""
    run_id = world.trigger(world.publish(chain(1, "odd")))
    world.send_intent("not an intent", run_id, "odd")
    CLIENTS("sqs").send_message(QueueUrl=world.environment["DUCTOR_STEPS_URL"], MessageBody="not a task")
    world.pump()


def _lost(world: AwsWorld) -> None:
    """A task that vanishes from the queue is sent again: the queue's age says that it is there no more."""
    run_id = world.trigger(world.publish(chain(1, "lost")))
    world.pump("intents.fifo")
    vanished = world.receive("steps")
    assert vanished is not None
    assert len(vanished["Records"]) == 1
    CLIENTS("sqs").purge_queue(QueueUrl=world.environment["DUCTOR_STEPS_URL"])
    for _ in range(4):
        world.clock.advance(4 * 60 * SECOND)
        world.sweeper({}, None)
        world.pump()
    assert world.status(run_id) == "completed"


def _administration(world: AwsWorld) -> None:
    first = Tenants(world.emulator.table, world.clock, SeededIds(97, world.clock)).first_start(
        Keys(world.emulator.table, world.clock, SeededIds(96, world.clock)), reissue=True
    )
    assert first.admin_key is not None
    ordinary, world.key = world.key, first.admin_key.plaintext
    settings = {"base_url": "http://127.0.0.1:1"}
    connection = {"slug": "main", "type": "stripe", "settings": settings, "secrets": {"api_key": "sk_test"}}
    made = world.ok("POST", "/api/connections", connection)
    world.ok("POST", "/api/connections/main:test")
    world.key = ordinary
    step: dict[str, Any] = {"ref": "bill", "type": "STEP_TYPE_ACTION", "action": "stripe.invoices.create"}
    step |= {"connection_ref": "main", "args": {"customer_id": "c", "amount": 1, "currency": "eur"}}
    document = {"environment": "default", "family_slug": "bill", "title": "Bill", "steps": [step], "edges": []}
    world.trigger(world.publish(document))
    world.pump()
    world.key = first.admin_key.plaintext
    world.ok("DELETE", f"/api/connections/{made['id']}")


def _models(world: AwsWorld) -> None:
    """An agent with answers too long for a row."""
    script = [Say("x" * 20_000, calls=[("core_echo", {"n": 1})]), Say("done")]
    with Speaker(script) as speaker, mock.patch.dict("os.environ", AWS_ENDPOINT_URL_BEDROCK_RUNTIME=speaker.url):
        args = {"model": "m", "prompt": "p", "max_tokens": 5, "max_turns": 3, "tools": ["core.echo"]}
        step = {"ref": "ask", "type": "STEP_TYPE_AI_AGENT", "args": args}
        document = {"environment": "default", "family_slug": "ask", "title": "Ask", "steps": [step], "edges": []}
        run_id = world.trigger(world.publish(document))
        world.pump()
    assert world.status(run_id) == "completed"
    (attempt,) = world.ok("GET", f"/api/v2/workflow-runs/{run_id}/attempts")["items"]
    assert [one["kind"] for one in attempt["conversation"]] == ["turn", "tool", "turn"]


def _bus(world: AwsWorld) -> None:
    """Events of the bus that end a wait, collect for a set, start a run with a large input, or are refused."""
    world.deliver_events()
    waits = yaml.safe_load(EXAMPLE.read_text())["definition"] | {"family_slug": "bus"}
    waits["steps"][0]["args"]["condition"] = "TRIGGER.payload.text != EVENT.payload.text"
    waits["input_schema"] = {"type": "object"}
    world.trigger(world.publish(waits), input={**ORDER, "text": "y" * 400_000})
    world.pump()
    world.publish({**chain(1, "started"), "triggers": [{"patterns": ["order.*", "ductor.run.completed"]}]})
    for name in ("order.paid", "parcel.sent", "invoice.sent"):
        payload = {"amount": 100, "text": "x" * 60_000}
        world.put_event(DetailType=name, Detail={"correlation_key": "o-1", "payload": payload})
        world.deliver_events()
        world.pump()
    world.clock.advance(26 * 3_600 * SECOND)
    world.put_event(Detail={"correlation_key": "o-1", "payload": {"amount": 1}})
    world.put_event(Source="nobody")
    world.deliver_events()
    with mock.patch.object(EventBridgeBus, "put", side_effect=UnavailableError("away")):
        world.trigger(world.publish(chain(1, "untold")))
        world.pump()
    world.sweeper({}, None)


def _schedules(world: AwsWorld) -> None:
    """An occurrence with a large input that is called for, one that is not, and every change of a schedule."""
    now, minute = world.clock.now_ms() // 1000 * 1000, 60 * SECOND
    schedule: dict[str, Any] = {"cron": "*/5 * * * *", "overlap_policy": "allow_all"}
    schedule |= {"input": {"text": "x" * 400_000}, "end_at": rfc3339(now + 40 * minute)}
    document = chain(1, "nightly") | {"schedule": schedule}
    draft = world.ok("POST", "/api/workflow-definitions", document)
    publish = f"/api/workflow-definitions/{draft['id']}/publish"
    first = world.ok("POST", publish)
    world.ok("POST", publish)
    world.ok("POST", "/api/workflow-schedules/nightly:pause")
    world.ok("POST", "/api/workflow-schedules/nightly:resume")
    world.clock.advance(10 * minute)
    world.call_schedule("nightly", rfc3339(world.clock.now_ms() - minute) or "")
    world.clock.advance(10 * minute)
    world.sweeper({}, None)
    world.ok("POST", "/api/workflow-schedules/nightly:triggerNow", {"request_id": "now"})
    world.ok("GET", "/api/workflow-schedules")
    world.ok("GET", "/api/workflow-schedules/nightly/occurrences")
    past = {"start_at": "-1h", "end_at": "-30m"}
    world.ok("POST", "/api/workflow-schedules/nightly:backfill", past)
    with mock.patch.object(AwsCronSchedules, "put", side_effect=UnavailableError("away")):
        second = world.ok("POST", publish)
    world.sweeper({}, None)
    world.clock.advance(60 * minute)
    world.sweeper({}, None)
    world.sweeper({}, None)
    for version in (first, second):
        world.ok("POST", f"/api/workflow-definitions/{version['published']['id']}/archive")
    world.pump()
    _delayed(world)


def _delayed(world: AwsWorld) -> None:
    """A call before the jitter of its occurrence is over is sent again."""
    document = chain(1, "spread") | {"schedule": {"cron": "0 * * * *", "jitter_ms": 3_600_000}}
    world.publish(document)
    detail = world.ok("GET", "/api/workflow-schedules/spread")
    at = datetime.fromisoformat(detail["next_occurrence_at"])
    world.clock.set(int(at.timestamp() * 1000))
    world.call_schedule("spread", detail["next_occurrence_at"])


def _attributes() -> dict[str, str]:
    return {"ApproximateReceiveCount": "1", "SentTimestamp": "0", "MessageGroupId": ""}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_may_do_what_it_does_and_nothing_else(asked: dict[str, set[Pair]], function: str) -> None:
    assert faults(function, template(), asked[function]) == {"missing": [], "superfluous": []}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_any_permission_less_is_found_missing(asked: dict[str, set[Pair]], function: str) -> None:
    whole = roles(function)
    tried: set[Pair] = set()
    for place, statement in enumerate(statements(function, whole)):
        for field in ("Action", "Resource"):
            for one in listed(statement[field]):
                less = copy.deepcopy(whole)
                left = [other for other in listed(statement[field]) if other != one]
                statements(function, less)[place][field] = left
                gone = allowed(function, whole) - allowed(function, less)
                assert faults(function, less, asked[function]) == {"missing": sorted(gone), "superfluous": []}
                tried |= gone
    assert tried == allowed(function, whole)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_any_permission_more_is_found_superfluous(asked: dict[str, set[Pair]], function: str) -> None:
    whole = roles(function)
    for place, statement in enumerate(statements(function, whole)):
        for field, extra in (("Action", "dynamodb:DeleteTable"), ("Resource", {"GetAtt": "Elsewhere.Arn"})):
            more = copy.deepcopy(whole)
            statements(function, more)[place][field] = [*listed(statement[field]), extra]
            added = allowed(function, more) - allowed(function, whole)
            assert added
            assert faults(function, more, asked[function]) == {"missing": [], "superfluous": sorted(added)}


def test_a_wildcard_is_no_permission(asked: dict[str, set[Pair]]) -> None:
    wide = roles("Timer")
    statements("Timer", wide)[0]["Action"] = ["sqs:*"]
    with pytest.raises(AssertionError):
        faults("Timer", wide, asked["Timer"])


def test_every_function_of_the_loop_may_recur() -> None:
    resources = template()["Resources"]
    for function in (*SOURCES, "Event"):
        assert resources[f"{function}Function"]["Properties"]["RecursiveLoop"] == "Allow"
