"""Any endpoint that speaks OpenAI's chat completions, through a connection of type `openai`.

The exchange is that of every connector: the same address rules, limits and cancellation, and the secret stays in it.
"""

from __future__ import annotations

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
from ductor.actions.connection import Connection
from ductor.actions.connectors.catalog import Connectors
from ductor.actions.connectors.references import at_path
from ductor.actions.connectors.spec import Request
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.actions.exact import NotExactError, exact
from ductor.actions.http_args import MAX_TIMEOUT_MS
from ductor.model.json import JSON, decode, encode

CONNECTION_TYPE: Final = "openai"

_SENT: Final = Request(path="/chat/completions", method="POST", json="{args.body}")
_HEADERS: Final = {"openai-organization": "{settings.organization}"}
_STOPS: Final = {
    "stop": Stop.END_TURN,
    "length": Stop.MAX_TOKENS,
    "tool_calls": Stop.TOOL_USE,
    "function_call": Stop.TOOL_USE,
    "content_filter": Stop.CONTENT_FILTERED,
}
_BY_CODE: Final = {
    "context_length_exceeded": AiCode.CONTEXT_TOO_LONG,
    "content_filter": AiCode.CONTENT_FILTERED,
    "content_policy_violation": AiCode.CONTENT_FILTERED,
    "insufficient_quota": AiCode.QUOTA_EXCEEDED,
    "model_not_found": AiCode.MODEL_UNKNOWN,
}
_BY_STATUS: Final = {
    401: AiCode.AUTH_FAILED,
    403: AiCode.AUTH_FAILED,
    402: AiCode.QUOTA_EXCEEDED,
    404: AiCode.MODEL_UNKNOWN,
    408: AiCode.TIMEOUT,
    425: AiCode.UNAVAILABLE,
    429: AiCode.THROTTLED,
}
_BY_HTTP: Final = {
    "HTTP_TIMEOUT": AiCode.TIMEOUT,
    "HTTP_CONNECT_FAILED": AiCode.UNAVAILABLE,
    "HTTP_CONNECTION_LOST": AiCode.UNAVAILABLE,
    "HTTP_DNS_FAILED": AiCode.UNAVAILABLE,
}


class OpenAiModels:
    """`ModelProvider` for OpenAI-compatible endpoints."""

    name = "openai"

    def __init__(self, connectors: Connectors) -> None:
        connector = connectors.get(CONNECTION_TYPE)
        self._caller = None if connector is None else connectors.caller(connector)

    def ask(self, request: ModelRequest, ctx: ActionContext) -> ModelAnswer:
        """One chat completion. Raises ActionError."""
        if self._caller is None:
            raise ai_error(AiCode.PROVIDER_OFF, "this installation has no connector `openai`")
        connection = self._caller.connection(ctx)
        values = {"args": {"body": _body(request, connection)}, "settings": dict(connection.settings), "results": {}}
        sent = Request(_SENT.path, "POST", headers=_headers(connection), json=_SENT.json)
        try:
            answer = self._caller.send(sent, values, connection, ctx, min(request.timeout_ms, MAX_TIMEOUT_MS))
        except ActionError as fault:
            raise _told(fault) from None
        return _answer(answer.body)


def _headers(connection: Connection) -> dict[str, JSON]:
    return dict(_HEADERS) if connection.setting("organization") else {}


def _body(request: ModelRequest, connection: Connection) -> dict[str, JSON]:
    body: dict[str, JSON] = {"model": request.model, "messages": _messages(request)}
    body[_limit_name(connection)] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    mode = connection.setting("structured_output", "json_schema")
    if request.schema is not None and mode == "json_schema":
        shape = {"name": "answer", "schema": request.schema, "strict": False}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    elif request.schema is not None and mode == "json_object":
        body["response_format"] = {"type": "json_object"}
    return body


def _limit_name(connection: Connection) -> str:
    """OpenAI's newer models refuse `max_tokens`; most other servers know nothing else."""
    own = "max_tokens" if connection.setting("base_url") else "max_completion_tokens"
    return connection.setting("max_tokens_field", own)


def _messages(request: ModelRequest) -> list[JSON]:
    sent: list[JSON] = [{"role": "system", "content": request.system}] if request.system else []
    for message in request.messages:
        sent += _spoken(message)
    return sent


def _spoken(message: Message) -> list[JSON]:
    if message.results:
        return [{"role": "tool", "tool_call_id": one.call_id, "content": one.text} for one in message.results]
    if not message.assistant:
        return [{"role": "user", "content": message.text}]
    said: dict[str, JSON] = {"role": "assistant", "content": message.text or None}
    if message.calls:
        said["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": encode(call.input).decode()},
            }
            for call in message.calls
        ]
    return [said]


def _tool(tool: ToolSpec) -> JSON:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}


def _answer(body: JSON) -> ModelAnswer:
    message = at_path(body, "choices.0.message")
    if not isinstance(message, dict):
        raise ai_error(AiCode.ANSWER_INVALID, "the answer holds no message of a model")
    finish = at_path(body, "choices.0.finish_reason")
    refusal = message.get("refusal")
    stop = _STOPS.get(finish, Stop.END_TURN) if isinstance(finish, str) else Stop.END_TURN
    asked = message.get("tool_calls")
    calls = tuple(_call(place, one) for place, one in enumerate(asked)) if isinstance(asked, list) else ()
    return ModelAnswer(
        text=_text(message.get("content")),
        calls=calls,
        stop=Stop.CONTENT_FILTERED if isinstance(refusal, str) and refusal else stop,
        input_tokens=_count(body, "usage.prompt_tokens"),
        output_tokens=_count(body, "usage.completion_tokens"),
    )


def _text(content: JSON) -> str:
    """A text, or the texts of a list of parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""


def _call(place: int, raw: JSON) -> ToolCall:
    given, name, text = at_path(raw, "id"), at_path(raw, "function.name"), at_path(raw, "function.arguments")
    call_id = given if isinstance(given, str) and given else f"call_{place}"
    named = name if isinstance(name, str) else ""
    try:
        found: Any = exact(decode(text or "{}") if isinstance(text, str) else text, "arguments")[0]
    except (NotExactError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return ToolCall(call_id, named, {}, "the arguments are not a JSON object")
    return ToolCall(call_id, named, found)


def _count(body: JSON, path: str) -> int:
    value = at_path(body, path)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _told(fault: ActionError) -> ActionError:
    """The same failure in the words that all providers share; what is about the connection or the network stays."""
    by_http = _BY_HTTP.get(fault.code)
    if by_http is not None:
        return ai_error(by_http, fault.message, fault.details)
    status = at_path(fault.details, "status")
    if not isinstance(status, int) or fault.code.startswith("CONNECTION_"):
        return fault
    own = at_path(fault.details, "code")
    code = _BY_CODE.get(own) if isinstance(own, str) else None
    if code is None:
        code = _BY_STATUS.get(status, AiCode.UNAVAILABLE if status >= 500 else AiCode.REQUEST_REFUSED)
    return ai_error(code, fault.message, fault.details)
