"""The rows of digests: windows, their members, and where each run is. One conditional write per change.

Whoever changes a window first wins; the other reads it again. Knows nothing of run state.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ductor.app.headers import run_pk
from ductor.model.digest import (
    WINDOW_PREFIX,
    DigestWait,
    Joined,
    Member,
    Who,
    Window,
    WindowStatus,
    joined_sk,
    member_sk,
    window_sk,
)
from ductor.ports import Delete, Expect, Item, Op, Put, Table

OVER_TTL_MS: Final = 86_400_000
"""How long it is remembered that a run has left: a late command of it must not join once more."""

MAX_BATCH_BYTES: Final = 4_000_000
"""Arrivals of one window together; one that does not fit opens the next. A step's output takes 5 MB."""

_encode = msgspec.json.Encoder().encode
_window = msgspec.json.Decoder(Window).decode
_member = msgspec.json.Decoder(Member).decode
_joined = msgspec.json.Decoder(Joined).decode


class Seat(msgspec.Struct, frozen=True):
    """Where a run is: its own row, and the window with its row. No `window`: that has been cleared away."""

    who: Who
    item: Item
    joined: Joined
    window_item: Item | None
    window: Window | None


class DigestRows:
    """Reads and changes rows; every change is False, or None, when somebody else was faster."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def seat(self, who: Who) -> Seat | None:
        """Where the run is; None for one that never joined."""
        item = self._table.get(run_pk(who.run_id), joined_sk(who.node, who.generation))
        if item is None:
            return None
        joined = _joined(item.body)
        row = self._table.get(joined.pk, window_sk(joined.number)) if joined.pk else None
        window = _window(row.body) if row is not None else None
        if row is None or window is None or window.mark != joined.mark:
            return Seat(who, item, joined, None, None)
        return Seat(who, item, joined, row, window)

    def newest(self, pk: str) -> tuple[int, Item, Window] | None:
        """The last window that was opened, with its number."""
        rows = self._table.query(pk, prefix=WINDOW_PREFIX, limit=1, descending=True).items
        return (int(rows[0].sk.removeprefix(WINDOW_PREFIX)), rows[0], _window(rows[0].body)) if rows else None

    def open(self, pk: str, number: int, wait: DigestWait, first: Member) -> Window | None:
        """Open window `number` as `wait` says, with its first member as the leader."""
        who = first.who
        window = Window(
            mark=f"{who.run_id}/{who.node}/{who.generation}",
            closes_at=first.at + wait.wait_ms,
            most=wait.most,
            leader=who,
            joined=1,
            count=1,
            size=first.size,
            status=WindowStatus.FULL if wait.most == 1 else WindowStatus.OPEN,
        )
        row = Item(pk=pk, sk=window_sk(number), body=_encode(window))
        return window if self._enter(Put(row, Expect.ABSENT), number, window, first) else None

    def join(self, number: int, item: Item, window: Window, member: Member) -> Window | None:
        """Take a place in an open window, and the lead of one without a leader. The write checks that it is open."""
        joined = msgspec.structs.replace(
            window,
            joined=window.joined + 1,
            count=window.count + 1,
            size=window.size + member.size,
            leader=window.leader or member.who,
            term=window.term if window.leader else window.term + 1,
            status=WindowStatus.FULL if window.count + 1 >= window.most else WindowStatus.OPEN,
        )
        return joined if self._enter(Put(_next(item, joined), item.version), number, joined, member) else None

    def _enter(self, put: Put, number: int, window: Window, member: Member) -> bool:
        pk, place, who = put.item.pk, window.joined - 1, member.who
        own = Joined(pk=pk, number=number, place=place, mark=window.mark)
        rows = (
            Item(pk=pk, sk=member_sk(number, place), body=_encode(member)),
            Item(pk=run_pk(who.run_id), sk=joined_sk(who.node, who.generation), body=_encode(own)),
        )
        return self._table.write((put, *(Put(row, Expect.ABSENT) for row in rows))) is None

    def change(self, item: Item, window: Window) -> bool:
        """Rewrite a window that is still what `item` says."""
        return self._table.write((Put(_next(item, window), item.version),)) is None

    def refuse(self, who: Who, now: int) -> bool:
        """A run that never joined never will."""
        own = Item(pk=run_pk(who.run_id), sk=joined_sk(who.node, who.generation), body=_encode(Joined(over=True)))
        return self._table.write((Put(_until(own, now), Expect.ABSENT),)) is None

    def leave(self, seat: Seat, window: Window | None, now: int) -> bool:
        """The run leaves; the window becomes `window`, or stays as it is. The last one of an open window closes it."""
        own = msgspec.structs.replace(seat.joined, over=True)
        row = msgspec.structs.replace(seat.item, version=seat.item.version + 1, body=_encode(own))
        ops: list[Op] = [Put(_until(row, now), seat.item.version)]
        if seat.window_item is not None:
            ops.append(Delete(seat.joined.pk, member_sk(seat.joined.number, seat.joined.place)))
            if window is not None:
                ops.append(_changed(seat.window_item, window))
        return self._table.write(ops) is None

    def member(self, joined: Joined) -> Member | None:
        """What a run has brought; None when it has left."""
        item = self._table.get(joined.pk, member_sk(joined.number, joined.place))
        return _member(item.body) if item is not None else None

    def members(self, joined: Joined) -> Iterator[Member]:
        """All members of a window in the order in which they joined."""
        cursor: str | None = None
        while True:
            page = self._table.query(joined.pk, prefix=member_sk(joined.number), limit=500, cursor=cursor)
            yield from (_member(item.body) for item in page.items)
            cursor = page.cursor
            if cursor is None:
                return

    def clear(self, seat: Seat) -> None:
        """Remove a window that was handed over and that all members have left."""
        item = self._table.get(seat.joined.pk, window_sk(seat.joined.number))
        if item is None or _window(item.body).mark != seat.joined.mark:
            return
        done = _window(item.body).status is WindowStatus.DONE
        if done and not self._table.query(seat.joined.pk, prefix=member_sk(seat.joined.number), limit=1).items:
            self._table.write((Delete(item.pk, item.sk, item.version),))


def _next(item: Item, window: Window) -> Item:
    return msgspec.structs.replace(item, version=item.version + 1, body=_encode(window))


def _changed(item: Item, window: Window) -> Op:
    empty = not window.count and window.status is not WindowStatus.DONE
    return Delete(item.pk, item.sk, item.version) if empty else Put(_next(item, window), item.version)


def _until(item: Item, now: int) -> Item:
    return msgspec.structs.replace(item, ttl=(now + OVER_TTL_MS) // 1000)
