"""`ai_agent`: a bounded loop in which a model calls actions as tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal

import msgspec

from ductor.model.definition import Step
from ductor.model.errors import Violation
from ductor.model.json import JSON
from ductor.steps import ai_action, reading
from ductor.steps.spec import WORK_EDGES, Scope, fault, read_args

EDGES: Final = WORK_EDGES
CODE: Final = ai_action.CODE

MAX_TOOLS: Final = 64

expressions = ai_action.expressions


DEFAULT_TOKENS: Final = 100_000


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the whole loop may use: tokens in and out. The call that passes it is the last one."""

    tokens: Annotated[int, msgspec.Meta(ge=1)] = DEFAULT_TOKENS


class Tool(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An action that the model may call. `description` replaces the action's own.

    Without `connection_ref` an action that needs a connection gets the one whose slug is the type of that connection.
    """

    action: str
    connection_ref: Annotated[str, msgspec.Meta(max_length=200)] = ""
    connection_ref_mode: Literal["", "direct", "environment"] = ""
    description: Annotated[str, msgspec.Meta(max_length=1_000)] = ""


class Args(ai_action.Call, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A call with `tools` (names of actions, or objects), at most `max_turns` model calls and a token budget."""

    tools: Annotated[tuple[str | Tool, ...], msgspec.Meta(max_length=MAX_TOOLS)] = ()
    max_turns: Annotated[int, msgspec.Meta(ge=1, le=100)]
    budget: Budget = Budget()

    def toolset(self) -> tuple[Tool, ...]:
        """The tools, each as an object."""
        return tuple(Tool(one) if isinstance(one, str) else one for one in self.tools)


def parse_args(args: JSON) -> Args:
    return reading.parse(Args, args)


def validate(step: Step, scope: Scope) -> Iterator[Violation]:
    """As for a single call, and every tool is a known action, named once."""
    args, violations = read_args(Args, step, CODE)
    yield from violations
    if args is None:
        return
    yield from ai_action.call_faults(step, args)
    names = [tool.action for tool in args.toolset()]
    for index, name in enumerate(names):
        at = f"tools[{index}]"
        if name not in scope.catalog:
            near = scope.catalog.nearest(name)
            hint = f"did you mean '{near}'?" if near else "register it or remove it"
            yield Violation(f"{step.ref}.args.{at}", "ACTION_UNKNOWN", f"no action '{name[:60]}' is registered; {hint}")
        if name in names[:index]:
            yield fault(step, CODE, f"'{name[:60]}' is named twice; remove one", at)
