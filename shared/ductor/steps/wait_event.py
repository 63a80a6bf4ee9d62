"""`wait_event`: parks until an event with a name and a correlation key arrives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

import msgspec

from ductor.model.definition import Step
from ductor.model.errors import Violation
from ductor.model.json import JSON
from ductor.steps import reading
from ductor.steps.spec import (
    EVENT_EDGES,
    MAX_TIMEOUT_MS,
    Expression,
    Scope,
    conditions,
    fault,
    read_args,
    templates,
)

EDGES: Final = EVENT_EDGES
CODE: Final = "EVENT_SPEC_INVALID"
ON_EVENT: Final = frozenset({"EVENT"})

EventName = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=MAX_TIMEOUT_MS)]


class OnTimeout(reading.Word):
    """What a passed deadline does."""

    FAIL = "fail"
    SKIP = "skip"


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`correlation_key` is a template; `condition` (CEL on EVENT) rejects events that match otherwise.

    `timeout_ms` 0 = waits without end. `lookback_ms`: an event published up to so long before also counts.
    """

    event_name: EventName
    correlation_key: Annotated[str, msgspec.Meta(min_length=1)]
    condition: str = ""
    timeout_ms: Milliseconds = 0
    on_timeout: OnTimeout | None = None
    lookback_ms: Milliseconds = 0


def parse_args(args: JSON) -> Args:
    return reading.parse(Args, args)


def validate(step: Step, scope: Scope) -> Iterator[Violation]:
    """A literal event name, and `on_timeout` only where there is a timeout."""
    del scope
    args, violations = read_args(Args, step, CODE)
    yield from violations
    if args is not None and args.on_timeout is not None and args.timeout_ms == 0:
        yield fault(step, CODE, "needs a positive timeout_ms; set one or remove on_timeout", "on_timeout")


def expressions(step: Step) -> Iterator[Expression]:
    yield from templates(step, "correlation_key")
    yield from conditions(step, ON_EVENT, "condition")
