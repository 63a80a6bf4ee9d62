"""`scatter`: opens one child scope per item, over the steps up to its gather."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final

import msgspec

from ductor.model.definition import Step
from ductor.model.errors import Violation
from ductor.model.json import JSON
from ductor.steps import reading
from ductor.steps.spec import PLAIN_EDGES, Expression, Scope, fault, read_args, texts

EDGES: Final = PLAIN_EDGES
CODE: Final = "SCATTER_SPEC_INVALID"
MAX_ITEMS: Final = 100_000
ON_ITEM: Final = frozenset({"ITEM", "INDEX"})

_PERCENT: Final = re.compile(r"(?:100|[0-9]{1,2})%", re.ASCII)


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`items_expr`: CEL that gives a list. `max_concurrency` 0 = all at once, else a sliding window.

    `tolerated_failures`: how many items may fail, a count or a share like `"10%"`. `item_key_expr`: CEL per item
    (ITEM, INDEX).
    """

    items_expr: Annotated[str, msgspec.Meta(min_length=1)]
    max_concurrency: Annotated[int, msgspec.Meta(ge=0, le=MAX_ITEMS)] = 0
    tolerated_failures: int | str = 0
    item_key_expr: str = ""


def parse_args(args: JSON) -> Args:
    return reading.parse(Args, args)


def validate(step: Step, scope: Scope) -> Iterator[Violation]:
    """The tolerance is a count or a share."""
    del scope
    args, violations = read_args(Args, step, CODE)
    yield from violations
    if args is not None and not _tolerance(args.tolerated_failures):
        message = f'must be a count from 0 to {MAX_ITEMS} or a share from "0%" to "100%"'
        yield fault(step, CODE, message, "tolerated_failures")


def _tolerance(value: int | str) -> bool:
    if isinstance(value, str):
        return _PERCENT.fullmatch(value) is not None
    return 0 <= value <= MAX_ITEMS


def expressions(step: Step) -> Iterator[Expression]:
    yield from texts(step, frozenset(), "items_expr")
    yield from texts(step, ON_ITEM, "item_key_expr")
