"""The rows of slots by themselves: who is superseded by whom, and how little of them a newcomer reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ductor.app.slot_repair import SlotRepair
from ductor.app.slots import (
    HOLDER,
    MOST_SUPERSEDED,
    SETTLE_MS,
    SLOT,
    Held,
    Seat,
    Slots,
    decode_count,
    encode_row,
)
from ductor.model.slots import OnLimit
from ductor.ports import Item, Page, Put
from ductor.testing.memory import MemoryTable, VirtualClock


def test_who_is_superseded_does_not_depend_on_who_asks() -> None:
    table, clock = MemoryTable(), VirtualClock()
    slots = Slots(table, clock)
    for place, run_id in ((3, "c"), (2, "b"), (1, "a")):
        slots.ask(Seat("pk", run_id, 1, place, 1, OnLimit.CANCEL_OLDEST))
    for run_id in ("a", "b", "c"):
        assert slots.superseded(Seat("pk", run_id, 1, 0, 1, OnLimit.CANCEL_OLDEST)) == (["a", "b"], "c")


class Counted(MemoryTable):
    """Counts the rows that are read."""

    read = 0

    def query(self, pk: str, **how: Any) -> Page:
        page = super().query(pk, **how)
        self.read += len(page.items)
        return page

    def batch_get(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Item]:
        self.read += len(keys)
        return super().batch_get(keys)


def at_the_limit(table: MemoryTable, limit: int = 500) -> Slots:
    """`limit` runs have a slot, and one more has asked for one. Run `n` has place `n`."""
    slots = Slots(table, VirtualClock())
    for place in range(1, limit + 2):
        slots.ask(newcomer(place, limit))
    return slots


def newcomer(place: int, limit: int = 500) -> Seat:
    return Seat("pk", f"{7 * place % 509:03d}-{place}", 1, place, limit, OnLimit.CANCEL_OLDEST)


def test_a_newcomer_reads_a_few_rows_however_many_have_a_slot() -> None:
    table = Counted()
    slots = at_the_limit(table)
    table.read = 0
    assert slots.superseded(newcomer(501)) == ([newcomer(1).run_id], newcomer(501).run_id)
    assert table.read < 10


def test_holders_that_the_index_does_not_know_are_superseded_all_the_same() -> None:
    table = MemoryTable()
    slots = at_the_limit(table, 3)
    for row in [row for row in table.rows() if row.sk.startswith(HOLDER)]:
        table.write([Put(msgspec.structs.replace(row, i1=None, version=row.version + 1))])
    assert slots.superseded(newcomer(4, 3))[0] == [newcomer(1).run_id]


def test_holders_from_before_the_index_are_older_than_one_that_it_has() -> None:
    table = MemoryTable()
    slots = Slots(table, VirtualClock())
    for place in (1, 2):
        slots.ask(msgspec.structs.replace(newcomer(place, 3), rule=OnLimit.QUEUE))
    for place in (3, 4):
        slots.ask(newcomer(place, 3))
    assert slots.superseded(newcomer(4, 3))[0] == [newcomer(1).run_id]


def test_a_count_of_an_earlier_release_says_nothing_of_the_index() -> None:
    table = MemoryTable()
    slots = at_the_limit(table, 3)
    for row in table.rows():
        if row.sk == SLOT:
            table.write([Put(msgspec.structs.replace(row, body=b'{"held":3}', version=row.version + 1))])
        if row.sk == HOLDER + newcomer(1).run_id:
            table.write([Put(msgspec.structs.replace(row, i1=None, version=row.version + 1))])
    assert slots.superseded(newcomer(4, 3))[0] == [newcomer(1).run_id]


def test_when_the_last_holder_from_before_has_left_a_look_trusts_the_index_again() -> None:
    table = Counted()
    clock = VirtualClock()
    slots = Slots(table, clock)
    slots.ask(msgspec.structs.replace(newcomer(1, 100), rule=OnLimit.QUEUE))
    for place in range(2, 102):
        slots.ask(newcomer(place, 100))
    slots.leave(newcomer(1, 100))
    clock.advance(SETTLE_MS)
    count = table.get("pk", SLOT)
    assert count is not None
    assert not decode_count(count).aged
    SlotRepair(table, clock).look("pk", "mark")
    slots.ask(newcomer(102, 100))
    table.read = 0
    assert slots.superseded(newcomer(102, 100))[0] == [newcomer(2).run_id]
    assert table.read < 10


def test_a_holder_whose_place_has_changed_is_not_cancelled_for_what_the_index_remembers() -> None:
    table = MemoryTable()
    slots = at_the_limit(table, 3)
    (oldest,) = [row for row in table.rows() if row.sk == HOLDER + newcomer(1).run_id]
    anew = encode_row(Held(2, 99))
    table.write([Put(msgspec.structs.replace(oldest, body=anew, version=oldest.version + 1))])
    assert slots.superseded(newcomer(4, 3))[0] == [newcomer(2).run_id]


def test_of_a_crowd_the_oldest_are_superseded_in_portions() -> None:
    table = MemoryTable()
    slots = Slots(table, VirtualClock())
    for place in range(1, 150):
        slots.ask(newcomer(place, 1))
    doomed, newest = slots.superseded(newcomer(149, 1))
    assert doomed == [newcomer(place).run_id for place in range(1, MOST_SUPERSEDED + 1)]
    assert newest == newcomer(149).run_id
