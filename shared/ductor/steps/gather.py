"""`gather`: closes the nearest scatter, or joins plain branches, by a policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

import msgspec

from ductor.model.definition import Step
from ductor.model.errors import Violation
from ductor.model.json import JSON
from ductor.steps import reading
from ductor.steps.spec import PLAIN_EDGES, Expression, Scope, fault, read_args, texts

EDGES: Final = PLAIN_EDGES
CODE: Final = "GATHER_SPEC_INVALID"
ON_ITEM: Final = frozenset({"ITEM", "INDEX"})


class Policy(reading.Word):
    """How many branches must succeed."""

    ALL = "all"
    ANY = "any"
    QUORUM = "quorum"


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`quorum` is the number of successes for `policy: quorum`. `output_expr`: CEL per item (ITEM, INDEX)."""

    policy: Policy = Policy.ALL
    quorum: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None
    output_expr: str = ""


def parse_args(args: JSON) -> Args:
    return reading.parse(Args, args)


def validate(step: Step, scope: Scope) -> Iterator[Violation]:
    """A quorum is given exactly for the policy that needs it."""
    del scope
    args, violations = read_args(Args, step, CODE)
    yield from violations
    if args is None:
        return
    if args.policy is Policy.QUORUM and args.quorum is None:
        yield fault(step, CODE, "policy `quorum` needs the number of branches that must succeed", "quorum")
    if args.policy is not Policy.QUORUM and args.quorum is not None:
        yield fault(step, CODE, "only has a meaning with policy `quorum`; remove it or set the policy", "quorum")


def expressions(step: Step) -> Iterator[Expression]:
    return texts(step, ON_ITEM, "output_expr")
