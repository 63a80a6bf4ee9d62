"""`wait_event`: parks until an event with a name and a correlation key arrives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Final

import msgspec

from ductor.engine.context import NodeContext, rfc3339
from ductor.engine.outcome import complete
from ductor.expressions import ExpressionError, compile_cel, compile_template
from ductor.model import transition as tr
from ductor.model.definition import Step
from ductor.model.errors import Violation
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import JSON
from ductor.model.run import Signal
from ductor.model.transition import Transition
from ductor.model.waiting import Closing, EventWait
from ductor.steps import reading
from ductor.steps.event_waiting import SIGNAL, EventWaiting, OnTimeout, Plan, Wanted, closing, consumed, pause_of
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
Lookback = Annotated[int, msgspec.Meta(ge=0, le=86_400_000)]


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`correlation_key` is a template; `condition` (CEL on EVENT) rejects events that match otherwise.

    `timeout_ms` 0 = waits without end. `lookback_ms`, at most a day: an event published up to so long before also
    counts. Output: `{"event_name", "correlation_key", "event_id", "payload", "received_at"}`.
    """

    event_name: EventName
    correlation_key: Annotated[str, msgspec.Meta(min_length=1)]
    condition: str = ""
    timeout_ms: Milliseconds = 0
    on_timeout: OnTimeout | None = None
    lookback_ms: Lookback = 0


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


class WaitEventBehaviour(EventWaiting):
    """One event ends the pause: the first that claims its row."""

    takes_signals = True

    def compile(self, step: Step) -> Plan:
        args = parse_args(step.args)
        condition = compile_cel(args.condition) if args.condition else None
        wanted = Wanted(args.event_name, compile_template(args.correlation_key), condition)
        return Plan((wanted,), args.timeout_ms, args.on_timeout, args.lookback_ms)

    def start(self, ctx: NodeContext) -> Iterable[Transition]:
        """A kept signal ends the wait before it begins."""
        plan: Plan = ctx.args
        for signal in ctx.tick.state.signals:
            if _fits(ctx, plan.wanted[0], signal, ""):
                output = _signal_view(signal, "") | {"payload": ctx.tick.value(signal.payload)}
                yield tr.SignalTaken(signal.id)
                yield from complete(ctx, ctx.tick.keep(output))
                return
        yield from super().start(ctx)

    def told(self, ctx: NodeContext, intent: Intent) -> Iterable[Transition]:
        if intent.kind is IntentKind.SIGNAL:
            return self._offered(ctx, intent.id)
        return super().told(ctx, intent)

    def _offered(self, ctx: NodeContext, signal_id: str) -> Iterable[Transition]:
        """Take the signal if it fits; it ends the wait once its row is closed, unless an event is faster."""
        pause = pause_of(ctx, ctx.entry.input)
        key = pause.on[0].correlation_key
        plan: Plan = ctx.args
        for signal in ctx.tick.state.signals:
            if signal.id == signal_id and pause.closing is None and _fits(ctx, plan.wanted[0], signal, key):
                why = Closing(SIGNAL, _signal_view(signal, key), signal.payload, signal.at)
                return (tr.SignalTaken(signal.id), closing(ctx, pause, why))
        return ()

    def matched(self, ctx: NodeContext, pause: EventWait, intent: Intent) -> Iterable[Transition]:
        yield consumed(pause, intent)
        yield from complete(ctx, ctx.tick.keep(event_view(ctx, pause, intent)))


def event_view(ctx: NodeContext, pause: EventWait, intent: Intent) -> dict[str, JSON]:
    """An event that the intent tells of, as a step's output shows it."""
    one = pause.on[intent.body["place"]]
    return {
        "event_name": one.event_name,
        "correlation_key": one.correlation_key,
        "event_id": intent.body["event_id"],
        "payload": ctx.tick.value(intent.output),
        "received_at": rfc3339(intent.body["received_at"]),
    }


def _fits(ctx: NodeContext, wanted: Wanted, signal: Signal, key: str) -> bool:
    """Whether the step waits for the signal's name, and its condition is true of it."""
    if signal.name != wanted.event_name:
        return False
    if wanted.condition is None:
        return True
    view = _signal_view(signal, key) | {"payload": ctx.tick.value(signal.payload)}
    try:
        return ctx.holds(wanted.condition, None, EVENT=view)
    except ExpressionError:
        return False


def _signal_view(signal: Signal, key: str) -> dict[str, JSON]:
    """A signal as an event, but for its payload."""
    return {
        "event_name": signal.name,
        "correlation_key": key,
        "event_id": signal.id,
        "received_at": rfc3339(signal.at),
    }
