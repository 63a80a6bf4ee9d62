"""`digest`: the arrivals of many runs with one key become one; the leader goes on, the others end as merged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

import msgspec

from ductor.model.definition import Step
from ductor.model.errors import Violation
from ductor.model.json import JSON
from ductor.steps import reading
from ductor.steps.spec import PLAIN_EDGES, Expression, Scope, fault, read_args, templates
from ductor.steps.wait import duration_problem

EDGES: Final = PLAIN_EDGES
CODE: Final = "DIGEST_SPEC_INVALID"


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`digest_key`, `dedup_key` and `arrival` (what each run contributes) are templates.

    Either `window` (a fixed duration from the first arrival), or `max_wait` (a duration) together with `max_count`
    (closes at so many arrivals, at the latest after `max_wait`).
    """

    digest_key: Annotated[str, msgspec.Meta(min_length=1)]
    window: str | None = None
    max_wait: str | None = None
    max_count: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | None = None
    dedup_key: str = ""
    arrival: JSON = None


def parse_args(args: JSON) -> Args:
    return reading.parse(Args, args)


def validate(step: Step, scope: Scope) -> Iterator[Violation]:
    """Exactly one way to close, with well-formed durations."""
    del scope
    args, violations = read_args(Args, step, CODE)
    yield from violations
    if args is None:
        return
    counted = args.max_wait is not None and args.max_count is not None
    partly = args.max_wait is not None or args.max_count is not None
    if (args.window is not None) == partly or partly != counted:
        yield fault(step, CODE, "give either `window`, or both `max_wait` and `max_count`")
    for name in ("window", "max_wait"):
        text = getattr(args, name)
        if text is not None and (problem := duration_problem(text)):
            yield fault(step, CODE, problem, name)


def expressions(step: Step) -> Iterator[Expression]:
    return templates(step, "digest_key", "dedup_key", "arrival")
