"""`approval`: a person decides. Opens a gate for a frozen audience; the deadline may decide instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Final

import msgspec

from ductor.engine.behaviour import Plain
from ductor.engine.context import NodeContext, rfc3339
from ductor.engine.outcome import complete, fail, give_up
from ductor.model import transition as tr
from ductor.model.definition import Step
from ductor.model.enums import EdgeType, OnError
from ductor.model.errors import Severity, StepError, Violation
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import JSON
from ductor.model.payload import Payload
from ductor.model.transition import Transition
from ductor.steps import reading
from ductor.steps.audience import Audience, MatchMode
from ductor.steps.spec import MAX_TIMEOUT_MS, Scope, fault, no_expressions, read_args

EDGES: Final = frozenset({EdgeType.APPROVED, EdgeType.REJECTED, EdgeType.DONE})
CODE: Final = "APPROVAL_SPEC_INVALID"
ACTION: Final = "approval"

expressions = no_expressions


class OnTimeout(reading.Word):
    """What a passed deadline does."""

    FAIL = "fail"
    APPROVE = "approve"
    SKIP = "skip"


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`timeout_ms` 0 or absent: waits without end. `approver_role` is a label and grants nothing.

    `on_timeout` needs a positive `timeout_ms`; without it a passed deadline fails the step.
    """

    audience: Audience
    approver_role: Annotated[str, msgspec.Meta(max_length=200)] = ""
    timeout_ms: Annotated[int, msgspec.Meta(ge=0, le=MAX_TIMEOUT_MS)] = 0
    on_timeout: OnTimeout | None = None
    expires_at_cel: str = ""


def parse_args(args: JSON) -> Args:
    return reading.parse(Args, args)


def validate(step: Step, scope: Scope) -> Iterator[Violation]:
    """The rules of "Add a human approval gate" (define and publish), each with its own sentence."""
    del scope
    if step.action != ACTION:
        yield Violation(
            f"{step.ref}.action",
            "APPROVAL_ACTION_INVALID",
            'an approval step needs "action": "approval" beside its "type"',
        )
    yield from _step_fields(step)
    args, violations = read_args(Args, step, CODE)
    yield from violations
    if args is not None:
        yield from _rules(step, args)


def _step_fields(step: Step) -> Iterator[Violation]:
    if step.timeout_ms:
        message = "an approval has its deadline in args.timeout_ms; remove timeout_ms from the step"
        yield Violation(f"{step.ref}.timeout_ms", CODE, message)
    if step.on_error is OnError.CONTINUE:
        message = "an approval cannot continue on error; use a DONE edge or args.on_timeout"
        yield Violation(f"{step.ref}.on_error", CODE, message)


def _rules(step: Step, args: Args) -> Iterator[Violation]:
    if not args.audience.roles and not args.audience.users:
        yield fault(step, CODE, "name at least one role or user who may decide", "audience")
    if args.audience.match_mode is MatchMode.ALL and len(set(args.audience.users)) > 1:
        message = "no reviewer is several users at once, so nobody can decide; use match_mode any, or a role"
        yield Violation(f"{step.ref}.args.audience.users", CODE, message, Severity.WARNING)
    if args.on_timeout is not None and args.timeout_ms == 0:
        yield fault(step, CODE, "needs a positive timeout_ms; set one or remove on_timeout", "on_timeout")
    if args.expires_at_cel:
        yield fault(step, CODE, "must be empty; set timeout_ms for a deadline", "expires_at_cel")


LAST_DEADLINE: Final = 9_999_999_999_999
"""In the year 2286: the last moment that the index of wake-ups can sort. A later deadline passes then."""


class Decision(msgspec.Struct, frozen=True, omit_defaults=True):
    """Body of an approve or reject intent. `roles` and `user` are the calling key's when it decided."""

    roles: tuple[str, ...] = ()
    user: str = ""
    approver_id: str | None = None
    comment: str | None = None


class ApprovalBehaviour(Plain):
    """Parks the node until somebody of the audience decides, or its deadline does.

    The first decision that the coordinator applies wins. The audience is that of the run's pinned version, so nothing
    that is published later changes who may decide. Output: `{"decision", "approver_id", "comment", "payload",
    "decided_at", "decided_by"}`; `decided_by` is the key's id, or `timeout`.
    """

    def compile(self, step: Step) -> Args:
        return parse_args(step.args)

    def start(self, ctx: NodeContext) -> Iterable[Transition]:
        args: Args = ctx.args
        limit = ctx.limit_ms(args.timeout_ms)
        deadline = min(ctx.now + limit, LAST_DEADLINE) if limit else 0
        return (tr.NodeParked(ctx.id, ctx.entry.generation + 1, deadline),)

    def due(self, ctx: NodeContext) -> Iterable[Transition]:
        args: Args = ctx.args
        if args.on_timeout is OnTimeout.SKIP:
            return give_up(ctx)
        if args.on_timeout is OnTimeout.APPROVE:
            return complete(ctx, _output(ctx, "approved", Decision(), None, "timeout"), _APPROVED)
        message = f"nobody decided within {ctx.limit_ms(args.timeout_ms)} ms"
        return fail(ctx, StepError("APPROVAL_TIMEOUT", message, retryable=False))

    def refuses(self, ctx: NodeContext, intent: Intent) -> tuple[str, str] | None:
        if intent.kind is IntentKind.RESOLVE:
            return "APPROVAL_NOT_RESOLVABLE", "an approval is approved or rejected; it cannot be resolved"
        args: Args = ctx.args
        decision = msgspec.convert(intent.body, Decision)
        if not args.audience.admits(decision.roles, decision.user):
            return AUDIENCE_MISMATCH, mismatch(args.audience)
        return None

    def told(self, ctx: NodeContext, intent: Intent) -> Iterable[Transition]:
        if intent.kind not in (IntentKind.APPROVE, IntentKind.REJECT):
            return ()
        decision, payload = msgspec.convert(intent.body, Decision), ctx.tick.value(intent.output)
        if intent.kind is IntentKind.APPROVE:
            return complete(ctx, _output(ctx, "approved", decision, payload, intent.actor), _APPROVED)
        return _rejected(ctx, _output(ctx, "rejected", decision, payload, intent.actor))


AUDIENCE_MISMATCH: Final = "AUDIENCE_MISMATCH"


def mismatch(audience: Audience) -> str:
    """What somebody outside the audience is told."""
    return f"this API key may not decide here; the decision is for {audience.describe()}"


_APPROVED: Final = frozenset({EdgeType.APPROVED})
_REJECTED: Final = frozenset({EdgeType.REJECTED})


def _rejected(ctx: NodeContext, output: Payload) -> Iterable[Transition]:
    """A rejection that no edge takes up fails the run; the decision is kept as the output."""
    transitions = iter(complete(ctx, output, _REJECTED))
    ended = next(transitions)
    if isinstance(ended, tr.NodeCompleted) and not ended.taken:
        error = StepError("APPROVAL_REJECTED", "the approval was rejected", retryable=False)
        yield from fail(ctx, error, output=output)
        return
    # One by one: what a failure does to the rest of the run depends on this node having ended.
    yield ended
    yield from transitions


def _output(ctx: NodeContext, decision: str, given: Decision, payload: JSON, decided_by: str) -> Payload:
    return ctx.tick.keep(
        {
            "decision": decision,
            "approver_id": given.approver_id,
            "comment": given.comment,
            "payload": payload,
            "decided_at": rfc3339(ctx.now),
            "decided_by": decided_by,
        }
    )
