"""Lambda functions called by a step: what they answer, how they fail, and what they can tell a repetition by."""

from __future__ import annotations

import base64
import io
import json
import threading
import zipfile
from typing import Any

import botocore.session
import pytest
from tests.unit.aws.cloud import KEY, REGION, Cloud

from ductor.actions.errors import AttemptCancelledError

OK: dict[str, str] = {"x-amzn-requestid": "r-1", "x-amz-executed-version": "7"}
FAILED = {**OK, "x-amz-function-error": "Unhandled"}


def make(cloud: Cloud) -> None:
    """A function `work` that answers what it is given."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("handler.py", "def handler(event, context): return event")
    cloud.client("lambda")
    role = (
        botocore.session.get_session()
        .create_client("iam")
        .create_role(RoleName="r", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    )
    code = {"ZipFile": content.getvalue()}
    cloud.client("lambda").create_function(
        FunctionName="work", Runtime="python3.13", Role=role, Handler="handler.handler", Code=code
    )


def test_the_answer_is_the_output(cloud: Cloud) -> None:
    make(cloud)
    done = cloud.act("lambda.invoke", {"function": "work", "payload": {"n": 1, "price": 0.1}})
    assert (done["payload"], done["status_code"]) == ({"n": 1, "price": 0.1}, 200)


def test_an_unknown_function_is_refused(cloud: Cloud) -> None:
    unknown = (404, {"x-amzn-errortype": "ResourceNotFoundException"}, b'{"Message": "Function not found"}')
    with cloud.answering("lambda", unknown):
        fault = cloud.fails("lambda.invoke", {"function": "nobody"})
    assert (fault.code, fault.retryable) == ("Lambda.ResourceNotFoundException", False)
    assert fault.details["status"] == 404


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({"errorType": "OutOfStock", "errorMessage": "none left", "stackTrace": ["line 1"]}, "OutOfStock", "none left"),
        ({"errorMessage": "Task timed out after 3.00 seconds"}, "Lambda.Unknown", "Task timed out after 3.00 seconds"),
        ("plain", "Lambda.Unknown", "plain"),
        ({"errorType": 5, "errorMessage": {"a": 1}}, "Lambda.Unknown", '{"a":1}'),
    ],
)
def test_a_function_that_failed_fails_the_attempt(cloud: Cloud, body: Any, code: str, message: str) -> None:
    with cloud.answering("lambda", (200, FAILED, json.dumps(body).encode())):
        fault = cloud.fails("lambda.invoke", {"function": "work"})
    assert (fault.code, fault.message, fault.retryable) == (code, message, True)
    assert fault.details["function_error"] == "Unhandled"
    assert fault.details["request_id"] == "r-1"


def test_an_answer_that_is_no_json_is_text_and_bytes_are_base64(cloud: Cloud) -> None:
    with cloud.answering("lambda", (200, OK, b"hello"), (200, OK, b"\xff\xfe"), (200, OK, b"")):
        assert cloud.act("lambda.invoke", {"function": "work"})["payload"] == "hello"
        done = cloud.act("lambda.invoke", {"function": "work"})
        assert base64.b64decode(done["payload_base64"]) == b"\xff\xfe"
        assert cloud.act("lambda.invoke", {"function": "work"})["payload"] is None


def test_the_function_is_told_the_key_and_the_depth(cloud: Cloud) -> None:
    with cloud.answering("lambda", (200, OK, b"null")) as heard:
        cloud.act("lambda.invoke", {"function": "work", "qualifier": "live"}, causation_depth=3)
    custom = json.loads(base64.b64decode(heard[0].headers["X-Amz-Client-Context"]))["custom"]
    assert custom == {"ductor-idempotency-key": KEY, "ductor-causation-depth": "3"}
    assert heard[0].url.endswith("Qualifier=live")


def test_an_event_is_handed_over_without_an_answer(cloud: Cloud) -> None:
    with cloud.answering("lambda", (202, {"x-amzn-requestid": "r-1"}, b"")) as heard:
        done = cloud.act("lambda.invoke", {"function": "work", "invocation_type": "Event"})
    assert done == {"status_code": 202, "payload": None}
    assert "X-Amz-Client-Context" not in heard[0].headers


def test_a_call_is_sent_once_whatever_becomes_of_it(cloud: Cloud) -> None:
    throttled = (429, {"x-amzn-errortype": "TooManyRequestsException"}, b'{"message": "slow down"}')
    with cloud.answering("lambda", throttled) as heard:
        fault = cloud.fails("lambda.invoke", {"function": "work"})
    assert (fault.code, fault.retryable, len(heard)) == ("Lambda.TooManyRequestsException", True, 1)


def test_a_payload_over_the_limit_is_refused_before_it_is_sent(cloud: Cloud) -> None:
    args = {"function": "work", "payload": "x" * 1_100_000, "invocation_type": "Event"}
    with cloud.answering("lambda", (202, {}, b"")) as heard:
        fault = cloud.fails("lambda.invoke", args)
    assert (fault.code, fault.retryable, heard) == ("PAYLOAD_TOO_LARGE", False, [])


def test_the_region_of_an_arn_is_called() -> None:
    cloud = Cloud()
    arn = "arn:aws:lambda:eu-west-1:123456789012:function:work"
    client = cloud.access.client
    called: list[str] = []

    def noted(ctx: Any, service: str, region: str = "") -> Any:
        called.append(region)
        return client(ctx, service, region or REGION)

    cloud.access.client = noted  # type: ignore[method-assign]
    cloud.fails("lambda.invoke", {"function": arn, "region": ""})
    assert set(called) == {"eu-west-1"}


def test_a_cancelled_attempt_does_not_wait_for_the_answer(cloud: Cloud) -> None:
    stop, gate = threading.Event(), threading.Event()
    stop.set()
    client = cloud.client("lambda")

    def slow(**_: Any) -> None:
        gate.wait(30)

    client.meta.events.register_first("before-send.lambda.Invoke", slow)
    try:
        with pytest.raises(AttemptCancelledError):
            cloud.act("lambda.invoke", {"function": "work"}, stop=stop)
    finally:
        gate.set()
        client.meta.events.unregister("before-send.lambda.Invoke", slow)
