"""`wait`: a durable timer, for a duration or until an instant. Costs nothing while it waits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec

from ductor.engine.behaviour import Plain
from ductor.engine.context import NodeContext, rfc3339
from ductor.engine.outcome import complete, fail
from ductor.expressions import ExpressionError, Program, compile_cel
from ductor.model import transition as tr
from ductor.model.definition import Step
from ductor.model.enums import EdgeType
from ductor.model.errors import StepError, Violation
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import JSON
from ductor.model.payload import Inline
from ductor.model.transition import Transition
from ductor.steps import reading
from ductor.steps.duration import FORMS, MAX_DURATION_MS, parse_duration
from ductor.steps.resolving import refuses_all_but_resolve, resolved
from ductor.steps.spec import Expression, Scope, fault, read_args, texts

EDGES: Final = frozenset({EdgeType.SUCCESS, EdgeType.ERROR, EdgeType.DONE, EdgeType.DEFAULT})
CODE: Final = "WAIT_SPEC_INVALID"
FIELDS: Final = ("duration", "until", "duration_expr", "until_expr")

_INSTANT: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Exactly one field is set. Output: `{"fired_at": RFC 3339}`.

    `duration`: `2s`, `1h30m`, `PT2S`, at most 366 days, counted from the tick that makes the step ready.
    `until`: an RFC 3339 instant with an offset; one in the past ends the wait at once.
    `duration_expr`: CEL that gives such a duration text, or a number of milliseconds. `until_expr`: CEL that gives
    such an instant text, or epoch milliseconds.
    """

    duration: str | None = None
    until: str | None = None
    duration_expr: str | None = None
    until_expr: str | None = None


def parse_args(args: JSON) -> Args:
    return reading.parse(Args, args)


def validate(step: Step, scope: Scope) -> Iterator[Violation]:
    """Exactly one way to say how long, well formed and within 366 days."""
    del scope
    args, violations = read_args(Args, step, CODE)
    yield from violations
    if args is None:
        return
    given = [name for name in FIELDS if getattr(args, name) is not None]
    if len(given) != 1:
        found = f"found {' and '.join(given)}" if given else "found none"
        yield fault(step, CODE, f"give exactly one of {', '.join(FIELDS)}; {found}")
    if args.duration is not None and (problem := duration_problem(args.duration)):
        hint = "; a computed one goes into duration_expr" if "${{" in args.duration else ""
        yield fault(step, CODE, f"{problem}{hint}", "duration")
    if args.until is not None and parse_instant(args.until) is None:
        yield fault(step, CODE, "write an RFC 3339 instant with an offset, like 2030-01-31T09:00:00Z", "until")
    for name in ("duration_expr", "until_expr"):
        if getattr(args, name) == "":
            yield fault(step, CODE, "write a CEL expression", name)


def duration_problem(text: str) -> str | None:
    """What is wrong with a duration text; None when it is a wait of at most 366 days."""
    milliseconds = parse_duration(text)
    if milliseconds is None:
        return f"write a duration {FORMS}"
    if milliseconds > MAX_DURATION_MS:
        return "must be at most 366 days; use `until` for a later instant"
    return None


def parse_instant(text: str) -> int | None:
    """Epoch milliseconds of an RFC 3339 instant; None when it is malformed, out of range or has no offset."""
    if _INSTANT.fullmatch(text) is None:
        return None
    try:
        delta = datetime.fromisoformat(text.upper()) - _EPOCH
    except (ValueError, OverflowError):
        return None
    return delta.days * 86_400_000 + delta.seconds * 1_000 + delta.microseconds // 1_000


def expressions(step: Step) -> Iterator[Expression]:
    return texts(step, frozenset(), "duration_expr", "until_expr")


class WaitBehaviour(Plain):
    """Parks the node until its deadline; the run's wake-up ends the wait."""

    def compile(self, step: Step) -> _Plan:
        args = parse_args(step.args)
        source = args.duration_expr or args.until_expr
        return _Plan(
            duration=parse_duration(args.duration) if args.duration is not None else None,
            until=parse_instant(args.until) if args.until is not None else None,
            expression=compile_cel(source) if source else None,
            relative=args.duration_expr is not None,
        )

    def start(self, ctx: NodeContext) -> Iterable[Transition]:
        plan: _Plan = ctx.args
        try:
            deadline = plan.deadline(ctx)
        except ExpressionError as fault:
            return fail(ctx, StepError(fault.code, fault.message, retryable=False))
        if deadline <= ctx.now:
            return _over(ctx)
        return (tr.NodeParked(ctx.id, ctx.entry.generation + 1, deadline),)

    def due(self, ctx: NodeContext) -> Iterable[Transition]:
        return _over(ctx)

    def refuses(self, ctx: NodeContext, intent: Intent) -> tuple[str, str] | None:
        return refuses_all_but_resolve(ctx, intent)

    def told(self, ctx: NodeContext, intent: Intent) -> Iterable[Transition]:
        return resolved(ctx, intent) if intent.kind is IntentKind.RESOLVE else ()


class _Plan(msgspec.Struct, frozen=True):
    """How a wait finds its deadline. `duration` is milliseconds, `until` epoch milliseconds."""

    duration: int | None
    until: int | None
    expression: Program | None
    relative: bool

    def deadline(self, ctx: NodeContext) -> int:
        """Epoch milliseconds. Raises ExpressionError when an expression gives no usable value."""
        if self.duration is not None:
            return ctx.now + self.duration
        if self.until is not None:
            return self.until
        assert self.expression is not None  # validation allows exactly one of the four forms
        value = ctx.evaluate(self.expression)
        return self._relative(ctx, value) if self.relative else self._absolute(value)

    def _relative(self, ctx: NodeContext, value: JSON) -> int:
        milliseconds = parse_duration(value) if isinstance(value, str) else _whole(value)
        if milliseconds is None or not 0 <= milliseconds <= MAX_DURATION_MS:
            raise ExpressionError("must give a duration of 0 to 366 days", self._source)
        return ctx.now + milliseconds

    def _absolute(self, value: JSON) -> int:
        instant = parse_instant(value) if isinstance(value, str) else _whole(value)
        if instant is None or not 0 <= instant <= _LAST_INSTANT:
            raise ExpressionError("must give an RFC 3339 instant or epoch milliseconds", self._source)
        return instant

    @property
    def _source(self) -> str:
        return self.expression.source if self.expression else ""


_LAST_INSTANT: Final = 253_402_300_799_999
"""The end of the year 9999, the last that RFC 3339 can write."""


def _whole(value: JSON) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _over(ctx: NodeContext) -> Iterable[Transition]:
    return complete(ctx, Inline({"fired_at": rfc3339(ctx.now)}))
