"""`approval`: a person decides. Opens a gate for a frozen audience; the deadline may decide instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

import msgspec

from ductor.model.definition import Step
from ductor.model.enums import EdgeType, OnError
from ductor.model.errors import Violation
from ductor.model.json import JSON
from ductor.steps import reading
from ductor.steps.spec import MAX_TIMEOUT_MS, Scope, fault, no_expressions, read_args

EDGES: Final = frozenset({EdgeType.APPROVED, EdgeType.REJECTED, EdgeType.DONE})
CODE: Final = "APPROVAL_SPEC_INVALID"
ACTION: Final = "approval"

expressions = no_expressions


class MatchMode(reading.Word):
    """How many of the audience's roles and users a reviewer must match."""

    ANY = "any"
    ALL = "all"


class OnTimeout(reading.Word):
    """What a passed deadline does."""

    FAIL = "fail"
    APPROVE = "approve"
    SKIP = "skip"


class Audience(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Who may decide; frozen when the gate opens and matched against the calling key's roles and user."""

    match_mode: MatchMode = MatchMode.ANY
    roles: tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=200)], ...] = ()
    users: tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=200)], ...] = ()


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
    if args.on_timeout is not None and args.timeout_ms == 0:
        yield fault(step, CODE, "needs a positive timeout_ms; set one or remove on_timeout", "on_timeout")
    if args.expires_at_cel:
        yield fault(step, CODE, "must be empty; set timeout_ms for a deadline", "expires_at_cel")
