"""What the roles in template.yaml allow, and what the functions really ask AWS for, both as (action, resource) pairs.

A resource is named as the template names it: `Table`, `Table/index/by-i1`, `Payloads/payloads/*`, `IntentsQueue`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import yaml
from botocore.client import BaseClient

from ductor.lambdas.telemetry import Handler

Pair = tuple[str, str]

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
QUEUES = {
    "intents.fifo": "IntentsQueue",
    "dead-intents.fifo": "IntentsDeadLetters",
    "steps": "StepsQueue",
    "dead-steps": "StepsDeadLetters",
    "timers": "TimersQueue",
    "schedule": "ScheduleQueue",
    "dead-events": "EventsDeadLetters",
}
SINGLE = {
    "PutEvents": ("events:PutEvents", "Bus"),
    "AssumeRole": ("sts:AssumeRole", "ActionsRole"),
    "Converse": ("bedrock:InvokeModel", "BedrockModels"),
    "GetMetricStatistics": ("cloudwatch:GetMetricStatistics", "*"),
}
"""Operations of which there is one resource only."""

LOGGING = {("logs:CreateLogStream", "Logs"), ("logs:PutLogEvents", "Logs")}
TRACING = {("xray:PutTraceSegments", "*"), ("xray:PutTelemetryRecords", "*")}
OF_EVERY_FUNCTION = LOGGING | TRACING
"""What Lambda itself does in the function's name."""

AS_ACTIONS_ROLE = "sts-assume-role"
"""How the clients of actions come by their credentials: what they ask for is no function's own."""

RECEIVING = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
"""What Lambda asks for to feed a function from a queue."""


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's functions."""


def _function(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return {suffix: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {suffix: loader.construct_sequence(node, deep=True)}
    if isinstance(node, yaml.MappingNode):
        return {suffix: loader.construct_mapping(node, deep=True)}
    raise TypeError(f"a template holds no {type(node).__name__}")


_Loader.add_multi_constructor("!", _function)


def template() -> dict[str, Any]:
    """The template, functions as {name: argument}."""
    loaded: dict[str, Any] = yaml.load(TEMPLATE.read_text(), _Loader)  # noqa: S506 - a SafeLoader
    return loaded


def roles(function: str) -> dict[str, Any]:
    """A copy of as much of the template as says what a function may do."""
    resources = template()["Resources"].items()
    return {"Resources": {k: v for k, v in resources if k == f"{function}Role" or v["Type"] == "AWS::IAM::Policy"}}


def statements(function: str, document: dict[str, Any]) -> list[dict[str, Any]]:
    """What the role of a function says, with every policy that a parameter adds to it."""
    resources = document["Resources"]
    role = resources[f"{function}Role"]["Properties"]
    added = [one["Properties"] for one in resources.values() if one["Type"] == "AWS::IAM::Policy"]
    policies = (*role["Policies"], *(one for one in added if {"Ref": f"{function}Role"} in one["Roles"]))
    return [statement for policy in policies for statement in policy["PolicyDocument"]["Statement"]]


def allowed(function: str, document: dict[str, Any]) -> set[Pair]:
    """The pairs that the role of a function allows."""
    pairs: set[Pair] = set()
    for statement in statements(function, document):
        assert statement["Effect"] == "Allow"
        for action in listed(statement["Action"]):
            assert "*" not in action
            pairs |= {(action, _resource(one, function)) for one in listed(statement["Resource"])}
    return pairs


def faults(function: str, document: dict[str, Any], does: set[Pair]) -> dict[str, list[Pair]]:
    """What the role lacks of what the function does, and what it allows beyond that."""
    may, does = allowed(function, document), does | OF_EVERY_FUNCTION
    return {"missing": sorted(does - may), "superfluous": sorted(may - does)}


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _resource(value: Any, function: str) -> str:
    if value == "*":
        return "*"
    if "Ref" in value:
        return str(value["Ref"])
    if "GetAtt" in value:
        return str(value["GetAtt"]).removesuffix(".Arn").removeprefix(function if "Logs" in value["GetAtt"] else "")
    text = str(value["Sub"])
    if text.startswith("arn:"):
        return text.replace("AWS::", "").split(":", 5)[5]
    return re.sub(r"\$\{(\w+)\.Arn\}", r"\1", text)


class Asked:
    """Collects what each function asks for; `wrap` names the function while its handler runs."""

    def __init__(self) -> None:
        self.pairs: dict[str, set[Pair]] = {}
        self._now: str | None = None

    def wrap(self, function: str, handler: Handler) -> Handler:
        self.pairs.setdefault(function, set())

        def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
            self._now = function
            try:
                return handler(event, context)
            finally:
                self._now = None

        return handle

    @contextmanager
    def watching(self) -> Iterator[None]:
        call = BaseClient._make_api_call

        def watched(client: Any, operation: str, arguments: Any) -> Any:
            if self._now is not None and client._request_signer._credentials.method != AS_ACTIONS_ROLE:
                self.pairs[self._now] |= set(_pairs(operation, arguments))
            return call(client, operation, arguments)

        with mock.patch.object(BaseClient, "_make_api_call", watched):
            yield


def _pairs(operation: str, arguments: dict[str, Any]) -> Iterator[Pair]:
    """The permissions that IAM asks for, for one request."""
    if operation == "TransactWriteItems":
        parts = {"Put": "PutItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}
        yield from ((f"dynamodb:{parts[kind]}", "Table") for item in arguments["TransactItems"] for kind in item)
    elif operation in ("GetItem", "BatchGetItem", "PutItem", "DeleteItem", "BatchWriteItem", "Query"):
        index = arguments.get("IndexName")
        yield (f"dynamodb:{operation}", f"Table/index/{index}" if index else "Table")
    elif operation == "ListObjectsV2":
        assert arguments["Prefix"].startswith("payloads/")
        yield ("s3:ListBucket", "Payloads")
    elif operation in ("PutObject", "GetObject", "DeleteObject"):
        assert arguments["Key"].startswith("payloads/")
        yield (f"s3:{operation}", "Payloads/payloads/*")
        if operation == "GetObject":
            yield ("s3:ListBucket", "Payloads")  # else an absent object is AccessDenied
    elif "QueueUrl" in arguments:
        queue = QUEUES[arguments["QueueUrl"].rsplit("/", 1)[1]]
        yield (f"sqs:{operation.removesuffix('Batch')}", queue)
    elif operation in ("CreateSchedule", "UpdateSchedule", "DeleteSchedule"):
        group, role = (
            ("CronSchedules", "CronRole") if arguments["GroupName"] == "cron" else ("Schedules", "SchedulesRole")
        )
        yield (f"scheduler:{operation}", f"schedule/${{{group}}}/*")
        if operation != "DeleteSchedule":
            yield ("iam:PassRole", role)
    elif operation in SINGLE:
        yield SINGLE[operation]
    elif operation in ("PutParameter", "GetParameter", "DeleteParameter"):
        yield (f"ssm:{operation}", "parameter/ductor/${Table}/*")
    else:
        raise AssertionError(f"nobody says which permission {operation} takes")
