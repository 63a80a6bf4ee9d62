"""What `wait_event` and `event_set` share: pauses, registered before they are visible and closed by their rows.

A pause is ended by an event that holds its waiter row, or by something else that has closed the row first: whoever
changes the row wins, here only the winner is applied. So the deadline and an operator first ask for the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from ductor.engine.behaviour import Plain
from ductor.engine.context import NodeContext
from ductor.engine.outcome import complete, fail, give_up
from ductor.engine.signals import keep_signal
from ductor.expressions import ExpressionError, Program, Template
from ductor.model import transition as tr
from ductor.model.command import CheckWaiter, CloseWaiter, Command, RegisterWaiter, Registration, ScanLookback
from ductor.model.enums import NodeStatus
from ductor.model.errors import StepError
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import JSON
from ductor.model.payload import NULL, Payload
from ductor.model.run import Signal
from ductor.model.transition import Transition
from ductor.model.waiting import (
    MAX_KEY_CHARS,
    Awaited,
    Closing,
    EventWait,
    Registered,
    Waiter,
    event_mark,
    marks_of,
    registered_sk,
    token_of,
    waiter_pk,
    waiter_sk,
)
from ductor.steps import reading
from ductor.steps.resolving import refuses_all_but_resolve, resolved

CHECK_MS: Final = 60_000
"""How long after a pause began somebody first looks whether an event holds it; doubles from there."""

PAUSE_INLINE_BYTES: Final = 400
"""Most pauses fit and stand in the run header itself, so that a reader sees what is waited for; 500 of them fit."""

TIMEOUT: Final = "timeout"
RESOLVE: Final = "resolve"
SIGNAL: Final = "signal"


class OnTimeout(reading.Word):
    """What a passed deadline does."""

    FAIL = "fail"
    SKIP = "skip"


class Wanted(msgspec.Struct, frozen=True):
    """One thing to wait for, compiled: what `Awaited` is rendered from."""

    event_name: str
    key: Template
    condition: Program | None
    name: str = ""
    count: int = 1


class Plan(msgspec.Struct, frozen=True):
    """The args of a step that waits for events, compiled. Times are ms."""

    wanted: tuple[Wanted, ...]
    timeout_ms: int
    on_timeout: OnTimeout | None
    lookback_ms: int


class KeyInvalidError(ValueError):
    """A correlation key was rendered to what cannot be one."""


class EventWaiting(Plain):
    """Parks, registers, closes. What an event does to the pause is `matched`."""

    speaks = True
    exclusive = True

    def matched(self, ctx: NodeContext, pause: EventWait, intent: Intent) -> Iterable[Transition]:
        """An event that holds the pause (or a place in its set) has arrived."""
        raise AssertionError("said by each type")

    def start(self, ctx: NodeContext) -> Iterable[Transition]:
        plan: Plan = ctx.args
        try:
            on = tuple(awaited(ctx, wanted) for wanted in plan.wanted)
        except KeyInvalidError as fault:
            return fail(ctx, StepError("CORRELATION_KEY_INVALID", str(fault), retryable=False))
        except ExpressionError as fault:
            return fail(ctx, StepError(fault.code, fault.message, retryable=False))
        pause = EventWait(
            token=token_of(on),
            on=on,
            since=ctx.now,
            exclusive=self.exclusive,
            lookback_ms=plan.lookback_ms,
            seen=tuple(sorted(seen(ctx, on))),
        )
        limit = ctx.limit_ms(plan.timeout_ms)
        deadline = ctx.now + limit if limit else 0
        kept = _kept(ctx, pause)
        return (tr.NodeParked(ctx.id, ctx.entry.generation + 1, deadline, kept, ctx.now + CHECK_MS, CHECK_MS),)

    def due(self, ctx: NodeContext) -> Iterable[Transition]:
        pause = pause_of(ctx, ctx.entry.input)
        return () if pause.closing is not None else (closing(ctx, pause, Closing(TIMEOUT)),)

    def refuses(self, ctx: NodeContext, intent: Intent) -> tuple[str, str] | None:
        if intent.kind is IntentKind.RESOLVE and pause_of(ctx, ctx.entry.input).closing is not None:
            return "NOT_WAITING", f"not waiting: the end of {ctx.id} is being settled"
        return refuses_all_but_resolve(ctx, intent)

    def told(self, ctx: NodeContext, intent: Intent) -> Iterable[Transition]:
        pause = pause_of(ctx, ctx.entry.input)
        if intent.kind is IntentKind.EVENT_MATCHED:
            return self._event(ctx, pause, intent) if intent.body["token"] == pause.token else ()
        if intent.kind is IntentKind.RESOLVE:
            return (closing(ctx, pause, Closing(RESOLVE, intent.body, intent.output)),)
        if intent.kind is IntentKind.WAIT_CLOSED and pause.closing is not None:
            return self._closed(ctx, pause.closing, intent)
        return ()

    def _event(self, ctx: NodeContext, pause: EventWait, intent: Intent) -> Iterable[Transition]:
        """What an event does to the pause. A signal that the pause had asked its rows for is free again.

        A row of a registration that was never committed may not have known what the run had consumed by then.
        """
        if mark_of(pause, intent) in pause.seen:
            return
        yield from self.matched(ctx, pause, intent)
        why = pause.closing
        if why is not None and why.cause == SIGNAL:
            signal = Signal(why.body["event_id"], why.body["event_name"], why.output, why.at)
            yield from keep_signal(ctx.tick, signal)

    def _closed(self, ctx: NodeContext, closing: Closing, intent: Intent) -> Iterable[Transition]:
        """The rows are closed and no event was faster: now the pause ends as was asked."""
        if closing.cause == SIGNAL:
            return complete(ctx, ctx.tick.keep(closing.body | {"payload": ctx.tick.value(closing.output)}))
        if closing.cause == RESOLVE:
            return resolved(ctx, msgspec.structs.replace(intent, body=closing.body, output=closing.output))
        plan: Plan = ctx.args
        if plan.on_timeout is OnTimeout.SKIP:
            return give_up(ctx)
        error = StepError("EVENT_TIMEOUT", f"no event within {ctx.limit_ms(plan.timeout_ms)} ms", retryable=False)
        return fail(ctx, error, NodeStatus.TIMED_OUT)

    def register(self, ctx: NodeContext, transition: Transition) -> Iterable[Registration]:
        if not isinstance(transition, tr.NodeParked):
            return
        pause = pause_of(ctx, transition.input)
        if not pause.first:
            return
        state = ctx.tick.state
        rows: dict[tuple[str, str], Waiter] = {}
        for place, one in enumerate(pause.on):
            pk = waiter_pk(state.origin.tenant, one.event_name, one.correlation_key)
            sk = waiter_sk(state.run_id, ctx.id, transition.generation, pause.registration, place)
            rows[pk, sk] = _waiter(state.run_id, transition, pause, place)
        # First what says which rows there are: whoever closes the pause must find all of them.
        listed = Registered(token=pause.token, pause=transition.input, rows=tuple(rows), exclusive=pause.exclusive)
        yield RegisterWaiter(
            "", registered_sk(ctx.id, transition.generation, pause.registration), msgspec.to_builtins(listed)
        )
        for (pk, sk), waiter in rows.items():
            yield RegisterWaiter(pk, sk, msgspec.to_builtins(waiter))

    def commands(self, ctx: NodeContext, transition: Transition) -> Iterable[Command]:
        entry = ctx.entry
        waits = entry.status is NodeStatus.WAITING
        if isinstance(transition, tr.NodeParked) and waits and transition.generation == entry.generation:
            pause = pause_of(ctx, transition.input)
            if pause.closing is not None:
                yield CloseWaiter(ctx.id, entry.generation, answer=True)
            elif pause.first and pause.lookback_ms:
                yield ScanLookback(ctx.id, entry.generation)
        elif isinstance(transition, tr.NodeChecked) and waits:
            pause = pause_of(ctx, entry.input)
            if pause.closing is not None:
                yield CloseWaiter(ctx.id, entry.generation, answer=True)
            else:
                yield CheckWaiter(ctx.id, entry.generation, scan=bool(pause.lookback_ms))
        elif isinstance(transition, _ENDS) and entry.generation:
            yield CloseWaiter(ctx.id, entry.generation)


_ENDS: Final = (tr.NodeCompleted, tr.NodeFailed, tr.NodeSkipped, tr.NodeCancelled)


def pause_of(ctx: NodeContext, kept: Payload) -> EventWait:
    """The pause in a node's input."""
    return msgspec.convert(ctx.tick.value(kept), EventWait)


