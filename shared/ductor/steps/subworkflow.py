"""`subworkflow`: runs another definition as a child run, pinned to the version that publication found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Final

import msgspec

from ductor.engine.backoff import jittered_ms, may_retry
from ductor.engine.behaviour import Plain
from ductor.engine.context import NodeContext
from ductor.engine.outcome import complete, fail
from ductor.expressions import ExpressionError, Template, compile_template
from ductor.model import transition as tr
from ductor.model.attempt import AttemptStatus
from ductor.model.command import CloseChild, Command
from ductor.model.definition import Step
from ductor.model.enums import NodeStatus
from ductor.model.errors import StepError, Violation
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import JSON
from ductor.model.lineage import child_run_id, read_child_key
from ductor.model.payload import Inline, Payload
from ductor.model.transition import Transition
from ductor.steps import reading
from ductor.steps.action import next_attempt, short
from ductor.steps.spec import WORK_EDGES, Expression, Scope, read_args, templates

EDGES: Final = WORK_EDGES
FAMILY_PATTERN: Final = "^[a-z][a-z0-9_-]{0,62}$"


class ParentClosePolicy(reading.Word):
    """What happens to the child when the parent ends first."""

    CANCEL = "cancel"
    ABANDON = "abandon"
    TERMINATE = "terminate"


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`version` defaults to the newest at publish, pinned into the parent's version. `input` is a template."""

    family_slug: Annotated[str, msgspec.Meta(pattern=FAMILY_PATTERN)]
    version: Annotated[int, msgspec.Meta(ge=1)] | None = None
    input: JSON = None
    wait: bool = True
    parent_close_policy: ParentClosePolicy = ParentClosePolicy.CANCEL


def parse_args(args: JSON) -> Args:
    return reading.parse(Args, args)


def validate(step: Step, scope: Scope) -> Iterator[Violation]:
    """The shape only; whether the family exists is asked of the server."""
    del scope
    _, violations = read_args(Args, step)
    yield from violations


def expressions(step: Step) -> Iterator[Expression]:
    return templates(step, "input")


class Plan(msgspec.Struct, frozen=True):
    """The compiled step. Without `wait` it completes as soon as its child is admitted."""

    input: Template
    wait: bool
    policy: str


class SubworkflowBehaviour(Plain):
    """Hands each attempt to a child run, whose id derives from run, node, attempt and generation.

    An attempt that is given up (its time is up) leaves its child to the parent_close_policy and is never heard again.
    """

    speaks = True
    patient = True

    def compile(self, step: Step) -> Plan:
        args = parse_args(step.args)
        source = {} if args.input is None else args.input
        return Plan(compile_template(source), args.wait, args.parent_close_policy.value)

    def start(self, ctx: NodeContext) -> Iterable[Transition]:
        plan: Plan = ctx.args
        try:
            value = ctx.render(plan.input)
        except ExpressionError as fault:
            return fail(ctx, StepError(fault.code, fault.message, retryable=False))
        return (_schedule(ctx, ctx.tick.keep(value)),)

    def due(self, ctx: NodeContext) -> Iterable[Transition]:
        """The backoff is over, or the child's time is up."""
        if ctx.entry.status is NodeStatus.RETRYING:
            return (_schedule(ctx, ctx.entry.input),)
        error = StepError("ATTEMPT_TIMEOUT", f"the child run did not end within {ctx.timeout_ms} ms")
        return _failed(ctx, error, timed_out=True)

    def finished(self, ctx: NodeContext, intent: Intent) -> Iterable[Transition]:
        plan: Plan = ctx.args
        if not plan.wait and (intent.kind is IntentKind.CHILD_FINISHED or intent.status is AttemptStatus.SUCCEEDED):
            return complete(ctx, Inline({"run_id": _child(ctx)}))
        if intent.status is AttemptStatus.SUCCEEDED:
            return complete(ctx, intent.output)
        error = intent.error or StepError("CHILD_LOST", f"the child run {_child(ctx)} ended without a result")
        return _failed(ctx, error, timed_out=intent.status is AttemptStatus.TIMED_OUT)

    def commands(self, ctx: NodeContext, transition: Transition) -> Iterable[Command]:
        """Children of attempts that are over are closed, unless the step never waits for them."""
        plan: Plan = ctx.args
        if not plan.wait or not isinstance(transition, tr.NodeRetrying | tr.NodeFailed | tr.NodeCompleted):
            return
        for key, policy in ctx.tick.state.children.items():
            if not key.startswith(f"{ctx.id}/") or policy == ParentClosePolicy.ABANDON.value:
                continue
            node, attempt, generation = read_child_key(key)
            if ctx.entry.status is not NodeStatus.SCHEDULED or ctx.entry.attempt != attempt:
                yield CloseChild(node, attempt, generation)


def _child(ctx: NodeContext) -> str:
    return child_run_id(ctx.tick.state.run_id, ctx.id, ctx.entry.attempt, ctx.entry.generation)


def _schedule(ctx: NodeContext, value: Payload) -> Transition:
    plan: Plan = ctx.args
    limit = ctx.timeout_ms if plan.wait else 0
    return next_attempt(ctx, value, deadline=ctx.now + limit if limit else 0, child=plan.policy)


def _failed(ctx: NodeContext, error: StepError, *, timed_out: bool) -> Iterable[Transition]:
    retry = ctx.retry
    failures = ctx.entry.attempt - ctx.entry.first_attempt + 1
    if may_retry(retry, failures, error, ctx.now - ctx.entry.entered_at):
        at = ctx.now + jittered_ms(retry, failures, f"{ctx.tick.state.run_id}/{ctx.id}/{ctx.entry.attempt}")
        return (tr.NodeRetrying(ctx.id, ctx.entry.attempt, short(error), at),)
    return fail(ctx, short(error), NodeStatus.TIMED_OUT if timed_out else NodeStatus.FAILED)
