"""`ai_action`: one model call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

import msgspec

from ductor.model.definition import Step
from ductor.model.errors import Violation
from ductor.model.json import JSON
from ductor.steps import reading
from ductor.steps.spec import WORK_EDGES, Expression, Scope, fault, read_args, templates

EDGES: Final = WORK_EDGES
CODE: Final = "AI_SPEC_INVALID"


class Role(reading.Word):
    """Who says a message."""

    USER = "user"
    ASSISTANT = "assistant"


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One message of a conversation; `content` is a template."""

    role: Role
    content: str


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What every model call has. Texts are templates; `output_schema` is a JSON Schema for an object answer."""

    model: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    prompt: str | None = None
    messages: tuple[Message, ...] | None = None
    system: str = ""
    output_schema: dict[str, JSON] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None


class Args(Call, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Either `prompt` or `messages`."""


def parse_args(args: JSON) -> Args:
    return reading.parse(Args, args)


def validate(step: Step, scope: Scope) -> Iterator[Violation]:
    """Exactly one way to ask."""
    del scope
    args, violations = read_args(Args, step, CODE)
    yield from violations
    if args is not None:
        yield from call_faults(step, args)


def call_faults(step: Step, args: Call) -> Iterator[Violation]:
    """Rules that a single call and an agent share."""
    if (args.prompt is None) == (args.messages is None):
        yield fault(step, CODE, "give exactly one of `prompt` and `messages`")
    if args.messages is not None and not args.messages:
        yield fault(step, CODE, "give at least one message", "messages")


def expressions(step: Step) -> Iterator[Expression]:
    return templates(step, "prompt", "messages", "system")