def _kept(ctx: NodeContext, pause: EventWait) -> Payload:
    return ctx.tick.keep(msgspec.to_builtins(pause), PAUSE_INLINE_BYTES)


def changed(ctx: NodeContext, pause: EventWait, deadline: int) -> Transition:
    """The node goes on waiting, for what `pause` says now. Its generation, and so its rows, stay."""
    entry = ctx.entry
    kept = _kept(ctx, pause)
    return tr.NodeParked(ctx.id, entry.generation, deadline, kept, entry.check_at, entry.check_every)


def closing(ctx: NodeContext, pause: EventWait, why: Closing) -> Transition:
    """Ask for the rows of the pause; until they are ours nothing is decided."""
    kept = _kept(ctx, msgspec.structs.replace(pause, closing=why))
    return tr.NodeParked(ctx.id, ctx.entry.generation, 0, kept, ctx.now + CHECK_MS, CHECK_MS)


def awaited(ctx: NodeContext, wanted: Wanted) -> Awaited:
    """What is waited for, with everything but EVENT bound. Raises KeyInvalidError."""
    condition = wanted.condition
    return Awaited(
        event_name=wanted.event_name,
        correlation_key=correlation_key(ctx.render(wanted.key)),
        name=wanted.name,
        condition=condition.source if condition else "",
        bound=ctx.tick.keep(ctx.bindings(condition.reads)) if condition else NULL,
        count=wanted.count,
    )


