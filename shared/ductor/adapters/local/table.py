"""Rows under (pk, sk) in the data file, with conditional, all-or-nothing writes. Never looks into a row's body."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ductor.adapters import rules
from ductor.adapters.local.database import Database
from ductor.ports import Check, Conflict, Delete, Expect, Index, Item, Op, Page, Put

_KEYS_PER_SELECT: Final = 200

_COLUMNS: Final = "pk, sk, version, body, ttl, i1p, i1s, i2p, i2s, i3p, i3s"
_GET: Final = f"SELECT {_COLUMNS} FROM rows WHERE pk = ? AND sk = ?"  # noqa: S608
_VERSION: Final = "SELECT version FROM rows WHERE pk = ? AND sk = ?"
_INSERT: Final = f"INSERT INTO rows ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (pk, sk) DO "  # noqa: S608
_PUT_ABSENT: Final = _INSERT + "NOTHING"
_PUT_ANY: Final = _INSERT + (
    "UPDATE SET version = excluded.version, body = excluded.body, ttl = excluded.ttl, i1p = excluded.i1p, "
    "i1s = excluded.i1s, i2p = excluded.i2p, i2s = excluded.i2s, i3p = excluded.i3p, i3s = excluded.i3s"
)
_PUT_PRESENT: Final = (
    "UPDATE rows SET version = ?3, body = ?4, ttl = ?5, i1p = ?6, i1s = ?7, i2p = ?8, i2s = ?9, i3p = ?10, i3s = ?11 "
    "WHERE pk = ?1 AND sk = ?2"
)
_PUT_VERSION: Final = _PUT_PRESENT + " AND version = ?12"
# A write that leaves the index entries as they are: naming the columns, even with the values they have, makes SQLite
# write each entry anew (5 of 9 us, and as much again in the commit). It changes nothing where they differ.
_PUT_VERSION_SAME: Final = (
    "UPDATE rows SET version = ?3, body = ?4 WHERE pk = ?1 AND sk = ?2 AND version = ?12 AND ttl IS ?5 "
    "AND i1p IS ?6 AND i1s IS ?7 AND i2p IS ?8 AND i2s IS ?9 AND i3p IS ?10 AND i3s IS ?11"
)
# The same for rows that only have a key and a body, which most are: 3 us instead of 5.
_PLAIN: Final = "INSERT INTO rows (pk, sk, version, body) VALUES (?, ?, ?, ?) ON CONFLICT (pk, sk) DO "
_PLAIN_ABSENT: Final = _PLAIN + "NOTHING"
_PLAIN_ANY: Final = _PLAIN + (
    "UPDATE SET version = excluded.version, body = excluded.body, ttl = NULL, i1p = NULL, i1s = NULL, i2p = NULL, "
    "i2s = NULL, i3p = NULL, i3s = NULL"
)
_PLAIN_VERSION_SAME: Final = (
    "UPDATE rows SET version = ?3, body = ?4 WHERE pk = ?1 AND sk = ?2 AND version = ?5 AND ttl IS NULL "
    "AND i1p IS NULL AND i2p IS NULL AND i3p IS NULL"
)
_DELETE: Final = "DELETE FROM rows WHERE pk = ? AND sk = ?"
_DELETE_VERSION: Final = _DELETE + " AND version = ?"
_PURGE: Final = "DELETE FROM rows WHERE id IN (SELECT id FROM rows WHERE ttl <= ? LIMIT ?)"

_NO_PAIR: Final = (None, None)


class SqliteTable:
    """`ports.Table` on SQLite. Index queries are consistent here; callers must not rely on it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, pk: str, sk: str) -> Item | None:
        rules.check_key(pk, sk)
        with self._database.reading() as connection:
            return _select(connection, pk, sk)

    def batch_get(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Item]:
        for key in keys:
            rules.check_key(*key)
        unique = list(dict.fromkeys(keys))
        found: dict[tuple[str, str], Item] = {}
        with self._database.reading() as connection:
            for start in range(0, len(unique), _KEYS_PER_SELECT):
                for item in _select_many(connection, unique[start : start + _KEYS_PER_SELECT]):
                    found[item.pk, item.sk] = item
        return found

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
        low, high, end = rules.sort_bounds(prefix, low, high)
        after = rules.decode_cursor(cursor, index, pk) if cursor is not None else None
        sql, values = _range_select(pk, index, (low, high, end), after, descending)
        with self._database.reading() as connection:
            items = [_item(row) for row in connection.execute(sql, [*values, limit + 1])]
        if len(items) <= limit:
            return Page(tuple(items))
        return Page(tuple(items[:limit]), rules.encode_cursor(index, pk, rules.position_of(items[limit - 1], index)))

    def write(self, ops: Sequence[Op]) -> Conflict | None:
        rules.check_ops(ops)
        if not ops:
            return None
        with self._database.transaction() as connection:
            if len(ops) == 1 or not rules.needs_undo(ops):
                return _apply_all(connection, ops)
            connection.execute("SAVEPOINT write")
            try:
                conflict = _apply_all(connection, ops)
                if conflict is not None:
                    connection.execute("ROLLBACK TO write")
            finally:
                if connection.in_transaction:
                    connection.execute("RELEASE write")
            return conflict

    def remove(self, keys: Sequence[tuple[str, str]]) -> None:
        for key in keys:
            rules.check_key(*key)
        with self._database.transaction() as connection:
            connection.executemany(_DELETE, keys)

    def purge(self, now_ms: int, *, limit: int = 1000) -> int:
        """Remove up to `limit` rows whose ttl has passed; how many there were. DynamoDB does this by itself."""
        with self._database.transaction() as connection:
            return connection.execute(_PURGE, (now_ms // 1000, limit)).rowcount


def _select(connection: sqlite3.Connection, pk: str, sk: str) -> Item | None:
    row = connection.execute(_GET, (pk, sk)).fetchone()
    return None if row is None else _item(row)


def _select_many(connection: sqlite3.Connection, keys: Sequence[tuple[str, str]]) -> Iterator[Item]:
    # Padded to powers of two with the last key, so that few statements are ever prepared.
    size = 1 << (len(keys) - 1).bit_length()
    values = [part for key in (*keys, *[keys[-1]] * (size - len(keys))) for part in key]
    sql = (
        f"WITH wanted (k, s) AS (VALUES {', '.join(['(?, ?)'] * size)}) "  # noqa: S608
        f"SELECT DISTINCT {_COLUMNS} FROM wanted JOIN rows ON pk = k AND sk = s"
    )
    yield from map(_item, connection.execute(sql, values))


def _item(row: tuple[Any, ...]) -> Item:
    pk, sk, version, body, ttl, i1p, i1s, i2p, i2s, i3p, i3s = row
    return Item(
        pk=pk,
        sk=sk,
        version=version,
        body=body,
        ttl=ttl,
        i1=None if i1p is None else (i1p, i1s),
        i2=None if i2p is None else (i2p, i2s),
        i3=None if i3p is None else (i3p, i3s),
    )


def _key_and_body(item: Item) -> tuple[str, str, int, bytes]:
    return item.pk, item.sk, item.version, item.body


def _values(item: Item) -> tuple[Any, ...]:
    pairs = (*(item.i1 or _NO_PAIR), *(item.i2 or _NO_PAIR), *(item.i3 or _NO_PAIR))
    return (item.pk, item.sk, item.version, item.body, item.ttl, *pairs)


def _range_select(
    pk: str,
    index: Index | None,
    bounds: tuple[str, str | None, str | None],
    after: Sequence[str] | None,
    descending: bool,
) -> tuple[str, list[str]]:
    """The statement and its values, but for the limit. Ties of an index are ordered by the row's own key."""
    partition, sort = (f"{index}p", f"{index}s") if index else ("pk", "sk")
    order = [sort, "pk", "sk"] if index else [sort]
    low, high, end = bounds
    clauses, values = [f"{partition} = ?", f"{sort} >= ?"], [pk, low]
    if high is not None:
        clauses.append(f"{sort} <= ?")
        values.append(high)
    if end is not None:
        clauses.append(f"{sort} < ?")
        values.append(end)
    if after is not None:
        clauses.append(f"({', '.join(order)}) {'<' if descending else '>'} ({', '.join('?' * len(order))})")
        values.extend(after)
    direction = " DESC" if descending else ""
    ordering = ", ".join(column + direction for column in order)
    return f"SELECT {_COLUMNS} FROM rows WHERE {' AND '.join(clauses)} ORDER BY {ordering} LIMIT ?", values  # noqa: S608


def _apply_all(connection: sqlite3.Connection, ops: Sequence[Op]) -> Conflict | None:
    for index, op in enumerate(ops):
        if not _apply(connection, op):
            return Conflict(index, _select(connection, *rules.key_of(op)))
    return None


def _apply(connection: sqlite3.Connection, op: Op) -> bool:
    if isinstance(op, Put):
        return _put(connection, op)
    if isinstance(op, Delete):
        return _delete(connection, op)
    return _check(connection, op)


def _put(connection: sqlite3.Connection, op: Put) -> bool:
    item, expect = op.item, op.expect
    plain = item.i1 is None and item.i2 is None and item.i3 is None and item.ttl is None
    if expect is Expect.ANY:
        connection.execute(_PLAIN_ANY if plain else _PUT_ANY, _key_and_body(item) if plain else _values(item))
        return True
    if expect is Expect.ABSENT:
        values = _key_and_body(item) if plain else _values(item)
        return connection.execute(_PLAIN_ABSENT if plain else _PUT_ABSENT, values).rowcount == 1
    if expect is Expect.PRESENT:
        return connection.execute(_PUT_PRESENT, _values(item)).rowcount == 1
    if plain:
        done = connection.execute(_PLAIN_VERSION_SAME, (*_key_and_body(item), expect)).rowcount == 1
    else:
        done = connection.execute(_PUT_VERSION_SAME, (*_values(item), expect)).rowcount == 1
    return done or connection.execute(_PUT_VERSION, (*_values(item), expect)).rowcount == 1


def _delete(connection: sqlite3.Connection, op: Delete) -> bool:
    if op.expect is Expect.ABSENT:
        return _check(connection, op)
    if isinstance(op.expect, Expect):
        return connection.execute(_DELETE, (op.pk, op.sk)).rowcount == 1 or op.expect is Expect.ANY
    return connection.execute(_DELETE_VERSION, (op.pk, op.sk, op.expect)).rowcount == 1


def _check(connection: sqlite3.Connection, op: Check | Delete) -> bool:
    row = connection.execute(_VERSION, (op.pk, op.sk)).fetchone()
    return rules.holds(op.expect, None if row is None else row[0])
