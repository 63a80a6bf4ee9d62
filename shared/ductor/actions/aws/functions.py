"""`lambda.invoke`: call a function and take its answer, or hand it an event. A function's error fails the attempt."""

from __future__ import annotations

import base64
from typing import Any, Final, Literal

from pydantic import Field

from ductor.actions.aws.access import LONG_READ_SECONDS, AwsAccess
from ductor.actions.aws.errors import service_error, translated
from ductor.actions.aws.values import MARK, AwsArgs, body_fields, within
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.actions.watching import watched
from ductor.model.causation import HEADER
from ductor.model.errors import clip
from ductor.model.json import JSON, decode, encode

MAX_BYTES: Final = {"RequestResponse": 6_291_456, "Event": 1_048_576}
"""Of the payload, by the way of invocation."""

TIMEOUT_MS: Final = LONG_READ_SECONDS * 1_000


class LambdaArgs(AwsArgs):
    """What `lambda.invoke` takes."""

    function: str = Field(
        min_length=1,
        max_length=256,
        pattern=r"^[A-Za-z0-9:_$-]+$",
        description="Name, partial ARN or ARN; a version or an alias may follow.",
    )
    payload: JSON = Field(default={}, description="The event: any JSON.")
    qualifier: str = Field(default="", max_length=128, description="A version or an alias.")
    invocation_type: Literal["RequestResponse", "Event"] = Field(
        default="RequestResponse", description="Event: the function runs later, and nobody hears how it went."
    )


class LambdaInvoke:
    """The function behind `lambda.invoke`."""

    def __init__(self, aws: AwsAccess) -> None:
        self._aws = aws

    def __call__(self, args: LambdaArgs, ctx: ActionContext) -> dict[str, JSON]:
        """`{status_code, payload, executed_version}`. Raises ActionError, whose code is a failed function's error type.

        The library repeats nothing: whether a function that gave no answer has run, only the step's author can judge.
        """
        payload = within("the payload", encode(args.payload).decode(), MAX_BYTES[args.invocation_type])
        params: dict[str, Any] = {
            "FunctionName": args.function,
            "InvocationType": args.invocation_type,
            "Payload": payload,
        }
        if args.qualifier:
            params["Qualifier"] = args.qualifier
        if args.invocation_type == "RequestResponse" and ctx.idempotency_key:
            params["ClientContext"] = _client_context(ctx)
        region = args.region or _region_of(args.function)
        self._aws.client(ctx, "lambda", region)
        answer, content = watched(
            lambda: self._invoked(ctx, params, region), ctx, TIMEOUT_MS, what="lambda", late=_late
        )
        if answer.get("FunctionError"):
            raise _failed(args.function, answer, content)
        output: dict[str, JSON] = {"status_code": int(answer["StatusCode"]), "payload": None}
        if content:
            fields = body_fields(content, "application/json")
            output |= {"payload": fields["body"]} if "body" in fields else {"payload_base64": fields["body_base64"]}
        if answer.get("ExecutedVersion"):
            output["executed_version"] = answer["ExecutedVersion"]
        return output

    def _invoked(self, ctx: ActionContext, params: dict[str, Any], region: str) -> tuple[dict[str, Any], bytes]:
        answer = self._aws.call(ctx, "lambda", "invoke", params, region)
        with translated("lambda", "invoke"):
            return answer, answer["Payload"].read() if "Payload" in answer else b""


def _client_context(ctx: ActionContext) -> str:
    """What the function finds in `context.client_context.custom`."""
    custom: dict[str, JSON] = {MARK: ctx.idempotency_key[:1_024]}
    if ctx.causation_depth is not None:
        custom[HEADER] = str(ctx.causation_depth)
    return base64.b64encode(encode({"custom": custom})).decode("ascii")


def _failed(function: str, answer: dict[str, Any], content: bytes) -> ActionError:
    """The function raised, ran out of time or memory, or could not start. Its error type is the code."""
    try:
        told = decode(content)
    except ValueError:
        told = content.decode("utf-8", "replace")
    said = told if isinstance(told, dict) else {"errorMessage": told}
    kind = said.get("errorType") if isinstance(said.get("errorType"), str) else ""
    message = said.get("errorMessage")
    text = message if isinstance(message, str) else encode(message).decode()
    details: dict[str, JSON] = {"function": function, "function_error": answer["FunctionError"]}
    if answer.get("ResponseMetadata", {}).get("RequestId"):
        details["request_id"] = answer["ResponseMetadata"]["RequestId"]
    if kind:
        return ActionError(kind, clip(text), retryable=True, details={"service": "Lambda", **details})
    return service_error("lambda", "Unknown", text or "the function failed", retryable=True, details=details)


def _late() -> ActionError:
    return ActionError("AWS_TIMEOUT", f"Lambda did not answer within {LONG_READ_SECONDS} seconds")


def _region_of(function: str) -> str:
    parts = function.split(":")
    return parts[3] if len(parts) > 6 and parts[0] == "arn" else ""
