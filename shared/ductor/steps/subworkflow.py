"""`subworkflow`: runs another definition as a child run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

import msgspec

from ductor.model.definition import Step
from ductor.model.errors import Violation
from ductor.model.json import JSON
from ductor.steps import reading
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
