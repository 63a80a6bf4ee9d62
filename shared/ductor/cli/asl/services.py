"""The services that states call, as actions: which arg each parameter becomes, and where the result's fields are."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ductor.cli.asl.report import Report
from ductor.cli.asl.values import step_output

Document = dict[str, Any]
Convert = Callable[[str, str, Any, Report], Document]
"""(state, parameter, its value, report) to the args that it becomes."""

_NOT_CARRIED: Final = "has no counterpart in the action's args; see to it by hand"


@dataclass(frozen=True)
class Called:
    """A call of an action. Its result is the part of the output at `path`, or an object of `fields` below it.

    `fields` are CEL by the name that a state machine knows them by, with `{}` for the output.
    """

    action: str
    args: Document
    path: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)

    def parts(self, ref: str) -> dict[str, str]:
        """CEL for each field of the result."""
        return {name: cel.replace("{}", step_output(ref)) for name, cel in self.fields.items()}

    def result(self, ref: str) -> str:
        """CEL for the whole result."""
        if not self.fields:
            return step_output(ref, *self.path)
        return f"{{{', '.join(f'{json.dumps(name)}: {cel}' for name, cel in self.parts(ref).items())}}}"


@dataclass(frozen=True)
class Service:
    """How one service is called: parameters as args, by name or by a conversion, and the fields of its result."""

    action: str
    args: Mapping[str, str | Convert]
    fields: Mapping[str, str] = field(default_factory=dict)
    fixed: Document = field(default_factory=dict)


def called(name: str, state: str, given: Any, report: Report) -> Called | None:
    """The call for a service integration (`sqs:sendMessage`, `aws-sdk:sqs:sendMessage`); None for an unknown one."""
    service = _SERVICES.get(_SDK_NAMES.get(name, name).removeprefix("aws-sdk:"))
    if service is None:
        return None
    args: Document = dict(service.fixed)
    if not isinstance(given, dict):
        report.manual(state, "Parameters", f"the args of {service.action} are computed as a whole; write them out")
        given = {}
    for parameter, value in given.items():
        target = service.args.get(parameter)
        if target is None:
            report.manual(state, f"Parameters.{parameter}", _NOT_CARRIED)
        elif isinstance(target, str):
            args[target] = value
        else:
            args |= target(state, parameter, value, report)
    return Called(service.action, args, fields=service.fields)


def _attributes(state: str, parameter: str, value: Any, report: Report) -> Document:
    """Message attributes without their types, which follow from the values."""
    found: Document = {}
    for name, one in value.items() if isinstance(value, dict) else ():
        if isinstance(one, dict) and one.get("DataType") in ("String", "Number") and "StringValue" in one:
            found[name] = _number(one["StringValue"]) if one["DataType"] == "Number" else one["StringValue"]
        else:
            report.manual(state, f"Parameters.{parameter}.{name}", "only texts and numbers are carried over")
    return {"attributes": found}


def _number(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _returned(state: str, parameter: str, value: Any, report: Report) -> Document:
    if value in ("ALL_NEW", "NONE"):
        return {}
    report.manual(state, f"Parameters.{parameter}", "only ALL_NEW and NONE are carried over")
    return {}


def _entries(state: str, parameter: str, value: Any, report: Report) -> Document:
    if not isinstance(value, list):
        report.manual(state, f"Parameters.{parameter}", "a computed list is not carried over; write the entries out")
        return {"entries": value}
    return {"entries": [_entry(state, one, report) for one in value]}


_ENTRY: Final = {
    "Source": "source",
    "DetailType": "detail_type",
    "Detail": "detail",
    "EventBusName": "bus",
    "Resources": "resources",
    "Time": "time",
}


def _entry(state: str, entry: Any, report: Report) -> Document:
    made: Document = {}
    for parameter, value in entry.items() if isinstance(entry, dict) else ():
        if parameter not in _ENTRY:
            report.manual(state, f"Parameters.Entries.{parameter}", _NOT_CARRIED)
            continue
        made[_ENTRY[parameter]] = _detail(state, value, report) if parameter == "Detail" else value
    return made


def _detail(state: str, value: Any, report: Report) -> Any:
    """A detail is an object here; there it may be its text."""
    if not isinstance(value, str) or "${{" in value:
        return value
    try:
        return json.loads(value)
    except ValueError:
        report.manual(state, "Parameters.Entries.Detail", "is no JSON; write it as an object")
        return value


def _body(state: str, parameter: str, value: Any, report: Report) -> Document:
    del state, parameter, report
    return {"body": value} if isinstance(value, str) and "${{" not in value else {"json": value}


_SDK_NAMES: Final = {
    "aws-sdk:eventbridge:putEvents": "events:putEvents",
    "aws-sdk:sfn:startExecution": "states:startExecution",
}
_ORDERED: Final = {"MessageGroupId": "group_id", "MessageDeduplicationId": "deduplication_id"}
_TABLE: Final = {"TableName": "table", "Key": "key"}
_WRITE: Final = {
    "ConditionExpression": "condition",
    "ExpressionAttributeNames": "names",
    "ExpressionAttributeValues": "values",
}
_MESSAGE: Final = {"MessageId": "{}.message_id"}
_OBJECT: Final = {"Bucket": "bucket", "Key": "key"}

_SERVICES: Final = {
    "lambda:invoke": Service(
        "lambda.invoke",
        {
            "FunctionName": "function",
            "Payload": "payload",
            "Qualifier": "qualifier",
            "InvocationType": "invocation_type",
        },
        {"Payload": "{}.payload", "StatusCode": "{}.status_code"},
    ),
    "sqs:sendMessage": Service(
        "sqs.send",
        {
            "QueueUrl": "queue_url",
            "MessageBody": "body",
            "DelaySeconds": "delay_seconds",
            "MessageAttributes": _attributes,
            **_ORDERED,
        },
        _MESSAGE,
    ),
    "sns:publish": Service(
        "sns.publish",
        {
            "TopicArn": "topic_arn",
            "Message": "message",
            "Subject": "subject",
            "MessageAttributes": _attributes,
            **_ORDERED,
        },
        _MESSAGE,
    ),
    "dynamodb:getItem": Service(
        "dynamodb.get_item",
        {**_TABLE, "ConsistentRead": "consistent"},
        {"Item": "{}.item"},
        {"typed": True, "consistent": False},
    ),
    "dynamodb:putItem": Service("dynamodb.put_item", {**_TABLE, "Item": "item", **_WRITE}, fixed={"typed": True}),
    "dynamodb:updateItem": Service(
        "dynamodb.update_item",
        {**_TABLE, "UpdateExpression": "update", "ReturnValues": _returned, **_WRITE},
        {"Attributes": "{}.item"},
        {"typed": True, "return_item": True},
    ),
    "events:putEvents": Service(
        "eventbridge.put_events",
        {"Entries": _entries},
        {"Entries": '{}.event_ids.map(id, {"EventId": id})', "FailedEntryCount": "0"},
    ),
    "states:startExecution": Service(
        "stepfunctions.start_execution",
        {"StateMachineArn": "state_machine_arn", "Input": "input", "Name": "name"},
        {"ExecutionArn": "{}.execution_arn"},
    ),
    "s3:getObject": Service(
        "s3.get_object", {**_OBJECT, "VersionId": "version_id"}, {"Body": "{}.body"}, {"form": "text"}
    ),
    "s3:putObject": Service(
        "s3.put_object",
        {**_OBJECT, "Body": _body, "ContentType": "content_type", "Metadata": "metadata"},
        {"ETag": "{}.etag"},
    ),
}
