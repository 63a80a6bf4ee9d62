"""`condition`: evaluates one boolean expression and routes along its TRUE or FALSE edges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Final

import msgspec

from ductor.engine.behaviour import Plain
from ductor.engine.context import NodeContext
from ductor.engine.outcome import complete, fail
from ductor.expressions import ExpressionError, Program, compile_cel
from ductor.model.definition import Step
from ductor.model.enums import EdgeType
from ductor.model.errors import StepError, Violation
from ductor.model.json import JSON
from ductor.model.payload import Inline
from ductor.model.transition import Transition
from ductor.steps import reading
from ductor.steps.spec import Expression, Scope, conditions, read_args

EDGES: Final = frozenset({EdgeType.TRUE, EdgeType.FALSE, EdgeType.ERROR, EdgeType.DONE})


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`expr`: CEL that gives a boolean. Output: `{"value": bool}`; anything but a boolean fails the step."""

    expr: Annotated[str, msgspec.Meta(min_length=1)]


def parse_args(args: JSON) -> Args:
    return reading.parse(Args, args)


def validate(step: Step, scope: Scope) -> Iterator[Violation]:
    """One expression and nothing else."""
    del scope
    _, violations = read_args(Args, step)
    yield from violations


def expressions(step: Step) -> Iterator[Expression]:
    return conditions(step, frozenset(), "expr")


_TRUE: Final = frozenset({EdgeType.TRUE})
_FALSE: Final = frozenset({EdgeType.FALSE})


class ConditionBehaviour(Plain):
    """Decides in the tick; never waits."""

    def compile(self, step: Step) -> Program:
        return compile_cel(parse_args(step.args).expr)

    def start(self, ctx: NodeContext) -> Iterable[Transition]:
        try:
            value = ctx.holds(ctx.args)
        except ExpressionError as fault:
            return fail(ctx, StepError(fault.code, fault.message, retryable=False))
        return complete(ctx, Inline({"value": value}), _TRUE if value else _FALSE)
