"""`ai_action`: one model call. A step worker makes it; here is what is asked, and how the texts come about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

import msgspec

from ductor.engine.context import NodeContext
from ductor.expressions import ExpressionError, compile_template
from ductor.model.definition import Step
from ductor.model.errors import Violation
from ductor.model.json import JSON, encode
from ductor.steps import reading
from ductor.steps.action import ActionBehaviour, ActionPlan, connection_template
from ductor.steps.spec import WORK_EDGES, Expression, Scope, fault, read_args, templates

EDGES: Final = WORK_EDGES
CODE: Final = "AI_SPEC_INVALID"

CONNECTION_TYPES: Final = frozenset({"openai"})
"""Types of connections that lead to models. A step without one asks Amazon Bedrock."""

_TEMPLATED: Final = ("model", "prompt", "messages", "system")


class Role(reading.Word):
    """Who says a message."""

    USER = "user"
    ASSISTANT = "assistant"


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One message of a conversation; `content` is a template."""

    role: Role
    content: str


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What every model call has. `model` and the texts are templates; `output_schema` is that of the answer."""

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
    return templates(step, *_TEMPLATED)


class AiPlan(ActionPlan, frozen=True):
    """The compiled step: what is rendered, and the args that stand as they are."""

    fixed: dict[str, JSON]


class AiBehaviour(ActionBehaviour):
    """Both AI steps: attempts of step workers like those of an action, with texts for an input."""

    def compile(self, step: Step) -> AiPlan:
        args = step.args if isinstance(step.args, dict) else {}
        texts = {name: args[name] for name in _TEMPLATED if args.get(name) is not None}
        fixed = {name: value for name, value in args.items() if name not in texts and value is not None}
        return AiPlan(compile_template(texts), connection_template(step.connection_ref), fixed)

    def rendered(self, ctx: NodeContext, plan: ActionPlan) -> JSON:
        """The args with every template replaced by a text. Raises ExpressionError for one that gives null."""
        assert isinstance(plan, AiPlan)
        texts = {name: _text(value, name) for name, value in ctx.render(plan.args).items()}
        return {**plan.fixed, **texts}


def _text(value: JSON, at: str) -> JSON:
    """A text stays one; everything else goes to the model as JSON."""
    if at == "messages" and isinstance(value, list):
        return [{**one, "content": _text(one.get("content"), "messages.content")} for one in value]
    if value is None:
        raise ExpressionError("must give a text for the model, not null", at)
    return value if isinstance(value, str) else encode(value).decode()
