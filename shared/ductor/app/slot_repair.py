"""Looks after slots: frees those of runs that are gone, tells runs that have one and do not know, moves others up.

Nothing here is needed as long as nobody dies at the wrong moment. Bounded per sweep.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import Enum, auto
from itertools import islice
from typing import Final

import msgspec

from ductor.app.allowance import Allowance
from ductor.app.dispatch import intent_message, send_all
from ductor.app.headers import HEAD, SHARDS, is_stalled, read_what_is_readable, run_pk, shard, sort_time
from ductor.app.slots import (
    HOLDER,
    SLOT,
    WAITER,
    Count,
    Given,
    Slots,
    admission,
    check_pk,
    decode_count,
    decode_held,
    decode_waiting,
    encode_row,
    look_due,
    slots_pk,
    still_aged,
)
from ductor.model.intent import Intent
from ductor.model.run import RunState
from ductor.model.slots import SLOT_DUTY
from ductor.ports import Clock, Delete, Ids, Index, Item, Put, Queue, Table

MAX_PER_SWEEP: Final = 200
RUNS_AT_ONCE: Final = 100
LONGEST_MS: Final = 86_400_000
SETTLED_MS: Final = 3_600_000
"""When nothing has changed for so long, a run that is not there will not come any more."""


class SlotSweep:
    """A chore of the sweeper: under `drop` nobody waits, so that nobody would notice a slot that is free again."""

    def __init__(self, *, table: Table, intents: Queue, clock: Clock, ids: Ids) -> None:
        self._table = table
        self._repair = SlotRepair(table, clock)
        self._intents = intents
        self._clock = clock
        self._ids = ids

    def sweep(self) -> int:
        """Look at the slots that it is time to look at; how many."""
        allowed, until = Allowance(self._clock, MAX_PER_SWEEP), sort_time(self._clock.now_ms())
        looked = 0
        for number in range(SHARDS):
            page = self._table.query(check_pk(number), high=until, index=Index.I3, limit=max(1, allowed.left))
            for item in page.items:
                if allowed.left <= 0:
                    return looked
                allowed.spend(1)
                looked += 1
                told = self._repair.look(item.pk, f"{item.pk}:look:{self._ids.token(9)}")
                send_all(self._intents, [intent_message(intent, self._ids) for intent in told])
        return looked


class SlotRepair:
    """Makes the slots of one key right."""

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._slots = Slots(table, clock)
        self._clock = clock

    def look(self, pk: str, mark: str) -> list[Intent]:
        """What is to be told to whom; the ids begin with `mark`, which nobody has seen. Nothing before it is time.

        The next look is later: twice as much later when nothing has happened.
        """
        seen = self._table.get(pk, SLOT)
        if seen is None or look_due(seen) > self._clock.now_ms():
            return []  # of a thousand in line that come to look, one does
        settled = decode_count(seen).check_every >= SETTLED_MS
        given = self._holders(pk, settled)
        self._line(pk, settled)
        self._recount(pk)
        given += self._slots.move_up(pk)
        self._later(pk, seen)
        now = self._clock.now_ms()
        return [admission(one, f"{mark}:{place}", now) for place, one in enumerate(given)]

    def _later(self, pk: str, seen: Item) -> None:
        item = self._table.get(pk, SLOT)
        if item is None or item.version != seen.version:
            return  # it has changed, and whoever did that has asked for a look
        count = decode_count(item)
        every = min(count.check_every * 2, LONGEST_MS)
        at = sort_time(self._clock.now_ms() + count.check_every)
        body = encode_row(Count(count.held, every, count.aged))
        i3 = (check_pk(shard(pk)), f"{at}#{pk}") if count.held else None
        self._table.write(
            (Put(msgspec.structs.replace(item, version=item.version + 1, body=body, i3=i3), item.version),)
        )

    def _holders(self, pk: str, settled: bool) -> list[Given]:
        """Slots of runs that have ended or have stepped out are free; those who wait for one that they have hear it."""
        told: list[Given] = []
        for part in _parts(self._slots.rows(pk, HOLDER)):
            rows = {item.sk.removeprefix(HOLDER): item for item in part}
            for run_id, state in self._states(rows, settled).items():
                item = rows[run_id]
                lease = decode_held(item).lease
                verdict = Verdict.GONE if state is None else _judged(state, pk, lease, holds=True)
                if verdict is Verdict.GONE:
                    self._free(item)
                elif verdict is Verdict.UNTOLD:
                    told.append(Given(run_id, lease))
        return told

    def _line(self, pk: str, settled: bool) -> None:
        """Who has ended or has stepped out waits no more."""
        for part in _parts(self._slots.rows(pk, WAITER)):
            rows = {decode_waiting(item).run_id: item for item in part}
            for run_id, state in self._states(rows, settled).items():
                item = rows[run_id]
                if state is None or _judged(state, pk, decode_waiting(item).lease, holds=False) is Verdict.GONE:
                    self._table.write((Delete(item.pk, item.sk, item.version),))

    def _states(self, run_ids: Collection[str], settled: bool) -> dict[str, RunState | None]:
        """Those that can be read; None for one that is not there, unless it may still come to go on for another."""
        rows = self._table.batch_get([(run_pk(run_id), HEAD) for run_id in run_ids])
        found: dict[str, RunState | None] = {}
        for run_id in run_ids:
            item = rows.get((run_pk(run_id), HEAD))
            state = None if item is None or is_stalled(item) else read_what_is_readable(item)
            if state is not None or (item is None and settled):
                found[run_id] = state
        return found

    def _free(self, item: Item) -> None:
        """The holder's row and the count in one write, as always."""
        count = self._table.get(item.pk, SLOT)
        held = decode_count(count).held if count is not None else 1
        counted = self._slots.counted(item.pk, count, max(0, held - 1), still_aged(count))
        self._table.write((Delete(item.pk, item.sk, item.version), counted))

    def _recount(self, pk: str) -> None:
        """The count is what its rows say, whatever somebody did to the table by hand; so is what the index has."""
        item = self._table.get(pk, SLOT)
        if item is None:
            return
        indexed = [row.i1 is not None for row in self._slots.rows(pk, HOLDER)]
        count, aged = decode_count(item), all(indexed)
        if len(indexed) != count.held or (indexed and aged != count.aged):
            self._table.write((self._slots.counted(pk, item, len(indexed), aged),))


def _parts(rows: Iterator[Item]) -> Iterator[list[Item]]:
    """So many rows at a time that the headers of their runs fit into memory."""
    while part := list(islice(rows, RUNS_AT_ONCE)):
        yield part


class Verdict(Enum):
    """What a row means: it stays, its run has gone, or its run has a slot and does not know."""

    STAYS = auto()
    GONE = auto()
    UNTOLD = auto()


def _judged(state: RunState, pk: str, lease: int, *, holds: bool) -> Verdict:
    """Going by the run's own state, which was read after the row."""
    slot, own = state.slot, state.origin
    if state.status.terminal:
        # What the run still owes it does itself.
        return Verdict.STAYS if SLOT_DUTY in state.duties else Verdict.GONE
    if slot is None:
        return Verdict.STAYS
    if slots_pk(own.tenant, own.environment, own.family_slug, slot.key) != pk:
        return Verdict.GONE
    if slot.lease != lease:
        # It has stepped out since; or it asks anew, and takes over the slot that it finds.
        return Verdict.STAYS if holds and slot.awaited and slot.lease > lease else Verdict.GONE
    if slot.awaited:
        return Verdict.UNTOLD if holds else Verdict.STAYS
    return Verdict.STAYS if holds and slot.held else Verdict.GONE
