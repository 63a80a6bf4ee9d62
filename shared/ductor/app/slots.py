"""Slots of concurrency: who has one, who waits for one, and who is next. One mechanism for runs of every origin.

Rows of a family, environment and key, all in one partition: `SLOT` counts the holders, `H#<run>` is one of them,
`Q#<place>#<run>` one that waits. A holder's row and the count change in one write, so they always agree. Whoever waits
writes its row before it looks at the count; whoever leaves lowers the count before it looks who waits: so one of the
two sees the other. Under `cancel_oldest` index `i1` has the holders by place. Everything here may be repeated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from ductor.app.headers import shard, sort_time
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import encode
from ductor.model.slots import OnLimit
from ductor.ports import Clock, Conflict, Delete, Expect, Index, Item, Op, Put, Table, UnavailableError

SLOT: Final = "SLOT"
HOLDER: Final = "H#"
WAITER: Final = "Q#"
SETTLE_MS: Final = 60_000
"""How soon after a change somebody looks whether everybody concerned has heard of it."""

EMPTY_TTL_MS: Final = 3_600_000
"""How long the count stays when nobody holds a slot: a late writer must not meet the same version of another life."""

TRIES: Final = 100
"""Lost races in a row before the message waits."""

MOST_SUPERSEDED: Final = 100
"""Runs that one newcomer has cancelled at most; those behind it, and its own next look, go on with the rest."""

MOST_MOVED_UP: Final = 100
"""Runs given a slot at once; the last of them asks for those behind it."""


class Seat(msgspec.Struct, frozen=True):
    """A run's demand for a slot. `place` orders those who wait (epoch ms)."""

    pk: str
    run_id: str
    lease: int
    place: int
    limit: int
    rule: OnLimit


class Count(msgspec.Struct, frozen=True, omit_defaults=True):
    """Body of `SLOT`. `check_every`: how long until the next look at it, doubling while nothing changes.

    `aged`: whether every holder is in the index by place, which those of another rule or of an earlier release are not.
    """

    held: int = 0
    check_every: int = SETTLE_MS
    aged: bool = False


class Held(msgspec.Struct, frozen=True, omit_defaults=True):
    """Body of `H#<run>`."""

    lease: int
    place: int


class Waiting(msgspec.Struct, frozen=True, omit_defaults=True):
    """Body of `Q#<place>#<run>`. `limit` is that of the run's own version, `aged`: its holder is found by place."""

    run_id: str
    lease: int
    limit: int
    aged: bool = False


def slots_pk(tenant: str, environment: str, family: str, key: str) -> str:
    """Partition of the slots that runs of one family, environment and key share; the key may hold anything."""
    digest = hashlib.sha256(encode([environment, family, key])).hexdigest()[:40]
    return f"CS#{tenant}#{digest}"


def check_pk(number: int) -> str:
    """Partition of index `i3`: counts by when somebody must look at them."""
    return f"SLOTS#{number}"


class Asked(StrEnum):
    """How a run that asks for a slot stands. LATE: it has one by a newer demand."""

    HAS = "has"
    WAITS = "waits"
    LATE = "late"


class Given(msgspec.Struct, frozen=True):
    """A run has its slot by this lease, and must be told."""

    run_id: str
    lease: int


def admission(given: Given, mark: str, now: int) -> Intent:
    """The news of a slot; `mark` is an id that nobody has seen."""
    return Intent(mark, given.run_id, IntentKind.ADMIT, now, attempt=given.lease)


