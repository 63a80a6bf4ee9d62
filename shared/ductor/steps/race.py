"""`race`: a join that the first branch to succeed wins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ductor.model.definition import Step
from ductor.model.errors import Violation
from ductor.model.json import JSON
from ductor.steps import reading
from ductor.steps.spec import PLAIN_EDGES, Scope, fault, no_expressions, read_args

EDGES: Final = PLAIN_EDGES
CODE: Final = "RACE_SPEC_INVALID"

expressions = no_expressions


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`cancel_losers`: whether the other branches are cancelled when one has won."""

    cancel_losers: bool = True


def parse_args(args: JSON) -> Args:
    return reading.parse(Args, args)


def validate(step: Step, scope: Scope) -> Iterator[Violation]:
    """A race needs branches to race."""
    _, violations = read_args(Args, step, CODE)
    yield from violations
    if len({edge.source_ref for edge in scope.incoming(step.ref)}) < 2:
        yield fault(step, CODE, "a race joins at least two branches; draw edges from the last step of each to it")
