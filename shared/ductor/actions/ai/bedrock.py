"""Amazon Bedrock through its Converse API, with the credentials of the process. Loads the vendor's library when used.

The vendor's own retries are off: a call that may have been billed is repeated by the step's retry policy only.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from ductor.actions.ai.model import (
    AiCode,
    Message,
    ModelAnswer,
    ModelRequest,
    Stop,
    ToolCall,
    ToolSpec,
    ai_error,
)
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.actions.exact import NotExactError, exact
from ductor.actions.watching import watched
from ductor.model.errors import clip
from ductor.model.json import JSON

SERVICE: Final = "bedrock-runtime"
CONNECT_SECONDS: Final = 5
MAX_READ_SECONDS: Final = 600
MAX_MESSAGE: Final = 1_000

_STOPS: Final = {
    "end_turn": Stop.END_TURN,
    "tool_use": Stop.TOOL_USE,
    "max_tokens": Stop.MAX_TOKENS,
    "stop_sequence": Stop.STOP_SEQUENCE,
    "guardrail_intervened": Stop.CONTENT_FILTERED,
    "content_filtered": Stop.CONTENT_FILTERED,
}
_BROKEN_STOPS: Final = frozenset({"malformed_model_output", "malformed_tool_use"})
_BY_CODE: Final = {
    "AccessDeniedException": AiCode.AUTH_FAILED,
    "UnrecognizedClientException": AiCode.AUTH_FAILED,
    "InvalidSignatureException": AiCode.AUTH_FAILED,
    "ExpiredTokenException": AiCode.AUTH_FAILED,
    "ThrottlingException": AiCode.THROTTLED,
    "TooManyRequestsException": AiCode.THROTTLED,
    "ServiceQuotaExceededException": AiCode.QUOTA_EXCEEDED,
    "ResourceNotFoundException": AiCode.MODEL_UNKNOWN,
    "ModelTimeoutException": AiCode.TIMEOUT,
    "ModelNotReadyException": AiCode.UNAVAILABLE,
    "ModelErrorException": AiCode.UNAVAILABLE,
    "InternalServerException": AiCode.UNAVAILABLE,
    "ServiceUnavailableException": AiCode.UNAVAILABLE,
    "ValidationException": AiCode.REQUEST_REFUSED,
}
_TOO_LONG: Final = ("too long", "too many input tokens", "exceed context", "maximum context")


class BedrockModels:
    """`ModelProvider` for Bedrock. `region` empty: where the process runs; `enabled` False: every call is refused.

    Endpoint and credentials are found by the vendor's library in the usual places (`AWS_ENDPOINT_URL`, roles, …).
    """

    name = "bedrock"

    def __init__(self, region: str = "", *, enabled: bool = True) -> None:
        self._region = region
        self._enabled = enabled
        self._lock = threading.Lock()
        self._client: Any = None

    def ask(self, request: ModelRequest, ctx: ActionContext) -> ModelAnswer:
        """One Converse call. Raises ActionError, and AttemptCancelledError soon after the attempt is to stop."""
        if not self._enabled:
            message = "Amazon Bedrock is switched off here; name a connection of type openai, or switch it on"
            raise ai_error(AiCode.PROVIDER_OFF, message)
        client, body = self._made(), _body(request)

        def late() -> ActionError:
            return ai_error(AiCode.TIMEOUT, f"the model did not answer within {request.timeout_ms} ms")

        return watched(lambda: _answer(_converse(client, body)), ctx, request.timeout_ms, what="model", late=late)

    def _made(self) -> Any:
        with self._lock:  # making clients is not thread-safe
            if self._client is None:
                self._client = _client(self._region)
            return self._client


def _client(region: str) -> Any:
    import botocore.session
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, NoRegionError

    config = Config(connect_timeout=CONNECT_SECONDS, read_timeout=MAX_READ_SECONDS, retries={"total_max_attempts": 1})
    try:
        return botocore.session.get_session().create_client(SERVICE, region_name=region or None, config=config)
    except NoRegionError:
        message = "no region is known for Amazon Bedrock; set AWS_REGION or DUCTOR_BEDROCK_REGION"
        raise ai_error(AiCode.AUTH_FAILED, message) from None
    except (BotoCoreError, ValueError) as fault:
        raise ai_error(AiCode.AUTH_FAILED, f"Amazon Bedrock cannot be used: {_short(fault)}") from None


def _converse(client: Any, body: dict[str, Any]) -> Any:
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        ConnectionError,
        HTTPClientError,
        NoCredentialsError,
        ParamValidationError,
        PartialCredentialsError,
        ReadTimeoutError,
    )

    try:
        return client.converse(**body)
    except ClientError as fault:
        raise _refused(fault.response) from None
    except (NoCredentialsError, PartialCredentialsError):
        raise ai_error(AiCode.AUTH_FAILED, "this process has no AWS credentials for Amazon Bedrock") from None
    except ParamValidationError as fault:
        raise ai_error(AiCode.REQUEST_REFUSED, _short(fault)) from None
    except ReadTimeoutError:
        raise ai_error(AiCode.TIMEOUT, "Amazon Bedrock did not answer in time") from None
    except (HTTPClientError, ConnectionError) as fault:
        raise ai_error(AiCode.UNAVAILABLE, f"Amazon Bedrock cannot be reached: {_short(fault)}") from None
    except BotoCoreError as fault:
        raise ai_error(AiCode.ANSWER_INVALID, f"{type(fault).__name__}: {_short(fault)}") from None


def _refused(response: dict[str, Any]) -> ActionError:
    told, status = response.get("Error", {}), response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    own, said = str(told.get("Code", "")), clip(str(told.get("Message", "")), MAX_MESSAGE)
    code = _BY_CODE.get(own)
    if code is None:
        code = AiCode.UNAVAILABLE if status >= 500 else AiCode.REQUEST_REFUSED
    if code is AiCode.REQUEST_REFUSED and any(words in said.lower() for words in _TOO_LONG):
        code = AiCode.CONTEXT_TOO_LONG
    hint = "; allow bedrock:InvokeModel for this model" if own == "AccessDeniedException" else ""
    return ai_error(code, f"Amazon Bedrock answered {own}: {said}{hint}", {"status": status, "code": own})


def _body(request: ModelRequest) -> dict[str, Any]:
    limits: dict[str, Any] = {"maxTokens": request.max_tokens}
    if request.temperature is not None:
        limits["temperature"] = request.temperature
    body: dict[str, Any] = {
        "modelId": request.model,
        "messages": _messages(request.messages),
        "inferenceConfig": limits,
    }
    if request.system:
        body["system"] = [{"text": request.system}]
    if request.tools:
        body["toolConfig"] = {"tools": [_tool(tool) for tool in request.tools]}
    return body


def _messages(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Roles alternate in Converse, so what one side says in a row is one message."""
    sent: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.assistant else "user"
        if sent and sent[-1]["role"] == role:
            sent[-1]["content"] += _blocks(message)
        else:
            sent.append({"role": role, "content": _blocks(message)})
    return sent