class Slots:
    """The slots of all definitions. A lost race is tried again; raises UnavailableError when it is lost too often."""

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock

    def free(self, seat: Seat) -> tuple[Op, ...] | None:
        """What to write with the run's header so that it has the slot from the start; None when none is free."""
        item = self._table.get(seat.pk, SLOT)
        if _held(item) >= seat.limit or self._table.query(seat.pk, prefix=WAITER, limit=1).items:
            return None
        aged = still_aged(item, _aged(seat))
        return (self.counted(seat.pk, item, _held(item) + 1, aged), Put(_holder(seat), Expect.ABSENT))

    def has_room(self, seat: Seat) -> bool:
        """Whether a slot is free, or the run's own already."""
        return self.free(seat) is not None or self._table.get(seat.pk, HOLDER + seat.run_id) is not None

    def ask(self, seat: Seat) -> tuple[Asked, list[Given]]:
        """Give the run a slot or a place in the line: how it stands now, and which others are to be told of theirs."""
        known = self._holding(seat)
        if known is not None:
            return known, []
        body = encode_row(Waiting(seat.run_id, seat.lease, seat.limit, _aged(seat)))
        # The lease is the version: who moves up a waiter that left and came back must lose.
        self._table.write((Put(Item(pk=seat.pk, sk=_waiter_sk(seat), version=seat.lease, body=body)),))
        moved = [one for one in self.move_up(seat.pk) if one.run_id != seat.run_id]
        return self._holding(seat) or Asked.WAITS, moved

    def take(self, seat: Seat) -> Asked:
        """Give the run a slot if one is free, and no place in the line."""
        for _ in range(TRIES):
            known = self._holding(seat)
            if known is not None:
                return known
            ops = self.free(seat)
            if ops is None:
                return Asked.WAITS
            if self._table.write(ops) is None:
                return Asked.HAS
        raise _lost(seat.pk)

    def _holding(self, seat: Seat) -> Asked | None:
        """HAS: the run has its slot, by this lease from now on. None: it has none."""
        for _ in range(TRIES):
            item = self._table.get(seat.pk, HOLDER + seat.run_id)
            if item is None:
                return None
            held = decode_held(item)
            if held.lease >= seat.lease:
                return Asked.HAS if held.lease == seat.lease else Asked.LATE
            taken = msgspec.structs.replace(_holder(seat), version=item.version + 1)
            self._table.write((Put(taken, item.version),))
        raise _lost(seat.pk)

    def leave(self, seat: Seat, heir: str = "") -> list[Given]:
        """Take back what the run has by this lease or an older one; who is to be told that they have a slot now.

        The slot goes to `heir`, the run that goes on in its place, if there is one, and else to the next in line.
        """
        self._drop_waiter(seat)
        for _ in range(TRIES):
            item = self._table.get(seat.pk, HOLDER + seat.run_id)
            if item is None or decode_held(item).lease > seat.lease:
                return self.move_up(seat.pk)
            if self._table.write(self._leaving(seat, item, heir)) is None:
                return [Given(heir, 1)] if heir else self.move_up(seat.pk)
        raise _lost(seat.pk)

    def _leaving(self, seat: Seat, item: Item, heir: str) -> Sequence[Op]:
        gone = Delete(item.pk, item.sk, item.version)
        if heir and self._table.get(seat.pk, HOLDER + heir) is None:
            return gone, Put(_holder(msgspec.structs.replace(seat, run_id=heir, lease=1)), Expect.ABSENT)
        count = self._table.get(seat.pk, SLOT)
        return gone, self.counted(seat.pk, count, max(0, _held(count) - 1), still_aged(count))

    def _drop_waiter(self, seat: Seat) -> None:
        item = self._table.get(seat.pk, _waiter_sk(seat))
        if item is not None and decode_waiting(item).lease <= seat.lease:
            self._table.write((Delete(item.pk, item.sk, item.version),))

    def move_up(self, pk: str) -> list[Given]:
        """Give free slots to those who wait, in their order."""
        given: list[Given] = []
        for _ in range(TRIES + MOST_MOVED_UP):
            line = self._table.query(pk, prefix=WAITER, limit=1).items
            count = self._table.get(pk, SLOT)
            if not line or len(given) == MOST_MOVED_UP:
                return given
            first = decode_waiting(line[0])
            if _held(count) >= first.limit:
                return given
            if self._give(line[0], first, count):
                given.append(Given(first.run_id, first.lease))
        raise _lost(pk)

    def _give(self, row: Item, first: Waiting, count: Item | None) -> bool:
        place = int(row.sk.removeprefix(WAITER).split("#", 1)[0])
        holder = _held_by(row.pk, first.run_id, Held(first.lease, place), aged=first.aged)
        ops = (
            self.counted(row.pk, count, _held(count) + 1, still_aged(count, first.aged)),
            Delete(row.pk, row.sk, row.version),
            Put(holder, Expect.ABSENT),
        )
        lost = self._table.write(ops)
        if lost is not None and lost.index == len(ops) - 1 and lost.current is not None:
            self._already(row, first, lost)
        return lost is None

    def _already(self, row: Item, first: Waiting, lost: Conflict) -> None:
        """A run that has a slot stands in the line too: its place goes, and its latest demand is met."""
        assert lost.current is not None  # the holder's row stood in the way
        held = lost.current
        if decode_held(held).lease < first.lease:
            own = Held(first.lease, decode_held(held).place)
            again = msgspec.structs.replace(held, body=encode_row(own), version=held.version + 1)
            self._table.write((Delete(row.pk, row.sk, row.version), Put(again, held.version)))
        else:
            self._table.write((Delete(row.pk, row.sk, row.version),))

    def superseded(self, seat: Seat) -> tuple[list[str], str]:
        """The oldest of the runs that must end so that the newest `limit` remain, oldest first; and the newest of all.

        The run that asks may be among them: others that came later may have asked before it. Reads no more rows than
        it names, however many have a slot.
        """
        line = [_place(item) for item in self._table.query(seat.pk, prefix=WAITER, limit=MOST_SUPERSEDED).items]
        count = self._table.get(seat.pk, SLOT)
        held = _held(count)
        most = min(MOST_SUPERSEDED, held + len(line) - seat.limit)
        if most <= 0:
            return [], seat.run_id
        if count is None or not decode_count(count).aged:
            holders = self._all(seat.pk)
        else:
            holders = self._by_age(seat.pk, min(most, held))
        doomed = sorted([*holders, *line])[:most]
        return [run_id for _, run_id in doomed], max([*self._newest(seat.pk), *holders])[1]

    def _by_age(self, pk: str, most: int) -> list[tuple[int, str]]:
        """The places of the oldest holders. Where the index is behind the rows, or lacks one, all rows are read."""
        found = self._table.query(pk, index=Index.I1, limit=max(1, most)).items
        rows = self._table.batch_get([(item.pk, item.sk) for item in found])
        places = sorted(_place(row) for row in rows.values())
        if len(places) < most or places != sorted(_indexed(item) for item in found):
            places = self._all(pk)
        return places[:most]

    def _all(self, pk: str) -> list[tuple[int, str]]:
        """The places of all holders, oldest first, by their rows."""
        return sorted(_place(row) for row in self.rows(pk, HOLDER))

    def _newest(self, pk: str) -> list[tuple[int, str]]:
        line = self._table.query(pk, prefix=WAITER, limit=1, descending=True).items
        holders = self._table.query(pk, index=Index.I1, limit=1, descending=True).items
        return [*map(_place, line), *map(_indexed, holders)]

    def rows(self, pk: str, prefix: str) -> Iterator[Item]:
        """Every row of a kind."""
        cursor: str | None = None
        while True:
            page = self._table.query(pk, prefix=prefix, cursor=cursor, limit=500)
            yield from page.items
            cursor = page.cursor
            if cursor is None:
                return

    def counted(self, pk: str, known: Item | None, held: int, aged: bool) -> Put:
        """The count, to be looked at soon. Without holders it may go after a while."""
        now = self._clock.now_ms()
        # Never later than before: under many changes nobody would ever look.
        look_at = min(now + SETTLE_MS, look_due(known) or now + SETTLE_MS)
        ttl = None if held else (now + EMPTY_TTL_MS) // 1000
        item = Item(
            pk=pk,
            sk=SLOT,
            version=known.version + 1 if known else 1,
            body=encode_row(Count(held, aged=aged)),
            ttl=ttl,
            i3=(check_pk(shard(pk)), f"{sort_time(look_at)}#{pk}") if held else None,
        )
        return Put(item, known.version if known else Expect.ABSENT)


