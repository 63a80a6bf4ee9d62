"""What the services refuse, for every action: the service's own code, and whether another try makes sense."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import pytest
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError
from tests.unit.aws.cloud import ACCOUNT, REGION, Cloud

from ductor.actions.aws.access import AwsSettings

Answer = tuple[int, dict[str, str], bytes]

TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:orders"
MACHINE = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:work"
QUEUE = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/orders"

CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "lambda.invoke": ("lambda", {"function": "work"}),
    "sqs.send": ("sqs", {"queue_url": QUEUE, "body": "hi"}),
    "sns.publish": ("sns", {"topic_arn": TOPIC, "message": "hi"}),
    "eventbridge.put_events": ("events", {"entries": [{"source": "acme", "detail_type": "order.paid"}]}),
    "s3.get_object": ("s3", {"bucket": "docs", "key": "a"}),
    "s3.put_object": ("s3", {"bucket": "docs", "key": "a", "body": "hi"}),
    "dynamodb.get_item": ("dynamodb", {"table": "orders", "key": {"id": "1"}}),
    "dynamodb.put_item": ("dynamodb", {"table": "orders", "item": {"id": "1"}}),
    "dynamodb.update_item": ("dynamodb", {"table": "orders", "key": {"id": "1"}, "update": "SET a = id"}),
    "email.send": ("sesv2", {"from": "a@acme.test", "to": ["b@acme.test"], "subject": "hi", "text": "hi"}),
    "stepfunctions.start_execution": ("stepfunctions", {"state_machine_arn": MACHINE}),
}
NAMES = {
    "lambda": "Lambda",
    "sqs": "SQS",
    "sns": "SNS",
    "events": "EventBridge",
    "s3": "S3",
    "dynamodb": "DynamoDB",
    "sesv2": "SES",
    "stepfunctions": "StepFunctions",
}


def told(service: str, status: int, code: str) -> Answer:
    """An error as the service words it."""
    if service in ("s3", "sns"):
        inner = f"<Error><Code>{code}</Code><Message>because</Message></Error>"
        text = inner if service == "s3" else f"<ErrorResponse>{inner}<RequestId>r</RequestId></ErrorResponse>"
        return status, {"content-type": "text/xml"}, text.encode()
    body = json.dumps({"__type": f"com.amazonaws#{code}", "message": "because", "Message": "because"})
    return status, {"x-amzn-errortype": code, "x-amzn-requestid": "r"}, body.encode()


@pytest.mark.parametrize("action", CALLS)
@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (400, "ThrottlingException", True),
        (503, "ServiceUnavailable", True),
        (403, "AccessDeniedException", False),
        (400, "ValidationException", False),
    ],
)
def test_the_code_of_the_service_is_kept(
    impatient: Cloud, action: str, status: int, code: str, retryable: bool
) -> None:
    service, args = CALLS[action]
    with impatient.answering(service, told(service, status, code)):
        fault = impatient.fails(action, args)
    assert (fault.code, fault.retryable) == (f"{NAMES[service]}.{code}", retryable)
    assert (fault.details["status"], "because" in fault.message) == (status, True)
    assert ("policy" in fault.message) is (status == 403)


@pytest.mark.parametrize("action", CALLS)
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ReadTimeoutError(endpoint_url="https://aws"), "AWS_TIMEOUT"),
        (EndpointConnectionError(endpoint_url="https://aws"), "AWS_UNREACHABLE"),
    ],
)
def test_no_answer_may_be_tried_again(impatient: Cloud, action: str, error: Exception, code: str) -> None:
    service, args = CALLS[action]
    impatient.client(service)
    with (
        mock.patch("moto.core.botocore_stubber.BotocoreStubber.__call__", return_value=None),
        mock.patch("botocore.httpsession.URLLib3Session.send", side_effect=error),
    ):
        fault = impatient.fails(action, args)
    assert (fault.code, fault.retryable) == (code, True)


def test_a_missing_region_and_missing_credentials_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    cloud = Cloud()
    faults = {action: cloud.fails(action, args) for action, (_, args) in CALLS.items()}
    assert {fault.code for fault in faults.values()} == {"AWS_NOT_CONFIGURED"}
    assert not any(fault.retryable for fault in faults.values())
    assert all("AWS_ACCESS_KEY_ID" in fault.message for fault in faults.values())
    assert "AWS_REGION" in cloud.fails("lambda.invoke", {"function": "work", "region": ""}).message


def test_switched_off_they_say_so() -> None:
    cloud = Cloud(AwsSettings(enabled=False))
    faults = [cloud.fails(action, args) for action, (_, args) in CALLS.items()]
    assert {(fault.code, fault.retryable) for fault in faults} == {("AWS_NOT_CONFIGURED", False)}
    assert all("ActionPolicies" in fault.message for fault in faults)


def test_what_may_pass_is_sent_again_by_the_library(cloud: Cloud) -> None:
    queue = cloud.client("sqs").create_queue(QueueName="orders")["QueueUrl"]
    with (
        mock.patch("botocore.endpoint.time.sleep"),
        cloud.answering("sqs", told("sqs", 500, "InternalFailure"), None) as heard,
    ):
        assert cloud.act("sqs.send", {"queue_url": queue, "body": "hi"})["message_id"]
    assert len(heard) == 2
