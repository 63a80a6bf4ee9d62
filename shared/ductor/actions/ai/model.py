"""The port to language models: one call of a conversation in, one answer out. Knows no provider and keeps nothing."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Protocol

import msgspec

from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.model.json import JSON

DEFAULT: Final = ""
"""The provider of steps without a connection."""


class Stop(StrEnum):
    """Why the model stopped."""

    END_TURN = "end_turn"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    STOP_SEQUENCE = "stop_sequence"
    CONTENT_FILTERED = "content_filtered"


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as the model sees it. `name` has letters, digits, _ and - only; `schema` is that of its input."""

    name: str
    description: str
    schema: dict[str, JSON]


class ToolCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the model asks for. `fault` says why the input is none; the model is told."""

    id: str
    name: str
    input: dict[str, JSON] = {}
    fault: str = ""


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a call gave, as the model reads it."""

    call_id: str
    text: str
    failed: bool = False


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message. Only the assistant's has `calls`, only the user's has `results`."""

    assistant: bool
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One call. `timeout_ms` bounds it as a whole; `schema` is a JSON Schema that the answer shall fit."""

    model: str
    messages: tuple[Message, ...]
    max_tokens: int
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    temperature: float | None = None
    schema: dict[str, JSON] | None = None
    timeout_ms: int = 60_000


class ModelAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came back. Tokens are the provider's own count, 0 where it gives none."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    stop: Stop = Stop.END_TURN
    input_tokens: int = 0
    output_tokens: int = 0


class ModelProvider(Protocol):
    """One way to reach models. Safe to use from several threads."""

    name: str

    def ask(self, request: ModelRequest, ctx: ActionContext) -> ModelAnswer:
        """One call, never repeated here: retries are the step's. `ctx` gives the connection, and stops the call.

        Raises ActionError with an `AI_…` code (or `HTTP_…`, `CONNECTION_…`), AttemptCancelledError.
        """
        ...


class AiCode(StrEnum):
    """How a model call fails."""

    THROTTLED = "AI_THROTTLED"
    UNAVAILABLE = "AI_UNAVAILABLE"
    TIMEOUT = "AI_TIMEOUT"
    AUTH_FAILED = "AI_AUTH_FAILED"
    QUOTA_EXCEEDED = "AI_QUOTA_EXCEEDED"
    REQUEST_REFUSED = "AI_REQUEST_REFUSED"
    MODEL_UNKNOWN = "AI_MODEL_UNKNOWN"
    CONTEXT_TOO_LONG = "AI_CONTEXT_TOO_LONG"
    CONTENT_FILTERED = "AI_CONTENT_FILTERED"
    ANSWER_INVALID = "AI_ANSWER_INVALID"
    PROVIDER_OFF = "AI_PROVIDER_OFF"


_AGAIN: Final = frozenset({AiCode.THROTTLED, AiCode.UNAVAILABLE, AiCode.TIMEOUT, AiCode.ANSWER_INVALID})


def ai_error(code: AiCode, message: str, details: JSON = None) -> ActionError:
    """The error of a call; whether another try makes sense follows from the code."""
    return ActionError(code.value, message, code in _AGAIN, details)
