"""The queue that keeps the order of each group and swallows repeated ids for five minutes, as SQS FIFO does.

Only the oldest message of a group ever has a turn, and only while no message of the group is in flight. A receive
takes a group from its oldest message on, so what has been delivered is always the front of its group.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

from ductor.adapters import rules
from ductor.adapters.local.queue import SqliteQueue
from ductor.ports import Outgoing

_INSERT: Final = (
    "INSERT INTO queue_$name (id, turn, sent_at, grp, body) "
    "VALUES (?1, CASE WHEN EXISTS (SELECT 1 FROM queue_$name WHERE grp = ?3) THEN NULL ELSE ?1 END, ?2, ?3, ?4)"
)
# CROSS JOIN fixes the order of the loops: group after group by turn, each from its oldest message on. What the limit
# cuts off is then always the end of a group.
_TAKE: Final = (
    "WITH heads AS MATERIALIZED "
    "(SELECT grp FROM queue_$name WHERE turn IS NOT NULL ORDER BY turn, id LIMIT ?2) "
    "UPDATE queue_$name SET turn = NULL, visible_at = ?1, receives = receives + 1 WHERE id IN "
    "(SELECT m.id FROM heads CROSS JOIN queue_$name AS m INDEXED BY queue_$name_group ON m.grp = heads.grp LIMIT ?2) "
    "RETURNING id, body, grp, receives, sent_at"
)
_REAPPEAR: Final = "UPDATE queue_$name SET visible_at = 0 WHERE visible_at BETWEEN 1 AND ? RETURNING grp"
# The turn is one above the last id given out: behind the groups ready now, not behind those that come later. An oldest
# message that was never delivered has nothing in flight behind it, which spares the search.
_PROMOTE: Final = (
    "UPDATE queue_$name SET turn = (SELECT seq + 1 FROM sqlite_sequence WHERE name = 'queue_$name') "
    "WHERE id = (SELECT id FROM queue_$name WHERE grp = ?1 ORDER BY id LIMIT 1) AND turn IS NULL AND visible_at = 0 "
    "AND (receives = 0 OR NOT EXISTS (SELECT 1 FROM queue_$name WHERE grp = ?1 AND visible_at > 0))"
)
_GROUPS_PER_SELECT: Final = 64
_STANDING: Final = (
    f"SELECT grp, count(*) FROM queue_$name WHERE grp IN ({', '.join('?' * _GROUPS_PER_SELECT)}) GROUP BY grp"  # noqa: S608
)
_SLOTS: Final = 3
_REMEMBER: Final = (
    "INSERT INTO dedup_$name_$new (grp, dedup_id, until, message_id) SELECT ?1, ?2, ?3, ?4 WHERE NOT EXISTS "
    "(SELECT 1 FROM dedup_$name_$old WHERE grp = ?1 AND dedup_id = ?2 AND until > ?5) "
    "ON CONFLICT DO UPDATE SET until = excluded.until, message_id = excluded.message_id WHERE until <= ?5"
)
_REMEMBERED: Final = "SELECT message_id FROM dedup_$name_$new WHERE grp = ? AND dedup_id = ?"
_FORGET: Final = "DELETE FROM dedup_$name_$new"


class SqliteFifoQueue(SqliteQueue):
    """`ports.Queue` on SQLite with order and de-duplication per group. A receipt expires with its visibility."""

    fifo = True

    _swept_slot = -1

    def standing(self, groups: Set[str]) -> Mapping[str, int]:
        """How many messages of each of `groups` are not acknowledged, also in flight; without any: left out."""
        self._database.catch_up()
        found: dict[str, int] = {}
        pending = list(groups)
        with self._database.reading() as connection:
            for start in range(0, len(pending), _GROUPS_PER_SELECT):
                some = pending[start : start + _GROUPS_PER_SELECT]
                some += some[:1] * (_GROUPS_PER_SELECT - len(some))  # always as many, so that one statement is prepared
                found.update(connection.execute(self._sql(_STANDING), some))
        return found

    def _insert(self, connection: sqlite3.Connection, first_id: int, messages: Sequence[Outgoing], now: int) -> int:
        fresh = self._fresh(connection, list(enumerate(messages, first_id)), now)
        rows = [(message_id, now, message.group, message.body) for message_id, message in fresh]
        connection.executemany(self._sql(_INSERT), rows)
        return len(rows)

    def _take_sql(self) -> str:
        return self._sql(_TAKE)

    def _floor(self, now: int) -> int:
        return now

    def _reappear(self, connection: sqlite3.Connection, now: int) -> None:
        groups = connection.execute(self._sql(_REAPPEAR), (now,)).fetchall()
        if groups:
            self._settle(connection, (group for (group,) in groups))

    def _settle(self, connection: sqlite3.Connection, groups: Iterable[str]) -> None:
        """Give each group's oldest message its turn, unless one of the group is in flight."""
        distinct = [(group,) for group in dict.fromkeys(groups)]
        self._wake(connection.executemany(self._sql(_PROMOTE), distinct).rowcount)

    def _fresh(
        self, connection: sqlite3.Connection, numbered: list[tuple[int, Outgoing]], now: int
    ) -> list[tuple[int, Outgoing]]:
        """Remember the ids; the messages whose ids were not among those of the last five minutes."""
        slot = now // rules.DEDUP_WINDOW_MS
        self._sweep(connection, slot)
        until = now + rules.DEDUP_WINDOW_MS
        values = [(message.group, message.dedup_id, until, message_id, now) for message_id, message in numbered]
        if connection.executemany(self._slot_sql(_REMEMBER, slot), values).rowcount == len(numbered):
            return numbered
        return [pair for pair in numbered if self._is_remembered(connection, slot, *pair)]

    def _is_remembered(self, connection: sqlite3.Connection, slot: int, message_id: int, message: Outgoing) -> bool:
        key = (message.group, message.dedup_id)
        row = connection.execute(self._slot_sql(_REMEMBERED, slot), key).fetchone()
        return row is not None and row[0] == message_id

    def _sweep(self, connection: sqlite3.Connection, slot: int) -> None:
        """Empty the table of two slots ago. Were that undone, its entries would only lie there expired."""
        if slot > self._swept_slot:
            connection.execute(self._slot_sql(_FORGET, slot + 1))
            self._swept_slot = slot

    def _slot_sql(self, template: str, slot: int) -> str:
        new, old = str(slot % _SLOTS), str((slot - 1) % _SLOTS)
        return self._sql(template).replace("$new", new).replace("$old", old)
