"""Messages to queues, topics and buses: what arrives, and what a repetition is known by."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import pytest
from tests.unit.aws.cloud import ACCOUNT, KEY, REGION, Cloud

from ductor.actions.aws import messages
from ductor.adapters.aws import bus

FIFO = {"FifoQueue": "true"}


def queue(cloud: Cloud, name: str = "orders", **attributes: str) -> str:
    return str(cloud.client("sqs").create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])


def received(cloud: Cloud, url: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        cloud.client("sqs")
        .receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], MessageSystemAttributeNames=["All"]
        )
        .get("Messages", [])
    )
    return found


@pytest.mark.parametrize(("body", "text"), [("hello", "hello"), ({"n": 0.1}, '{"n":0.1}'), (None, "null")])
def test_a_text_is_sent_as_it_is_and_anything_else_as_json(cloud: Cloud, body: Any, text: str) -> None:
    url = queue(cloud)
    done = cloud.act("sqs.send", {"queue_url": url, "body": body, "attributes": {"kind": "paid", "n": 5, "b": True}})
    (message,) = received(cloud, url)
    assert (message["Body"], message["MessageId"]) == (text, done["message_id"])
    kinds = {name: (one["DataType"], one["StringValue"]) for name, one in message["MessageAttributes"].items()}
    assert kinds == {
        "kind": ("String", "paid"),
        "n": ("Number", "5"),
        "b": ("String", "true"),
        "ductor-idempotency-key": ("String", KEY),
    }


def test_a_repetition_on_a_fifo_queue_is_one_message(cloud: Cloud) -> None:
    url = queue(cloud, "orders.fifo", **FIFO)
    args = {"queue_url": url, "body": "hi", "group_id": "g"}
    cloud.act("sqs.send", args)
    cloud.act("sqs.send", args)
    cloud.act("sqs.send", args, key="run-1/other")
    assert len(received(cloud, url)) == 2


def test_a_queue_that_is_not_there_is_refused(cloud: Cloud) -> None:
    url = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/nothing"
    fault = cloud.fails("sqs.send", {"queue_url": url, "body": "hi"})
    assert (fault.code, fault.retryable) == ("SQS.NonExistentQueue", False)


@pytest.mark.parametrize(
    "wrong",
    [{"queue_url": "orders"}, {"delay_seconds": 901}, {"region": "Europe"}, {"attributes": {"a": [1]}}, {"x": 1}],
)
def test_args_that_cannot_be_meant_are_refused(cloud: Cloud, wrong: dict[str, Any]) -> None:
    args = {"queue_url": f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/orders", "body": "hi"}
    fault = cloud.fails("sqs.send", {**args, **wrong})
    assert (fault.code, fault.details[0]["path"].split(".")[0]) == ("ACTION_ARGS_INVALID", next(iter(wrong)))


@pytest.mark.parametrize("action", ["sqs.send", "sns.publish"])
def test_what_is_too_large_is_not_sent(cloud: Cloud, action: str) -> None:
    where = {
        "sqs.send": {"queue_url": f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/orders", "body": "é" * 600_000},
        "sns.publish": {"topic_arn": f"arn:aws:sns:{REGION}:{ACCOUNT}:orders", "message": "é" * 140_000},
    }
    fault = cloud.fails(action, where[action])
    assert (fault.code, fault.retryable, fault.details["bytes"]) == (
        "PAYLOAD_TOO_LARGE",
        False,
        {"sqs.send": 1_200_000, "sns.publish": 280_000}[action],
    )


def test_a_topic_tells_its_subscribers_once(cloud: Cloud) -> None:
    url = queue(cloud, "heard.fifo", **FIFO)
    sns = cloud.client("sns")
    topic = sns.create_topic(Name="orders.fifo", Attributes={"FifoTopic": "true"})["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=f"arn:aws:sqs:{REGION}:{ACCOUNT}:heard.fifo")
    args = {"topic_arn": topic, "message": {"order": 1}, "group_id": "g", "subject": "Order"}
    assert cloud.act("sns.publish", args)["message_id"]
    cloud.act("sns.publish", args)
    assert json.loads(json.loads(received(cloud, url)[0]["Body"])["Message"]) == {"order": 1}
    sent = [params["MessageDeduplicationId"] for params in cloud.params if "TopicArn" in params and "Message" in params]
    assert len(sent) == 2
    assert len(set(sent)) == 1


def test_events_reach_the_bus_with_their_depth_and_a_stable_id(cloud: Cloud) -> None:
    entry = {"source": "acme", "detail_type": "order.paid", "detail": {"n": 0.1}, "time": "2026-01-01T00:00:00Z"}
    args = {"entries": [entry, {**entry, "resources": ["order/1"]}]}
    cloud.client("events")
    done = [cloud.act("eventbridge.put_events", args, causation_depth=4) for _ in range(2)]
    assert [len(one["event_ids"]) for one in done] == [2, 2]
    first, again = [params["Entries"] for params in cloud.params if "Entries" in params]
    assert first == again
    assert json.loads(first[0]["Detail"]) == {"n": 0.1}
    assert first[1]["Resources"][0] == "order/1"
    assert first[0]["Resources"][0] != first[1]["Resources"][1]
    assert first[0]["Resources"][1] == "ductor/causation-depth/4"


def test_only_entries_that_were_not_taken_are_sent_again(cloud: Cloud) -> None:
    def answer(*codes: str) -> tuple[int, dict[str, str], bytes]:
        entries = [
            {"ErrorCode": code, "ErrorMessage": "later"} if code else {"EventId": f"e{n}"}
            for n, code in enumerate(codes)
        ]
        return 200, {}, json.dumps({"Entries": entries, "FailedEntryCount": 1}).encode()

    entries = [{"source": "acme", "detail_type": name} for name in ("a", "b", "c")]
    with (
        mock.patch.object(messages, "_PUT_PAUSE_S", 0),
        cloud.answering("events", answer("", "ThrottlingException", ""), answer("")) as heard,
    ):
        done = cloud.act("eventbridge.put_events", {"entries": entries})
    assert [len(json.loads(request.body)["Entries"]) for request in heard] == [3, 1]
    assert done == {"event_ids": ["e0", "e0", "e2"]}
    with (
        mock.patch.object(messages, "_PUT_PAUSE_S", 0),
        cloud.answering("events", answer("", "NotAuthorizedForSource", ""), answer("NotAuthorizedForSource")),
    ):
        fault = cloud.fails("eventbridge.put_events", {"entries": entries})
    assert (fault.code, fault.retryable) == ("EventBridge.NotAuthorizedForSource", False)
    assert fault.details["failed"] == [{"entry": 1, "code": "NotAuthorizedForSource"}]


@pytest.mark.parametrize(
    "wrong",
    [{"source": "ductor"}, {"source": "ductor.x"}, {"source": "aws.s3"}, {"resources": ["ductor/tenant/other"]}],
)
def test_nobody_speaks_for_the_engine_or_another_tenant(cloud: Cloud, wrong: dict[str, Any]) -> None:
    entry = {"source": "acme", "detail_type": "ductor.run.completed", **wrong}
    fault = cloud.fails("eventbridge.put_events", {"entries": [entry]})
    assert fault.code == "ACTION_ARGS_INVALID"


def test_the_bus_is_read_as_it_is_written() -> None:
    assert (messages.SOURCE, messages.TENANT) == (bus.SOURCE, bus.TENANT)
