"""Carries out what runs ask of the slots of their definition's concurrency. All of it may be repeated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, cast

import msgspec

from ductor.app.dispatch import Handler
from ductor.app.headers import HEAD, is_stalled, read_what_is_readable, run_pk
from ductor.app.slot_repair import SlotRepair
from ductor.app.slots import Asked, Given, Seat, Slots, admission, slots_pk
from ductor.engine.graph import Graph
from ductor.model.command import AskSlot, Command, LeaveSlot
from ductor.model.enums import RunStatus
from ductor.model.errors import StepError
from ductor.model.intent import Intent, IntentKind
from ductor.model.run import Origin, RunState
from ductor.model.slots import CONCURRENCY_LIMIT, SLOT_DUTY, Concurrency, OnLimit, concurrency_of
from ductor.ports import Clock, Table

ACTOR: Final = "ductor"
"""Who cancels a run that a newer one supersedes."""


class SlotCommands:
    """The handlers, for `Dispatcher`."""

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._slots = Slots(table, clock)
        self._repair = SlotRepair(table, clock)
        self._clock = clock

    def handlers(self) -> Mapping[type, Handler]:
        """By the type of command."""
        return {AskSlot: self._ask, LeaveSlot: self._leave}

    def _ask(self, graph: Graph, state: RunState, command: Command, mark: str) -> Iterable[Intent]:
        asked = cast(AskSlot, command)
        seat = _seat(graph, state, asked.lease)
        if seat is None:
            return ()
        told = self._repair.look(seat.pk, f"{mark}:look") if asked.check else []
        if seat.rule is OnLimit.DROP:
            stands, others = self._slots.take(seat), list[Given]()
        else:
            stands, others = self._slots.ask(seat)
        told += [admission(one, f"{mark}:{place}", self._clock.now_ms()) for place, one in enumerate(others)]
        if stands is Asked.HAS:
            told.append(admission(Given(seat.run_id, seat.lease), f"{mark}:own", self._clock.now_ms()))
        elif stands is Asked.WAITS and seat.rule is OnLimit.DROP:
            told.append(self._dropped(seat, mark))
        elif stands is Asked.WAITS and seat.rule is OnLimit.CANCEL_OLDEST:
            told.extend(self._supersede(seat))
        return told

    def _dropped(self, seat: Seat, mark: str) -> Intent:
        message = f"{seat.limit} runs with this concurrency key are at work, and on_limit is drop"
        given = admission(Given(seat.run_id, seat.lease), f"{mark}:none", self._clock.now_ms())
        return msgspec.structs.replace(given, error=StepError(CONCURRENCY_LIMIT, message))

    def _supersede(self, seat: Seat) -> Iterable[Intent]:
        """Cancel the oldest runs, so that the newest have room. Those on their way out already are left alone."""
        doomed, newest = self._slots.superseded(seat)
        rows = self._table.batch_get([(run_pk(run_id), HEAD) for run_id in doomed])
        for run_id in doomed:
            item = rows.get((run_pk(run_id), HEAD))
            state = None if item is None or is_stalled(item) else read_what_is_readable(item)
            if state is not None and not state.status.terminal and state.ending is not RunStatus.CANCELLED:
                yield self._cancel(run_id, seat, newest)

    def _cancel(self, run_id: str, seat: Seat, newest: str) -> Intent:
        return Intent(
            id=f"{run_id}:superseded:{seat.run_id}:{seat.lease}",
            run_id=run_id,
            kind=IntentKind.CANCEL,
            at=self._clock.now_ms(),
            actor=ACTOR,
            request_id=f"superseded:{seat.run_id}:{seat.lease}",
            request_hash=CONCURRENCY_LIMIT,
            reason=f"superseded by run {newest}: concurrency allows {seat.limit}",
        )

    def _leave(self, graph: Graph, state: RunState, command: Command, mark: str) -> Iterable[Intent]:
        left = cast(LeaveSlot, command)
        now = self._clock.now_ms()
        seat = _seat(graph, state, left.lease)
        heir = state.successor.run_id if state.successor and state.status is RunStatus.CONTINUED_AS_NEW else ""
        given = self._slots.leave(seat, heir) if seat is not None else []
        told = [admission(one, f"{mark}:{place}", now) for place, one in enumerate(given) if one.run_id != heir]
        if state.status.terminal:
            told.append(Intent(f"{mark}:left", state.run_id, IntentKind.DUTY_DONE, now, body=SLOT_DUTY))
        return told


def seat_of(origin: Origin, rule: Concurrency, key: str, lease: int, place: int) -> Seat:
    """The demand of a run for a slot of its definition."""
    pk = slots_pk(origin.tenant, origin.environment, origin.family_slug, key)
    return Seat(pk, origin.run_id, lease, place, rule.limit, rule.on_limit)


def _seat(graph: Graph, state: RunState, lease: int) -> Seat | None:
    rule = concurrency_of(graph.definition)
    if rule is None or state.slot is None:
        return None
    return seat_of(state.origin, rule, state.slot.key, lease, state.slot.place)
