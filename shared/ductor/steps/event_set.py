"""`event_set`: parks until a correlated set of events has arrived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Final

import msgspec

from ductor.engine.context import NodeContext
from ductor.engine.outcome import complete, fail
from ductor.expressions import compile_cel, compile_template
from ductor.model.definition import Step
from ductor.model.errors import StepError, Violation
from ductor.model.intent import Intent
from ductor.model.json import JSON, encode
from ductor.model.payload import MAX_OUTPUT_BYTES
from ductor.model.transition import Transition
from ductor.model.waiting import EventWait
from ductor.steps import reading
from ductor.steps.event_waiting import EventWaiting, OnTimeout, Plan, Wanted, changed, consumed
from ductor.steps.spec import EVENT_EDGES, Expression, ExpressionKind, Scope, arg, fault, read_args, templates
from ductor.steps.wait_event import ON_EVENT, EventName, Lookback, Milliseconds, event_view

EDGES: Final = EVENT_EDGES
CODE: Final = "EVENT_SET_SPEC_INVALID"


class Requirement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`count` events (default 1) of one name; `correlation_key` overrides the step's."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    event_name: EventName
    condition: str = ""
    correlation_key: str = ""
    count: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 1


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Every requirement must be met. Output: `{"events": {name: [..]}}`. Times as in `wait_event`."""

    requirements: Annotated[tuple[Requirement, ...], msgspec.Meta(min_length=1, max_length=50)]
    correlation_key: str = ""
    timeout_ms: Milliseconds = 0
    on_timeout: OnTimeout | None = None
    lookback_ms: Lookback = 0


def parse_args(args: JSON) -> Args:
    return reading.parse(Args, args)


def validate(step: Step, scope: Scope) -> Iterator[Violation]:
    """Unique requirement names, a correlation key for each, and `on_timeout` only where there is a timeout."""
    del scope
    args, violations = read_args(Args, step, CODE)
    yield from violations
    if args is None:
        return
    if args.on_timeout is not None and args.timeout_ms == 0:
        yield fault(step, CODE, "needs a positive timeout_ms; set one or remove on_timeout", "on_timeout")
    seen: set[str] = set()
    for index, requirement in enumerate(args.requirements):
        if requirement.name in seen:
            yield fault(step, CODE, f"'{requirement.name}' is used twice; rename one", f"requirements[{index}].name")
        seen.add(requirement.name)
        if not (requirement.correlation_key or args.correlation_key):
            message = "is needed here, or once for the step as args.correlation_key"
            yield fault(step, CODE, message, f"requirements[{index}].correlation_key")


def expressions(step: Step) -> Iterator[Expression]:
    yield from templates(step, "correlation_key")
    requirements = arg(step, "requirements")
    for index, item in enumerate(requirements if isinstance(requirements, list) else ()):
        if not isinstance(item, dict):
            continue
        at = f"args.requirements[{index}]"
        if isinstance(item.get("correlation_key"), str):
            yield Expression(f"{at}.correlation_key", item["correlation_key"], ExpressionKind.TEMPLATE)
        if isinstance(item.get("condition"), str) and item["condition"]:
            yield Expression(f"{at}.condition", item["condition"], ExpressionKind.CONDITION, ON_EVENT)


class EventSetBehaviour(EventWaiting):
    """Collects events until every requirement has its count. What comes beyond a count is ignored."""

    exclusive = False

    def compile(self, step: Step) -> Plan:
        args = parse_args(step.args)
        return Plan(
            tuple(_wanted(args, requirement) for requirement in args.requirements),
            args.timeout_ms,
            args.on_timeout,
            args.lookback_ms,
        )

    def matched(self, ctx: NodeContext, pause: EventWait, intent: Intent) -> Iterable[Transition]:
        place: int = intent.body["place"]
        collected = list(pause.collected) or [()] * len(pause.on)
        known = {event["event_id"] for event in collected[place]}
        if intent.body["event_id"] in known or len(collected[place]) >= pause.on[place].count:
            return
        yield consumed(pause, intent)
        collected[place] = (*collected[place], event_view(ctx, pause, intent))
        events = {one.name: list(found) for one, found in zip(pause.on, collected, strict=True)}
        if len(encode(events)) > MAX_OUTPUT_BYTES:
            message = f"the events of the set are over {MAX_OUTPUT_BYTES} bytes; publish references instead"
            yield from fail(ctx, StepError("OUTPUT_TOO_LARGE", message, retryable=False))
        elif all(len(found) == one.count for one, found in zip(pause.on, collected, strict=True)):
            yield from complete(ctx, ctx.tick.keep({"events": events}))
        else:
            yield changed(ctx, msgspec.structs.replace(pause, collected=tuple(collected)), ctx.entry.deadline)


def _wanted(args: Args, requirement: Requirement) -> Wanted:
    return Wanted(
        event_name=requirement.event_name,
        key=compile_template(requirement.correlation_key or args.correlation_key),
        condition=compile_cel(requirement.condition) if requirement.condition else None,
        name=requirement.name,
        count=requirement.count,
    )
