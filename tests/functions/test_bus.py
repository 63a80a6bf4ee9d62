"""The event bus: events in from whoever may put them there, events about runs out."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import pytest
from tests.contract.moto_backend import CLIENTS
from tests.functions.definitions import chain
from tests.functions.world import AwsWorld

from ductor.app.events import Events
from ductor.lambdas.bus_events import NotOursError, Sources, read_event
from ductor.model.causation import MAX_DEPTH
from ductor.ports import UnavailableError

OTHER = "a-tenant-that-is-not-there"


def listening(*patterns: str, slug: str = "listens", **trigger: Any) -> dict[str, Any]:
    return {**chain(1, slug), "triggers": [{"patterns": list(patterns), **trigger}]}


def names(told: list[dict[str, Any]]) -> list[str]:
    return [event["detail-type"] for event in told]


def dead(world: AwsWorld) -> list[str]:
    """The reasons of the events in the dead letters."""
    batch = world.receive("dead-events")
    return [json.loads(record["body"])["reason"].partition(":")[0] for record in batch["Records"]] if batch else []


def test_an_event_of_the_bus_starts_a_run_once_however_often_it_is_delivered(world: AwsWorld) -> None:
    world.publish(listening("order.paid", input="${{ EVENT.payload }}"))
    world.put_event(Detail={"correlation_key": "o-1", "payload": {"amount": 5}})
    (event,) = world.told()
    (run_id,) = world.event(event, None)["started_runs"]
    assert world.event(event, None) == {"matched": 0, "started_runs": []}
    assert world.header(run_id).origin.event == {
        "event_name": "order.paid",
        "correlation_key": "o-1",
        "event_id": event["id"],
    }
    world.pump()
    assert world.status(run_id) == "completed"


def test_what_an_action_puts_beside_the_detail_is_its_id_and_its_depth() -> None:
    beside = ["order/1", "ductor/event-id/abc.0", "ductor/causation-depth/7"]
    raw: dict[str, Any] = {"detail-type": "order.paid", "id": "bus-1", "detail": {"n": 1}, "resources": beside}
    event = read_event(raw)
    assert (event.event_id, event.depth, event.payload) == ("abc.0", 7, {"n": 1})
    own = read_event({**raw, "detail": {"payload": 1, "event_id": "mine", "causation_depth": 2}})
    assert (own.event_id, own.depth) == ("mine", 2)
    with pytest.raises(NotOursError, match="causation_depth"):
        read_event({**raw, "resources": ["ductor/causation-depth/many"]})


def test_an_event_of_the_bus_ends_a_wait(world: AwsWorld) -> None:
    args = {"event_name": "order.paid", "correlation_key": "o-1"}
    step = {"ref": "w", "type": "STEP_TYPE_WAIT_EVENT", "args": args}
    document = {"environment": "default", "family_slug": "waits", "title": "W", "steps": [step], "edges": []}
    run_id = world.trigger(world.publish(document))
    world.pump()
    world.told()
    world.put_event(Detail={"correlation_key": "o-1", "payload": 1})
    assert [answer["matched"] for answer in world.deliver_events()] == [1]
    world.pump()
    assert world.status(run_id) == "completed"


def test_an_outage_is_raised_so_that_lambda_tries_again(world: AwsWorld) -> None:
    world.publish(listening("order.paid"))
    world.put_event()
    (event,) = world.told()
    with mock.patch.object(Events, "accept", side_effect=UnavailableError("away")), pytest.raises(UnavailableError):
        world.event(event, None)
    assert len(world.event(event, None)["started_runs"]) == 1


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"Source": "acme.other"}, "TENANT_UNCLEAR"),
        ({"Source": "acme.other", "Resources": [f"ductor/tenant/{OTHER}"]}, "TENANT_UNKNOWN"),
        ({"Resources": [f"ductor/tenant/{OTHER}"]}, "TENANT_UNCLEAR"),
        ({"DetailType": "ductor.run.completed"}, "EVENT_NAME_RESERVED"),
        ({"Detail": {"payload": 1, "correlation_key": 7}}, "DETAIL_INVALID"),
        ({"Detail": {"payload": 1, "causation_depth": -1}}, "DETAIL_INVALID"),
        ({"Detail": {"payload": 1, "correlation_key": "x" * 1_025}}, "FIELD_INVALID"),
    ],
)
def test_what_can_never_be_delivered_lies_in_the_dead_letters_with_its_reason(
    world: AwsWorld, fields: dict[str, Any], code: str
) -> None:
    world.put_event(**fields)
    assert world.deliver_events() == [{"refused": code}]
    assert dead(world) == [code]


def test_a_source_may_name_its_tenant_itself(world: AwsWorld) -> None:
    world.publish(listening("order.paid"))
    world.put_event(Source="acme.other", Resources=[f"ductor/tenant/{world.tenant}", "arn:aws:s3:::bucket"])
    assert len(world.deliver_events()[0]["started_runs"]) == 1


def test_sources_are_rules_of_which_the_first_that_fits_counts() -> None:
    sources = Sources("acme.orders=t1, acme.*=t2 ,*=*", "ductor/tenant/")
    assert sources.tenant_of("acme.orders", []) == "t1"
    assert sources.tenant_of("acme.x.y", ["ductor/tenant/t2"]) == "t2"
    assert sources.tenant_of("aws.s3", ["ductor/tenant/t3"]) == "t3"
    for source, resources in (("aws.s3", []), ("aws.s3", ["ductor/tenant/a", "ductor/tenant/b"])):
        with pytest.raises(NotOursError):
            sources.tenant_of(source, resources)
    with pytest.raises(NotOursError):
        Sources("acme.*=t1", "ductor/tenant/").tenant_of("acme", [])
    with pytest.raises(ValueError, match="source=tenant"):
        Sources("acme", "ductor/tenant/")


def test_a_detail_of_somebody_elses_making_is_the_payload() -> None:
    detail = {"bucket": {"name": "b"}, "object": {"key": "k"}}
    event = read_event({"id": "e-1", "detail-type": "Object Created", "source": "aws.s3", "detail": detail})
    assert (event.event_name, event.event_id, event.payload) == ("Object Created", "e-1", detail)
    own = {"event_id": "mine", "correlation_key": "k", "payload": [1], "causation_depth": 3}
    event = read_event({"id": "e-1", "detail-type": "x", "source": "s", "detail": own})
    assert (event.event_id, event.correlation_key, event.payload, event.depth) == ("mine", "k", [1], 3)


def test_a_run_tells_of_its_start_and_end_under_stable_ids(world: AwsWorld) -> None:
    labels = [{"key": "order", "id": "o-1"}]
    run_id = world.trigger(world.publish(chain(1, "tells")), correlation_labels=labels, subject_id="7")
    world.pump()
    told = world.told()
    assert names(told) == ["ductor.run.started", "ductor.run.completed"]
    assert {event["source"] for event in told} == {"ductor"}
    assert told[1]["resources"] == [f"ductor/tenant/{world.tenant}"]
    detail = told[1]["detail"]
    seq = detail["payload"]["transition_seq"]
    assert (detail["event_id"], detail["causation_depth"]) == (f"{run_id}:{seq}", 0)
    payload = detail["payload"]
    assert (payload["run_id"], payload["status"], payload["family_slug"]) == (run_id, "completed", "tells")
    assert (payload["correlation_labels"], payload["subject_id"], payload["error"]) == (labels, "7", None)
    assert "output" not in payload


def test_a_cancelled_and_a_paused_run_tell_so(world: AwsWorld) -> None:
    step = {"ref": "pause", "type": "STEP_TYPE_WAIT", "args": {"duration": "40m"}}
    document = {"environment": "default", "family_slug": "long", "title": "Long", "steps": [step], "edges": []}
    run_id = world.trigger(world.publish(document))
    for verb in ("pause", "resume", "cancel"):
        world.pump()
        world.control(run_id, verb, verb)
    world.pump()
    assert names(world.told()) == [f"ductor.run.{name}" for name in ("started", "paused", "resumed", "cancelled")]


def test_what_the_bus_did_not_take_is_told_by_the_sweeper_and_the_run_goes_on(world: AwsWorld) -> None:
    run_id = world.trigger(world.publish(chain(1, "again")))

    def refuse(**arguments: Any) -> Any:
        entries = [{"ErrorCode": "ThrottlingException"} for _ in arguments["Entries"]]
        return {"FailedEntryCount": len(entries), "Entries": entries}

    with mock.patch.object(CLIENTS("events"), "put_events", refuse):
        world.pump()
        world.sweeper({}, None)
    assert world.status(run_id) == "completed"
    assert world.told() == []
    world.sweeper({}, None)
    assert sorted(names(world.told())) == ["ductor.run.completed", "ductor.run.started"]
    world.sweeper({}, None)
    assert world.told() == []


def test_a_definition_may_listen_to_the_ends_of_other_runs(world: AwsWorld) -> None:
    condition = 'EVENT.payload.family_slug == "watched"'
    world.publish(listening("ductor.run.completed", slug="watcher", condition=condition))
    world.trigger(world.publish(chain(1, "watched")))
    world.pump()
    started = [run_id for answer in world.deliver_events() for run_id in answer["started_runs"]]
    assert len(started) == 1
    origin = world.header(started[0]).origin
    assert (origin.family_slug, origin.depth) == ("watcher", 1)
    world.pump()
    assert [answer["started_runs"] for answer in world.deliver_events()] == [[]]


def test_rule_24_a_definition_that_starts_on_its_own_end_does_not_loop(world: AwsWorld) -> None:
    step = {"ref": "s", "type": "STEP_TYPE_DATAFLOW", "args": {"operation": "project", "project": {"v": "1"}}}
    document = {"environment": "default", "family_slug": "loop", "title": "Loop", "steps": [step], "edges": []}
    definition_id = world.publish({**document, "triggers": [{"patterns": ["ductor.run.completed"]}]})
    world.trigger(definition_id)
    runs = 1
    for _ in range(MAX_DEPTH + 5):
        world.pump("intents.fifo")
        runs += sum(len(answer["started_runs"]) for answer in world.deliver_events())
    assert runs == MAX_DEPTH + 1
    (refused,) = world.ok("GET", "/api/v2/workflow-events/refused-starts")["items"]
    assert (refused["code"], refused["family_slug"], refused["depth"]) == ("CAUSATION_TOO_DEEP", "loop", MAX_DEPTH)


def test_an_event_about_a_run_calls_the_function_only_when_a_definition_listens(world: AwsWorld) -> None:
    quiet = world.publish(chain(1, "quiet"))
    world.trigger(quiet)
    world.pump()
    assert (world.deliver_events(), names(world.told())) == ([], ["ductor.run.started", "ductor.run.completed"])
    world.publish(listening("ductor.run.completed"))
    world.trigger(quiet)
    world.pump()
    # The start goes untouched: nobody listens to that one.
    assert [len(answer["started_runs"]) for answer in world.deliver_events()] == [1]
