"""`ai_agent`: a bounded loop in which a model calls actions as tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

import msgspec

from ductor.model.definition import Step
from ductor.model.errors import Violation
from ductor.model.json import JSON
from ductor.steps import ai_action, reading
from ductor.steps.spec import WORK_EDGES, Scope, fault, read_args

EDGES: Final = WORK_EDGES
CODE: Final = ai_action.CODE

expressions = ai_action.expressions


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the whole loop may use."""

    tokens: Annotated[int, msgspec.Meta(ge=1)]


class Args(ai_action.Call, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A call with `tools` (names of actions), at most `max_turns` turns and a token budget."""

    tools: tuple[str, ...] = ()
    max_turns: Annotated[int, msgspec.Meta(ge=1, le=100)]
    budget: Budget | None = None


def parse_args(args: JSON) -> Args:
    return reading.parse(Args, args)


def validate(step: Step, scope: Scope) -> Iterator[Violation]:
    """As for a single call, and every tool is a known action, named once."""
    args, violations = read_args(Args, step, CODE)
    yield from violations
    if args is None:
        return
    yield from ai_action.call_faults(step, args)
    for index, name in enumerate(args.tools):
        at = f"tools[{index}]"
        if name not in scope.catalog:
            near = scope.catalog.nearest(name)
            hint = f"did you mean '{near}'?" if near else "register it or remove it"
            yield Violation(f"{step.ref}.args.{at}", "ACTION_UNKNOWN", f"no action '{name[:60]}' is registered; {hint}")
        if name in args.tools[:index]:
            yield fault(step, CODE, f"'{name[:60]}' is named twice; remove one", at)
