"""Rows in memory with DynamoDB's conditions and order. Items are frozen, so what is handed out is never a copy."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ductor.adapters import rules
from ductor.ports import Check, Conflict, Index, Item, Op, Page, Put

_Position = tuple[str, ...]
"""Where a row stands in an order: (sort,) in the table, (sort, pk, sk) in an index."""

_PAIRS: Final[tuple[tuple[Index, Callable[[Item], tuple[str, str] | None]], ...]] = (
    (Index.I1, lambda item: item.i1),
    (Index.I2, lambda item: item.i2),
    (Index.I3, lambda item: item.i3),
)


class MemoryTable:
    """`ports.Table` in dicts and sorted lists. Index queries are consistent here; callers must not rely on it."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], Item] = {}
        self._orders: dict[tuple[Index | None, str], list[_Position]] = {}

    def get(self, pk: str, sk: str) -> Item | None:
        rules.check_key(pk, sk)
        return self._rows.get((pk, sk))

    def rows(self) -> Iterator[Item]:
        """Every row that is stored, in no order."""
        yield from self._rows.values()

    def batch_get(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Item]:
        for key in keys:
            rules.check_key(*key)
        return {key: self._rows[key] for key in keys if key in self._rows}

    def query(
        self,
        pk: str,
        *,
        prefix: str = "",
        low: str | None = None,
        high: str | None = None,
        index: Index | None = None,
        limit: int = 100,
        cursor: str | None = None,
        descending: bool = False,
    ) -> Page:
        rules.check_limit(limit)
        bounds = rules.sort_bounds(prefix, low, high)
        after = rules.decode_cursor(cursor, index, pk) if cursor is not None else None
        order = self._orders.get((index, pk), [])
        start, stop = _slice(order, bounds, None if after is None else tuple(after), descending)
        first, last = (max(start, stop - limit), stop) if descending else (start, min(stop, start + limit))
        positions = order[first:last][::-1] if descending else order[first:last]
        items = tuple(self._rows[position[1:] if index else (pk, position[0])] for position in positions)  # type: ignore[index]
        if stop - start <= limit:
            return Page(items)
        return Page(items, rules.encode_cursor(index, pk, positions[-1]))

    def write(self, ops: Sequence[Op]) -> Conflict | None:
        rules.check_ops(ops)
        for place, op in enumerate(ops):
            current = self._rows.get(rules.key_of(op))
            if not rules.holds(op.expect, None if current is None else current.version):
                return Conflict(place, current)
        for op in ops:
            if isinstance(op, Put):
                self._replace(rules.key_of(op), op.item)
            elif not isinstance(op, Check):
                self._replace(rules.key_of(op), None)
        return None

    def remove(self, keys: Sequence[tuple[str, str]]) -> None:
        for key in keys:
            rules.check_key(*key)
        for key in keys:
            self._replace(key, None)

    def purge(self, now_ms: int, *, limit: int = 1000) -> int:
        """Remove up to `limit` rows whose ttl has passed; how many there were."""
        gone = [key for key, item in self._rows.items() if item.ttl is not None and item.ttl <= now_ms // 1000][:limit]
        for key in gone:
            self._replace(key, None)
        return len(gone)

    def _replace(self, key: tuple[str, str], item: Item | None) -> None:
        old = self._rows.get(key)
        left = set(_places(old)) if old is not None else set()
        for order, position in _places(item) if item is not None else ():
            if (order, position) in left:
                left.remove((order, position))
            else:
                insort(self._orders.setdefault(order, []), position)
        for order, position in left:
            positions = self._orders[order]
            del positions[bisect_left(positions, position)]
        if item is None:
            self._rows.pop(key, None)
        else:
            self._rows[key] = item


def _places(item: Item) -> Iterator[tuple[tuple[Index | None, str], _Position]]:
    yield (None, item.pk), (item.sk,)
    for index, pair_of in _PAIRS:
        pair = pair_of(item)
        if pair is not None:
            yield (index, pair[0]), (pair[1], item.pk, item.sk)


def _slice(
    order: list[_Position],
    bounds: tuple[str, str | None, str | None],
    after: _Position | None,
    descending: bool,
) -> tuple[int, int]:
    """The part of the order within the bounds and beyond the cursor, as list indexes."""
    low, high, end = bounds
    start, stop = bisect_left(order, (low,)), len(order)
    if high is not None:
        stop = bisect_right(order, high, key=lambda position: position[0])
    if end is not None:
        stop = bisect_left(order, (end,))
    if after is not None and descending:
        stop = min(stop, bisect_left(order, after))
    elif after is not None:
        start = max(start, bisect_right(order, after))
    return start, max(start, stop)
