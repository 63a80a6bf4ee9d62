"""The messages in an event of Lambda's SQS event source mapping."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ductor.adapters.aws import texts
from ductor.ports import Message


def messages_of(event: Mapping[str, Any]) -> tuple[Message, ...]:
    """The records as messages, in the order received."""
    return tuple(_message(record) for record in event.get("Records", ()))


def _message(record: Mapping[str, Any]) -> Message:
    attributes = record["attributes"]
    return Message(
        id=record["messageId"],
        body=texts.body_bytes(record["body"]),
        group=attributes.get("MessageGroupId", ""),
        receipt=record["receiptHandle"],
        receives=int(attributes["ApproximateReceiveCount"]),
        sent_at=int(attributes["SentTimestamp"]),
    )
