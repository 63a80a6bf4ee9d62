"""Concurrency at the door: a run gets its slot in the write that admits it, waits in line, or is refused.

So of many triggers at once no more are accepted under `drop` than there are slots. Runs that other runs begin go
without this: they ask with their first tick, as does whoever finds no slot free here.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ductor.app.payloads import PayloadStore
from ductor.app.refusals import invalid, precondition
from ductor.app.shared_cache import SharedCache
from ductor.app.slot_commands import seat_of
from ductor.app.slots import Seat, Slots
from ductor.engine.context import TickContext
from ductor.engine.graph import Graph, compile_graph
from ductor.engine.slots import slot_key
from ductor.expressions import ExpressionError
from ductor.model.definition import Definition
from ductor.model.errors import RefusedError
from ductor.model.run import RunState
from ductor.model.slots import CONCURRENCY_LIMIT, OnLimit, concurrency_of
from ductor.ports import Clock, Op, Table
from ductor.steps.behaviours import BEHAVIOURS

FIELD: Final = "concurrency.key"


class Door(msgspec.Struct, frozen=True):
    """`ops` belong to the write of the header. `waits`: the run stands in line when it has been written."""

    ops: tuple[Op, ...] = ()
    waits: bool = False


class SlotAdmission:
    """Decides for runs that are about to be admitted. Safe to use from several threads."""

    def __init__(self, table: Table, payloads: PayloadStore, clock: Clock) -> None:
        self._slots = Slots(table, clock)
        self._payloads = payloads
        self._clock = clock
        self._graphs: SharedCache[str, Graph] = SharedCache(64)

    def enter(self, state: RunState, definition: Definition) -> Door:
        """For the first header of a run, whose payloads are stored.

        Refuses with FAILED_PRECONDITION `CONCURRENCY_LIMIT` under `drop` when no slot is free, INVALID_ARGUMENT
        `EXPRESSION_ERROR` when the key has no value.
        """
        seat = self._seat(state, definition)
        if seat is None:
            return Door()
        ops = self._slots.free(seat)
        if ops is None and seat.rule is OnLimit.DROP:
            raise limit_reached(seat.limit)
        return Door(ops or (), waits=ops is None)

    def require_room(self, state: RunState, definition: Definition) -> None:
        """Refuse under `drop` what would find no slot now. It may have gone when the run asks for it."""
        seat = self._seat(state, definition)
        if seat is not None and seat.rule is OnLimit.DROP and not self._slots.has_room(seat):
            raise limit_reached(seat.limit)

    def _seat(self, state: RunState, definition: Definition) -> Seat | None:
        rule = concurrency_of(definition)
        if rule is None:
            return None
        graph = self._graphs.get(state.origin.definition_id, lambda: compile_graph(definition, BEHAVIOURS))
        ctx = TickContext(graph, state, self._clock.now_ms(), lambda one: self._payloads.load(state.run_id, one))
        try:
            key = slot_key(ctx)
        except ExpressionError as fault:
            raise invalid("EXPRESSION_ERROR", f"the concurrency key has no value: {fault.message}", FIELD) from fault
        assert key is not None  # there is a rule
        return seat_of(state.origin, rule, key, 1, state.origin.created_at)


def limit_reached(limit: int) -> RefusedError:
    message = f"{limit} runs with this concurrency key are at work; try again when one of them has ended"
    return precondition(CONCURRENCY_LIMIT, message, "definition_id")
