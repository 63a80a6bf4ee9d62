"""`sqs.send`, `sns.publish` and `eventbridge.put_events`: hand a message on. Reads none."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, Field, StrictBool

from ductor.actions.aws.access import AwsAccess
from ductor.actions.aws.errors import service_error, too_large
from ductor.actions.aws.values import MARK, AwsArgs, message_text, short_key, within
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.model.causation import DEPTH_RESOURCE, EVENT_RESOURCE
from ductor.model.json import JSON, encode

MAX_SQS_BYTES: Final = 1_048_576
MAX_SNS_BYTES: Final = 262_144
MAX_EVENTS_BYTES: Final = 1_048_576
"""Of one request. Regions whose limit is still 256 KB refuse more themselves."""

MAX_ATTRIBUTES: Final = 10
SOURCE: Final = "ductor"
"""The source of what the engine itself puts on a bus; nobody else may."""

TENANT: Final = "ductor/tenant/"
"""What a resource that names a tenant begins with."""

_PUT_TRIES: Final = 3
_PUT_PAUSE_S: Final = 0.5
_QUEUE_URL: Final = re.compile(r"https?://[^\s/?#]+/[^\s?#]+")
_QUEUE_REGION: Final = re.compile(r"https://sqs\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?/")

Attributes = dict[Annotated[str, Field(min_length=1, max_length=256)], str | StrictBool | int | float]


def _queue_url(value: str) -> str:
    if _QUEUE_URL.fullmatch(value) is None:
        raise ValueError("must be the URL of a queue, like https://sqs.eu-west-1.amazonaws.com/123456789012/orders")
    return value


class SqsArgs(AwsArgs):
    """What `sqs.send` takes."""

    queue_url: Annotated[str, AfterValidator(_queue_url)] = Field(max_length=512, description="The queue.")
    body: JSON = Field(description="A text as it is, anything else as JSON.")
    attributes: Attributes = Field(default={}, max_length=MAX_ATTRIBUTES, description="Message attributes.")
    delay_seconds: int = Field(default=0, ge=0, le=900, description="Standard queues only.")
    group_id: str = Field(default="", max_length=128, description="The message group; FIFO queues need one.")
    deduplication_id: str = Field(default="", max_length=128, description="FIFO queues; by default of the step.")


class SqsSend:
    """The function behind `sqs.send`."""

    def __init__(self, aws: AwsAccess) -> None:
        self._aws = aws

    def __call__(self, args: SqsArgs, ctx: ActionContext) -> dict[str, JSON]:
        """`{message_id}`, with `sequence_number` on a FIFO queue. Raises ActionError."""
        body = within("the body", message_text(args.body), MAX_SQS_BYTES)
        params: dict[str, Any] = {
            "QueueUrl": args.queue_url,
            "MessageBody": body,
            "MessageAttributes": _attributes(args.attributes, ctx),
            **_ordered(args.group_id, args.deduplication_id, ctx, fifo=args.queue_url.endswith(".fifo")),
        }
        if args.delay_seconds:
            params["DelaySeconds"] = args.delay_seconds
        named = _QUEUE_REGION.match(args.queue_url)
        region = args.region or (named[1] if named else "")
        return _sent(self._aws.call(ctx, "sqs", "send_message", params, region))


class SnsArgs(AwsArgs):
    """What `sns.publish` takes."""

    topic_arn: str = Field(
        max_length=512, pattern=r"^arn:[\w-]+:sns:[\w-]+:[0-9]{12}:[\w.-]+$", description="The topic."
    )
    message: JSON = Field(description="A text as it is, anything else as JSON.")
    subject: str = Field(default="", max_length=100, description="For subscriptions by email.")
    attributes: Attributes = Field(default={}, max_length=100, description="Message attributes.")
    group_id: str = Field(default="", max_length=128, description="The message group; FIFO topics need one.")
    deduplication_id: str = Field(default="", max_length=128, description="FIFO topics; by default of the step.")


class SnsPublish:
    """The function behind `sns.publish`."""

    def __init__(self, aws: AwsAccess) -> None:
        self._aws = aws

    def __call__(self, args: SnsArgs, ctx: ActionContext) -> dict[str, JSON]:
        """`{message_id}`, with `sequence_number` on a FIFO topic. Raises ActionError."""
        params: dict[str, Any] = {
            "TopicArn": args.topic_arn,
            "Message": within("the message", message_text(args.message), MAX_SNS_BYTES),
            "MessageAttributes": _attributes(args.attributes, ctx),
            **_ordered(args.group_id, args.deduplication_id, ctx, fifo=args.topic_arn.endswith(".fifo")),
        }
        if args.subject:
            params["Subject"] = args.subject
        return _sent(self._aws.call(ctx, "sns", "publish", params, args.region or args.topic_arn.split(":")[3]))


def _attributes(given: Attributes, ctx: ActionContext) -> dict[str, Any]:
    """As the services have them, and the idempotency key while there is room: consumers can tell a repetition by it."""
    made = {name: _attribute(value) for name, value in given.items()}
    if ctx.idempotency_key and len(made) < MAX_ATTRIBUTES and MARK not in made:
        made[MARK] = _attribute(ctx.idempotency_key)
    return made


def _attribute(value: JSON) -> dict[str, str]:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return {"DataType": "Number" if number else "String", "StringValue": message_text(value)}


def _ordered(group: str, deduplication: str, ctx: ActionContext, *, fifo: bool) -> dict[str, str]:
    fields = {"MessageGroupId": group} if group else {}
    if fifo and (deduplication or ctx.idempotency_key):
        fields["MessageDeduplicationId"] = deduplication or short_key(ctx.idempotency_key)
    return fields


def _sent(answer: dict[str, Any]) -> dict[str, JSON]:
    output: dict[str, JSON] = {"message_id": answer["MessageId"]}
    return {**output, "sequence_number": answer["SequenceNumber"]} if "SequenceNumber" in answer else output


def _foreign_source(value: str) -> str:
    if value == SOURCE or value.startswith(("aws.", f"{SOURCE}.")):
        raise ValueError(f"{SOURCE} and aws. are the sources of the engine and of AWS; name your own")
    return value


class BusEntry(BaseModel):
    """One event for a bus."""

    source: Annotated[str, AfterValidator(_foreign_source)] = Field(min_length=1, max_length=256)
    detail_type: str = Field(min_length=1, max_length=128)
    detail: dict[str, JSON] = Field(default={}, description="The event itself.")
    bus: str = Field(default="", max_length=400, description="Name or ARN of the bus; by default the account's own.")
    resources: list[str] = Field(default=[], max_length=100)
    time: datetime | None = Field(default=None, description="When it happened; by default when it is sent.")


class EventsArgs(AwsArgs):
    """What `eventbridge.put_events` takes."""

    entries: list[BusEntry] = Field(min_length=1, max_length=10)


class PutEvents:
    """The function behind `eventbridge.put_events`."""

    def __init__(self, aws: AwsAccess) -> None:
        self._aws = aws

    def __call__(self, args: EventsArgs, ctx: ActionContext) -> dict[str, JSON]:
        """`{event_ids}`, in order. Entries that the bus did not take are sent again, no others. Raises ActionError."""
        entries = [_entry(place, one, ctx) for place, one in enumerate(args.entries)]
        size = sum(len(encode({**one, "Time": ""})) for one in entries)
        if size > MAX_EVENTS_BYTES:
            raise too_large("the request", size, MAX_EVENTS_BYTES)
        ids: dict[int, str] = {}
        failed: list[dict[str, Any]] = []
        for turn in range(_PUT_TRIES):
            left = [place for place in range(len(entries)) if place not in ids]
            params = {"Entries": [entries[place] for place in left]}
            results = self._aws.call(ctx, "events", "put_events", params, args.region)["Entries"]
            pairs = list(zip(left, results, strict=True))
            ids |= {place: result["EventId"] for place, result in pairs if result.get("EventId")}
            failed = [{"entry": place, **result} for place, result in pairs if not result.get("EventId")]
            if not failed or turn + 1 == _PUT_TRIES or ctx.wait(_PUT_PAUSE_S):
                break
        if failed:
            raise _not_taken(failed, ids)
        return {"event_ids": [ids[place] for place in range(len(entries))]}


def _entry(place: int, one: BusEntry, ctx: ActionContext) -> dict[str, Any]:
    for name in one.resources:
        if name.startswith(TENANT) and name != TENANT + ctx.tenant:
            message = f"entries[].resources: {TENANT}… names another tenant; leave it out or name the run's own"
            raise ActionError("ACTION_ARGS_INVALID", message, retryable=False)
    entry: dict[str, Any] = {
        "Source": one.source,
        "DetailType": one.detail_type,
        "Detail": encode(one.detail).decode(),
        "Resources": [*one.resources, *_origin(place, ctx)],
    }
    if one.bus:
        entry["EventBusName"] = one.bus
    return {**entry, "Time": one.time} if one.time is not None else entry


def _origin(place: int, ctx: ActionContext) -> list[str]:
    """What the installation behind the bus takes a repetition and a loop by; the detail is the author's alone."""
    marks: list[str] = []
    if ctx.idempotency_key:
        marks.append(f"{EVENT_RESOURCE}{short_key(ctx.idempotency_key, 32)}.{place}")
    if ctx.causation_depth is not None:
        marks.append(f"{DEPTH_RESOURCE}{ctx.causation_depth}")
    return marks


def _not_taken(failed: list[dict[str, Any]], ids: dict[int, str]) -> ActionError:
    first = failed[0]
    code = str(first.get("ErrorCode") or "Unknown")
    message = f"{len(failed)} of {len(failed) + len(ids)} events were not taken: {first.get('ErrorMessage', code)}"
    details = {"failed": [{"entry": one["entry"], "code": str(one.get("ErrorCode"))} for one in failed]}
    return service_error("events", code, message, retryable=code in _PASSING, details=details)


_PASSING: Final = frozenset({"InternalFailure", "InternalException", "ThrottlingException", "Unknown"})
