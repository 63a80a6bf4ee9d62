"""`bridge`: an external worker, in any language, does the work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

import msgspec

from ductor.model.definition import Step
from ductor.model.errors import Violation
from ductor.model.json import JSON
from ductor.steps import reading
from ductor.steps.spec import MAX_TIMEOUT_MS, WORK_EDGES, Expression, Scope, read_args, templates

EDGES: Final = WORK_EDGES
CODE: Final = "BRIDGE_SPEC_INVALID"


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`task_type` is what workers poll for; `input` is a template. The timeout runs until a worker takes the task."""

    task_type: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9._-]{0,127}$")]
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
