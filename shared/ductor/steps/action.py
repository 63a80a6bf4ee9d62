"""`action`: a step worker runs a registered action with the rendered args. The args belong to the action."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from ductor.engine.backoff import jittered_ms, may_retry
from ductor.engine.behaviour import Plain
from ductor.engine.context import NodeContext
from ductor.engine.outcome import complete, fail
from ductor.expressions import ExpressionError, Template, compile_template
from ductor.model import transition as tr
from ductor.model.attempt import AttemptStatus
from ductor.model.definition import Step
from ductor.model.enums import NodeStatus
from ductor.model.errors import StepError, Violation, clip
from ductor.model.intent import Intent
from ductor.model.json import JSON
from ductor.model.payload import Payload
from ductor.model.transition import Transition
from ductor.steps.reading import ArgsInvalidError, Problem, joined
from ductor.steps.spec import WORK_EDGES, Expression, ExpressionKind, Scope

EDGES: Final = WORK_EDGES


def parse_args(args: JSON) -> dict[str, JSON]:
    """The args as they stand, templates unrendered."""
    if not isinstance(args, dict):
        raise ArgsInvalidError([Problem("", "must be an object")])
    return args


def validate(step: Step, scope: Scope) -> Iterator[Violation]:
    """The action must be named, known to this installation, and accept the args."""
    if not step.action:
        yield Violation(f"{step.ref}.action", "ACTION_REQUIRED", "name the action to run, for example core.echo")
    else:
        yield from action_faults(step.ref, step.action, step.args, scope)


def action_faults(at: str, name: str, args: JSON, scope: Scope) -> Iterator[Violation]:
    """What is wrong with running `name` with `args`; fields are given below the path `at`."""
    if name not in scope.catalog:
        yield Violation(joined(at, "action"), "ACTION_UNKNOWN", _unknown(name, scope.catalog.nearest(name)))
        return
    for path, message in scope.catalog.validate_args(name, args if isinstance(args, dict) else {}):
        yield Violation(
            joined(joined(at, "args"), path) if path else joined(at, "args"), "ACTION_ARGS_INVALID", message
        )


def expressions(step: Step) -> Iterator[Expression]:
    """The args are one template."""
    yield Expression("args", step.args, ExpressionKind.TEMPLATE)


def _unknown(name: str, near: str | None) -> str:
    shown = name[:60]
    if near is not None:
        return f"no action '{shown}' is registered; did you mean '{near}'?"
    return f"no action '{shown}' is registered; register it with @action or correct the name"


CHECK_MS: Final = 60_000
"""How long after an attempt was handed out somebody first looks whether it is still alive; doubles from there."""


MAX_CONNECTION_REF: Final = 200


class ActionPlan(msgspec.Struct, frozen=True):
    """The compiled step. `connection` is None when the reference stands in the definition as it is."""

    args: Template
    connection: Template | None


class ActionBehaviour(Plain):
    """Hands attempts to the step workers and applies what their rows say."""

    def compile(self, step: Step) -> ActionPlan:
        return ActionPlan(compile_template(step.args), connection_template(step.connection_ref))

    def start(self, ctx: NodeContext) -> Iterable[Transition]:
        plan: ActionPlan = ctx.args
        fork = ctx.tick.state.fork
        given = fork.given(ctx.id) if fork else None
        try:
            value = self.rendered(ctx, plan) if given is None else None
            connection = rendered_connection(ctx, plan.connection)
        except ExpressionError as fault:
            return fail(ctx, StepError(fault.code, fault.message, retryable=False))
        return (next_attempt(ctx, ctx.tick.keep(value) if given is None else given, connection),)

    def rendered(self, ctx: NodeContext, plan: ActionPlan) -> JSON:
        """The input of the step's attempts. Raises ExpressionError."""
        return ctx.render(plan.args)

    def due(self, ctx: NodeContext) -> Iterable[Transition]:
        """The backoff is over: the next attempt gets the very input and connection of the first."""
        return (next_attempt(ctx, ctx.entry.input, ctx.entry.connection),)

    def finished(self, ctx: NodeContext, intent: Intent) -> Iterable[Transition]:
        return after_attempt(ctx, intent)


def after_attempt(ctx: NodeContext, intent: Intent) -> Iterable[Transition]:
    """What follows from the end of a worker's attempt: the node completes, is tried again, or fails."""
    if intent.status is AttemptStatus.SUCCEEDED:
        return complete(ctx, intent.output)
    error = intent.error or StepError("WORKER_LOST", "the attempt ended without a result")
    retry = ctx.retry
    failures = ctx.entry.attempt - ctx.entry.first_attempt + 1
    if may_retry(retry, failures, error, ctx.now - ctx.entry.entered_at):
        key = f"{ctx.tick.state.run_id}/{ctx.id}/{ctx.entry.attempt}"
        at = ctx.now + jittered_ms(retry, failures, key)
        return (tr.NodeRetrying(ctx.id, ctx.entry.attempt, short(error), at),)
    timed_out = intent.status is AttemptStatus.TIMED_OUT
    return fail(ctx, short(error), NodeStatus.TIMED_OUT if timed_out else NodeStatus.FAILED)


def connection_template(ref: str) -> Template | None:
    """The template of a connection_ref; None for one without expressions."""
    return compile_template(ref) if "${{" in ref else None


def rendered_connection(ctx: NodeContext, template: Template | None) -> str:
    """What a connection_ref becomes for this attempt and its retries. Raises ExpressionError unless it is a name."""
    if template is None:
        return ""
    ref = ctx.render(template)
    if not isinstance(ref, str) or not 1 <= len(ref) <= MAX_CONNECTION_REF:
        raise ExpressionError("must give the id or slug of a connection", ctx.node.step.connection_ref)
    return ref


def next_attempt(
    ctx: NodeContext, value: Payload, connection: str = "", *, deadline: int = 0, child: str = ""
) -> Transition:
    """The node's next attempt, which is looked after from here on; see `NodeScheduled`."""
    attempt, generation = ctx.entry.attempt + 1, ctx.entry.generation + 1
    return tr.NodeScheduled(
        ctx.id, attempt, generation, value, ctx.now + CHECK_MS, CHECK_MS, connection, deadline, child
    )


MAX_ERROR_IN_STATE: Final = 256


def short(error: StepError) -> StepError:
    """The error as the run header keeps it; the attempt row has all of it."""
    return StepError(error.code, clip(error.message, MAX_ERROR_IN_STATE), error.retryable)
