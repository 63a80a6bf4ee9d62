"""All functions on moto, in this process: the test pumps the queues as Lambda's event source mappings would."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tests.contract.moto_backend import CLIENTS, CREDENTIALS, Emulator
from tests.functions.policy import template

from ductor.app.headers import HEAD, read_header, run_pk
from ductor.app.keys import Keys
from ductor.app.tenants import Tenants
from ductor.bootstrap import aws_functions
from ductor.bootstrap.aws_parts import AwsSettings, Parts
from ductor.lambdas.telemetry import Handler
from ductor.model.run import RunState
from ductor.testing.memory import SeededIds, VirtualClock

SECOND = 1_000
VISIBILITY_S = 60
CONTEXT = SimpleNamespace(get_remaining_time_in_millis=lambda: 60_000)


class Killed(BaseException):
    """The process of a function died: Lambda learns nothing, and its records come again later."""


class AwsWorld:
    """One deployed stack with a first tenant and a key."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.emulator = Emulator(self.clock)
        self._ids = 0
        first = Tenants(self.emulator.table, self.clock, SeededIds(99, self.clock)).first_start(
            Keys(self.emulator.table, self.clock, SeededIds(98, self.clock))
        )
        assert first.key is not None
        self.tenant, self.key = first.tenant, first.key.plaintext
        self._make_bus()
        self.api = aws_functions.api(self.parts())
        self.authorizer = aws_functions.authorizer(self.parts())
        self.coordinator = aws_functions.coordinator(self.parts())
        self.step = aws_functions.step(self.parts())
        self.timer = aws_functions.timer(self.parts())
        self.sweeper = aws_functions.sweeper(self.parts())
        self.event = aws_functions.event(self.parts())
        self.schedule = aws_functions.schedule(self.parts())

    def close(self) -> None:
        self.emulator.close()
        _forget_logger()

    @property
    def environment(self) -> dict[str, str]:
        """What the template would set."""
        return {
            **CREDENTIALS,
            "DUCTOR_TABLE": "ductor",
            "DUCTOR_BUCKET": "payloads",
            "DUCTOR_INTENTS_URL": self._url("intents.fifo"),
            "DUCTOR_INTENTS_DEAD_URL": self._url("dead-intents.fifo"),
            "DUCTOR_STEPS_URL": self._url("steps"),
            "DUCTOR_STEPS_DEAD_URL": self._url("dead-steps"),
            "DUCTOR_BUS": "ductor",
            "DUCTOR_AWS_ROLE": "arn:aws:iam::123456789012:role/actions",
            "DUCTOR_EVENT_SOURCES": f"acme.orders={self.tenant},*=*",
            "DUCTOR_EVENTS_DEAD_URL": self._url("dead-events"),
            "DUCTOR_TIMERS_URL": self._url("timers"),
            "DUCTOR_TIMERS_ARN": self.emulator.target.queue_arn,
            "DUCTOR_SCHEDULE_GROUP": self.emulator.target.group,
            "DUCTOR_SCHEDULE_ROLE_ARN": self.emulator.target.role_arn,
            "DUCTOR_CRON_URL": self._url("schedule"),
            "DUCTOR_CRON_ARN": self.emulator.cron_target.queue_arn,
            "DUCTOR_CRON_GROUP": self.emulator.cron_target.group,
            "DUCTOR_CRON_ROLE_ARN": self.emulator.cron_target.role_arn,
        }

    def parts(self) -> Parts:
        """The parts of a process of its own."""
        self._ids += 1
        made = Parts(AwsSettings(self.environment), self.clock, SeededIds(self._ids, self.clock))
        made.clients = CLIENTS
        return made

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """A request through the authorizer and the API: status and parsed body."""
        path, _, query = path.partition("?")
        event: dict[str, Any] = {
            "version": "2.0",
            "routeKey": "ANY /{proxy+}",
            "rawPath": path,
            "rawQueryString": query,
            "headers": {"authorization": f"Bearer {self.key}", "x-tenant-id": self.tenant},
            "requestContext": {"http": {"method": method, "path": path}, "stage": "$default", "requestId": "gw-1"},
            "body": "" if body is None else json.dumps(body),
            "isBase64Encoded": False,
        }
        allowed = self.authorizer(event, CONTEXT)
        assert allowed["isAuthorized"] is True
        event["requestContext"]["authorizer"] = {"lambda": allowed["context"]}
        answer = self.api(event, CONTEXT)
        return answer["statusCode"], json.loads(answer["body"])

    def ok(self, method: str, path: str, body: Any = None) -> Any:
        """The `data` of a request that succeeds, or its whole body when that has none."""
        status, answer = self.request(method, path, body)
        assert status < 300, answer
        return answer.get("data", answer)

    def publish(self, document: dict[str, Any]) -> str:
        draft = self.ok("POST", "/api/workflow-definitions", document)
        body = {"expected_draft_revision": draft["draft_revision"]}
        published = self.ok("POST", f"/api/workflow-definitions/{draft['id']}/publish", body)
        return str(published["published"]["id"])

    def trigger(self, definition_id: str, **body: Any) -> str:
        path = f"/api/v2/workflow-definitions/{definition_id}:trigger"
        return str(self.ok("POST", path, {"input": {}, **body})["run_id"])

    def run(self, run_id: str) -> Any:
        return self.ok("GET", f"/api/workflows/runs/{run_id}")

    def status(self, run_id: str) -> str:
        return str(self.run(run_id)["summary"]["status"])

    def control(self, run_id: str, verb: str, request_id: str) -> None:
        self.ok("POST", f"/api/v2/workflow-runs/{run_id}:{verb}", {"request_id": request_id})

    def header(self, run_id: str) -> RunState:
        """The run's state as stored."""
        item = self.emulator.table.get(run_pk(run_id), HEAD)
        assert item is not None
        return read_header(item)

    def receive(self, queue: str, limit: int = 10) -> dict[str, Any] | None:
        """The next batch of a queue as the event that Lambda would hand over, None when nothing is visible."""
        answer = CLIENTS("sqs").receive_message(
            QueueUrl=self._url(queue),
            MaxNumberOfMessages=limit,
            VisibilityTimeout=VISIBILITY_S,
            MessageSystemAttributeNames=["All"],
        )
        messages = answer.get("Messages")
        return {"Records": [_record(message) for message in messages]} if messages else None

    def deliver(self, queue: str, handler: Handler, event: dict[str, Any]) -> list[str]:
        """One invocation. What it did not return as failed is removed; the ids that failed."""
        try:
            answer = handler(event, CONTEXT)
        except Killed:
            return [record["messageId"] for record in event["Records"]]
        failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        for record in event["Records"]:
            if record["messageId"] not in failed:
                CLIENTS("sqs").delete_message(QueueUrl=self._url(queue), ReceiptHandle=record["receiptHandle"])
        return sorted(failed)

    def pump(self, *queues: str) -> None:
        """Deliver what is visible in these queues, or in all, until nothing is."""
        handlers: dict[str, Callable[..., Any]] = {
            "intents.fifo": self.coordinator,
            "steps": self.step,
            "timers": self.timer,
            "schedule": self.schedule,
        }
        busy = True
        while busy:
            busy = False
            for queue in queues or tuple(handlers):
                while (event := self.receive(queue)) is not None:
                    self.deliver(queue, handlers[queue], event)
                    busy = True

    def _make_bus(self) -> None:
        """A bus with two rules and a queue behind each: ours, which `deliver_events` pumps, and one of somebody who

        listens to all of it, for `told`.
        """
        self._queue_arn("dead-events")
        CLIENTS("events").create_event_bus(Name="ductor")
        for name, pattern in (("bus", _pattern()), ("listener", {"account": _pattern()["account"]})):
            target = {"Id": name, "Arn": self._queue_arn(name)}
            CLIENTS("events").put_rule(EventBusName="ductor", Name=name, EventPattern=json.dumps(pattern))
            CLIENTS("events").put_targets(EventBusName="ductor", Rule=name, Targets=[target])

    def _queue_arn(self, name: str) -> str:
        url = CLIENTS("sqs").create_queue(QueueName=name, Attributes={"MaximumMessageSize": "1048576"})["QueueUrl"]
        answer = CLIENTS("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return str(answer["Attributes"]["QueueArn"])

    def put_event(self, **fields: Any) -> None:
        """Put an event on the bus, as a producer of the account does."""
        entry = {"EventBusName": "ductor", "Source": "acme.orders", "DetailType": "order.paid", **fields}
        answer = CLIENTS("events").put_events(Entries=[{**entry, "Detail": json.dumps(entry.get("Detail", {}))}])
        assert answer["FailedEntryCount"] == 0, answer

    def told(self) -> list[dict[str, Any]]:
        """Every event that was put on the bus, once."""
        return self._taken("listener")

    def deliver_events(self) -> list[dict[str, Any]]:
        """Hand what the rule lets through to the function, one by one; the answers."""
        return [self.event(event, CONTEXT) for event in self._taken("bus")]

    def _taken(self, queue: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while (batch := self.receive(queue)) is not None:
            for record in batch["Records"]:
                found.append(json.loads(record["body"]))
                CLIENTS("sqs").delete_message(QueueUrl=self._url(queue), ReceiptHandle=record["receiptHandle"])
        return found

    def send_intent(self, body: str, group: str, dedup_id: str) -> None:
        CLIENTS("sqs").send_message(
            QueueUrl=self._url("intents.fifo"),
            MessageBody=body,
            MessageGroupId=group,
            MessageDeduplicationId=dedup_id,
        )

    def call_schedule(self, slug: str, at: str) -> None:
        """Put a call for a schedule into its queue, as EventBridge Scheduler does at the time `at`, and handle it."""
        call = {"tenant": self.tenant, "family_slug": slug, "environment": "default", "at": at}
        CLIENTS("sqs").send_message(QueueUrl=self._url("schedule"), MessageBody=json.dumps(call))
        self.pump("schedule")

    def _url(self, name: str) -> str:
        return str(CLIENTS("sqs").get_queue_url(QueueName=name)["QueueUrl"])


def _pattern() -> dict[str, Any]:
    """What the rule of the template lets through to the function."""
    pattern: dict[str, Any] = template()["Resources"]["BusRule"]["Properties"]["EventPattern"]
    return {**pattern, "account": ["123456789012"]}


def _forget_logger() -> None:
    """Powertools configures the logger of a process once; here the next test is another process."""
    logger = logging.getLogger("ductor")
    for handler in tuple(logger.handlers):
        logger.removeHandler(handler)
    for mark in ("init", "powertools_handler"):
        logger.__dict__.pop(mark, None)
    logger.setLevel(logging.NOTSET)


def _record(message: dict[str, Any]) -> dict[str, Any]:
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": {},
        "eventSource": "aws:sqs",
    }
