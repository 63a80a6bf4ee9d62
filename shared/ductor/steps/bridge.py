"""`bridge`: an external worker, in any language, does the work. It polls for tasks; nothing here reaches out to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Final

import msgspec

from ductor.engine.behaviour import Plain
from ductor.engine.context import NodeContext
from ductor.engine.outcome import fail
from ductor.expressions import ExpressionError, Template, compile_template
from ductor.model import transition as tr
from ductor.model.definition import Step
from ductor.model.enums import NodeStatus
from ductor.model.errors import StepError, Violation
from ductor.model.intent import Intent
from ductor.model.json import JSON
from ductor.model.payload import MAX_INPUT_BYTES, Inline, Payload
from ductor.model.transition import Transition
from ductor.steps import reading
from ductor.steps.action import after_attempt, next_attempt
from ductor.steps.resolving import refuses_all_but_resolve, resolved
from ductor.steps.spec import MAX_TIMEOUT_MS, WORK_EDGES, Expression, Scope, read_args, templates

EDGES: Final = WORK_EDGES
CODE: Final = "BRIDGE_SPEC_INVALID"
TASK_TYPE_PATTERN: Final = r"^[A-Za-z][A-Za-z0-9._-]{0,127}$"


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`task_type` is what workers poll for; `input` is a template. The timeout runs until a worker takes the task."""

    task_type: Annotated[str, msgspec.Meta(pattern=TASK_TYPE_PATTERN)]
    input: JSON = None
    schedule_to_start_timeout_ms: Annotated[int, msgspec.Meta(ge=0, le=MAX_TIMEOUT_MS)] = 0


def parse_args(args: JSON) -> Args:
    return reading.parse(Args, args)


def validate(step: Step, scope: Scope) -> Iterator[Violation]:
    """The shape of the args."""
    del scope
    _, violations = read_args(Args, step, CODE)
    yield from violations


def expressions(step: Step) -> Iterator[Expression]:
    return templates(step, "input")


class Plan(msgspec.Struct, frozen=True):
    """The compiled step. `start_within_ms` 0 = a task may wait for a worker without end."""

    task_type: str
    input: Template
    start_within_ms: int


class BridgeBehaviour(Plain):
    """Puts each attempt into the queue of its task type, and applies what its row says, as for an action.

    The deadline of an attempt is that of being taken until a worker has it, then that of being finished. When it
    passes, the row is asked to say so: the attempt ends there first, so that a result which was accepted counts.
    """

    patient = True
    resolvable = True

    def compile(self, step: Step) -> Plan:
        args = parse_args(step.args)
        return Plan(args.task_type, compile_template(args.input), args.schedule_to_start_timeout_ms)

    def start(self, ctx: NodeContext) -> Iterable[Transition]:
        plan: Plan = ctx.args
        fork = ctx.tick.state.fork
        given = fork.given(ctx.id) if fork else None
        try:
            payload = ctx.tick.keep(ctx.render(plan.input)) if given is None else given
        except ExpressionError as fault:
            return fail(ctx, StepError(fault.code, fault.message, retryable=False))
        size = 0 if isinstance(payload, Inline) else payload.size
        if size > MAX_INPUT_BYTES:
            message = f"the input has {size} bytes; at most {MAX_INPUT_BYTES} go to a worker: pass a reference instead"
            return fail(ctx, StepError("INPUT_TOO_LARGE", message, retryable=False))
        return (_schedule(ctx, payload),)

    def due(self, ctx: NodeContext) -> Iterable[Transition]:
        """The backoff is over, or the attempt is overdue by what this run knows."""
        if ctx.entry.status is NodeStatus.RETRYING:
            return (_schedule(ctx, ctx.entry.input),)
        start_by = 0 if ctx.entry.worker else _start_by(ctx, ctx.entry.scheduled_at)
        return (tr.NodeWatched(ctx.id, start_by) if start_by > ctx.now else tr.NodeOverdue(ctx.id),)

    def finished(self, ctx: NodeContext, intent: Intent) -> Iterable[Transition]:
        return after_attempt(ctx, intent)

    def refuses(self, ctx: NodeContext, intent: Intent) -> tuple[str, str] | None:
        return refuses_all_but_resolve(ctx, intent)

    def told(self, ctx: NodeContext, intent: Intent) -> Iterable[Transition]:
        """An operator ends the step: whoever has its task is asked to stop."""
        yield tr.AttemptAbandoned(ctx.id, ctx.entry.attempt, ctx.entry.generation)
        yield from resolved(ctx, intent)


def _start_by(ctx: NodeContext, scheduled_at: int) -> int:
    plan: Plan = ctx.args
    return scheduled_at + plan.start_within_ms if plan.start_within_ms else 0


def _schedule(ctx: NodeContext, value: Payload) -> Transition:
    return next_attempt(ctx, value, deadline=_start_by(ctx, ctx.now))