def correlation_key(value: JSON) -> str:
    """A rendered key as text: text itself, or a number. Raises KeyInvalidError."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = msgspec.json.encode(value).decode()
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_KEY_CHARS:
        raise KeyInvalidError(f"a correlation key is a number, or text of 1 to {MAX_KEY_CHARS} characters")
    return value


def seen(ctx: NodeContext, on: tuple[Awaited, ...]) -> Iterator[str]:
    """Marks of the events that earlier pauses of this run have consumed: none of them counts again."""
    wanted = tuple({marks_of(one.event_name, one.correlation_key) for one in on})
    return (mark for mark in ctx.tick.state.consumed if mark.startswith(wanted))


def mark_of(pause: EventWait, intent: Intent) -> str:
    """The mark of the event that the intent tells of."""
    one = pause.on[intent.body["place"]]
    return event_mark(one.event_name, one.correlation_key, intent.body["event_id"])


def consumed(pause: EventWait, intent: Intent) -> Transition:
    """The run remembers the event that the intent tells of."""
    return tr.EventConsumed(mark_of(pause, intent))


def _waiter(run_id: str, parked: tr.NodeParked, pause: EventWait, place: int) -> Waiter:
    return Waiter(
        run_id=run_id,
        node=parked.node,
        generation=parked.generation,
        token=pause.token,
        place=place,
        since=pause.since,
        pause=parked.input,
        exclusive=pause.exclusive,
        conditional=bool(pause.on[place].condition),
        seen=pause.seen,
    )