def look_due(count: Item | None) -> int:
    """When somebody must look at the slots of a count (epoch ms), 0 when nobody needs to."""
    return int(count.i3[1].split("#", 1)[0]) if count is not None and count.i3 is not None else 0


def still_aged(count: Item | None, comer: bool = True) -> bool:
    """Whether the index has every holder, when one more comes that it has or has not, or when one leaves."""
    before = Count() if count is None else decode_count(count)
    return comer and (before.aged or not before.held)


def _held(count: Item | None) -> int:
    return decode_count(count).held if count is not None else 0


def _holder(seat: Seat) -> Item:
    return _held_by(seat.pk, seat.run_id, Held(seat.lease, seat.place), aged=_aged(seat))


def _held_by(pk: str, run_id: str, held: Held, *, aged: bool) -> Item:
    by_age = (pk, f"{sort_time(held.place)}#{run_id}") if aged else None
    return Item(pk=pk, sk=HOLDER + run_id, body=encode_row(held), i1=by_age)


def _aged(seat: Seat) -> bool:
    return seat.rule is OnLimit.CANCEL_OLDEST


def _indexed(item: Item) -> tuple[int, str]:
    """The same as `_place`, of what the index says."""
    place, run_id = item.i1[1].split("#", 1) if item.i1 else ("0", "")
    return int(place), run_id


def _place(item: Item) -> tuple[int, str]:
    """The place of a holder or of one that waits, and its run."""
    if item.sk.startswith(HOLDER):
        return decode_held(item).place, item.sk.removeprefix(HOLDER)
    place, run_id = item.sk.removeprefix(WAITER).split("#", 1)
    return int(place), run_id


def _waiter_sk(seat: Seat) -> str:
    return f"{WAITER}{sort_time(seat.place)}#{seat.run_id}"


def _lost(pk: str) -> UnavailableError:
    return UnavailableError(f"lost {TRIES} races in a row for the slots {pk}")


encode_row: Callable[[Count | Held | Waiting], bytes] = msgspec.json.Encoder().encode


def decode_count(item: Item) -> Count:
    return msgspec.json.decode(item.body, type=Count)


def decode_held(item: Item) -> Held:
    return msgspec.json.decode(item.body, type=Held)


def decode_waiting(item: Item) -> Waiting:
    return msgspec.json.decode(item.body, type=Waiting)