def _blocks(message: Message) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [
        {
            "toolResult": {
                "toolUseId": one.call_id,
                "content": [{"text": one.text}],
                "status": "error" if one.failed else "success",
            }
        }
        for one in message.results
    ]
    if message.text.strip():  # a block of blanks is refused
        blocks.append({"text": message.text})
    blocks += [{"toolUse": {"toolUseId": one.id, "name": one.name, "input": one.input}} for one in message.calls]
    return blocks


def _tool(tool: ToolSpec) -> dict[str, Any]:
    spec: dict[str, Any] = {"name": tool.name, "inputSchema": {"json": tool.schema}}
    return {"toolSpec": {**spec, "description": tool.description} if tool.description else spec}


def _answer(response: Any) -> ModelAnswer:
    content = response.get("output", {}).get("message", {}).get("content")
    reason = response.get("stopReason", "")
    if reason == "model_context_window_exceeded":
        raise ai_error(AiCode.CONTEXT_TOO_LONG, "the conversation is longer than the model can read")
    if not isinstance(content, list) or reason in _BROKEN_STOPS:
        raise ai_error(AiCode.ANSWER_INVALID, f"the answer holds no message of a model ({reason or 'no reason'})")
    used = response.get("usage", {})
    return ModelAnswer(
        text="".join(block["text"] for block in content if isinstance(block.get("text"), str)),
        calls=tuple(_call(block["toolUse"]) for block in content if "toolUse" in block),
        stop=_STOPS.get(reason, Stop.END_TURN),
        input_tokens=int(used.get("inputTokens", 0)),
        output_tokens=int(used.get("outputTokens", 0)),
    )


def _call(raw: dict[str, Any]) -> ToolCall:
    try:
        given: JSON = exact(raw.get("input") or {}, "input")[0]
    except NotExactError:
        given = None
    if not isinstance(given, dict):
        return ToolCall(str(raw["toolUseId"]), str(raw["name"]), {}, "the input is not a JSON object")
    return ToolCall(str(raw["toolUseId"]), str(raw["name"]), given)


def _short(fault: BaseException) -> str:
    return clip(str(fault), MAX_MESSAGE)
