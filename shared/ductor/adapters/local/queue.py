"""A queue without order in the data file: visibility, redelivery, dead letters, and receivers woken at commit.

The ordered queue builds on it in `fifo`. Neither looks into a message's body.
"""

from __future__ import annotations

import functools
import sqlite3
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ductor.adapters import rules
from ductor.adapters.local.database import Database
from ductor.ports import Clock, Message, Outgoing, QueueName

ANY_QUEUE: Final = "messages"
"""The signal of all queues together."""

POLL_MS: Final = 50
"""How long a waiting receiver can miss what another process has sent."""

_LAST_ID: Final = "SELECT seq FROM sqlite_sequence WHERE name = 'queue_$name'"
_INSERT: Final = "INSERT INTO queue_$name (id, turn, visible_at, sent_at, grp, body) VALUES (?, ?, ?, ?, ?, ?)"
_TAKE: Final = (
    "UPDATE queue_$name SET turn = NULL, visible_at = ?, receives = receives + 1 WHERE id IN "
    "(SELECT id FROM queue_$name WHERE turn IS NOT NULL ORDER BY turn, id LIMIT ?) "
    "RETURNING id, body, grp, receives, sent_at"
)
_REAPPEAR: Final = (
    "UPDATE queue_$name SET visible_at = 0, turn = (SELECT seq + 1 FROM sqlite_sequence WHERE name = 'queue_$name') "
    "WHERE visible_at BETWEEN 1 AND ?"
)
_LOOK: Final = (
    "SELECT EXISTS (SELECT 1 FROM queue_$name WHERE turn IS NOT NULL), "
    "(SELECT min(visible_at) FROM queue_$name WHERE visible_at > 0)"
)
_RELEASE: Final = "UPDATE queue_$name SET visible_at = 1 WHERE visible_at > 0 AND receives > 0"
_OLDEST: Final = "SELECT sent_at FROM queue_$name ORDER BY id LIMIT 1"
_DEPTH: Final = "SELECT count(*) FROM queue_$name"
_ACK: Final = "DELETE FROM queue_$name WHERE id = ? AND receives = ? AND visible_at > ?"
_HIDE: Final = "UPDATE queue_$name SET visible_at = ? WHERE id = ? AND receives = ? AND visible_at > ?"
_BURY: Final = (
    "INSERT INTO dead_letters (queue, message_id, grp, body, reason, receives, sent_at, died_at) "
    "SELECT '$name', id, grp, body, ?, receives, sent_at, ? FROM queue_$name "
    "WHERE id = ? AND receives = ? AND visible_at > ?"
)
_DEAD: Final = (
    "SELECT message_id, body, grp, receives, sent_at, reason FROM dead_letters WHERE queue = ? "
    "ORDER BY message_id LIMIT ?"
)
_REVIVED: Final = "DELETE FROM dead_letters WHERE queue = ? AND message_id = ?"


@functools.cache
def named(template: str, name: str) -> str:
    """A statement for the queue of that name."""
    return template.replace("$name", name)


class SqliteQueue:
    """`ports.Queue` on SQLite, without order; `dedup_id` is ignored, as by a standard SQS queue.

    As there, a message whose visibility has run out can still be acknowledged until it is delivered again.
    """

    fifo = False

    def __init__(self, database: Database, name: QueueName, clock: Clock) -> None:
        self._database = database
        self._name = name
        self._clock = clock

    def send(self, messages: Sequence[Outgoing]) -> tuple[int, ...]:
        rules.check_outgoing(messages, fifo=self.fifo)
        if messages:
            # At the end of the unit, all at once: one statement for 200 runs' tasks instead of 200 (9 us each).
            with self._database.transaction():
                self._database.put_off.add(self._store, messages)
        return ()

    def receive(self, limit: int, *, visibility_ms: int, wait_ms: int = 0) -> tuple[Message, ...]:
        """Take up to `limit` messages, waiting up to `wait_ms` for the first; inside a batch without waiting.

        Outside a batch the taking itself is not forced to disk: a power loss may deliver the messages again.
        """
        rules.check_limit(limit)
        rules.check_visibility(visibility_ms)
        if self._database.in_batch:
            return self._take(limit, visibility_ms)
        signal = self._database.signal(self._name)
        deadline = time.monotonic() + wait_ms / 1000
        while True:
            seen = signal.count
            pause_ms = self.pause_ms()
            messages = self._take(limit, visibility_ms) if pause_ms <= 0 else ()
            left = deadline - time.monotonic()
            if messages or left <= 0:
                return messages
            signal.wait(seen, min(left, max(pause_ms, 1) / 1000))

    def ack(self, receipts: Sequence[str]) -> None:
        held = [rules.read_receipt(receipt) for receipt in receipts]
        if held:
            with self._database.transaction() as connection:
                self._remove(connection, held, self._clock.now_ms())

    def retry(self, receipts: Sequence[str], *, delay_ms: int) -> None:
        """Make visible again after `delay_ms` (0 to 12 hours); until then the receipt stays good."""
        rules.check_visibility(delay_ms)
        held = [rules.read_receipt(receipt) for receipt in receipts]
        if not held:
            return
        with self._database.transaction() as connection:
            now = self._clock.now_ms()
            values = [(max(1, now + delay_ms), message_id, receives, now) for message_id, receives, _ in held]
            connection.executemany(self._sql(_HIDE), values)
            self._reappear(connection, now)

    def dead_letter(self, receipts: Sequence[str], reason: str) -> None:
        held = [rules.read_receipt(receipt) for receipt in receipts]
        if not held:
            return
        with self._database.transaction() as connection:
            now = self._clock.now_ms()
            floor = self._floor(now)
            connection.executemany(self._sql(_BURY), [(reason, now, held_id, n, floor) for held_id, n, _ in held])
            self._remove(connection, held, now)

    def oldest_age_ms(self) -> int:
        self._database.catch_up()
        with self._database.reading() as connection:
            row = connection.execute(self._sql(_OLDEST)).fetchone()
        return 0 if row is None else max(0, self._clock.now_ms() - int(row[0]))

    def depth(self) -> int:
        """How many messages are not yet acknowledged, those in flight or delayed included."""
        self._database.catch_up()
        with self._database.reading() as connection:
            return int(connection.execute(self._sql(_DEPTH)).fetchone()[0])

    def release(self) -> None:
        """Make everything in flight visible again: for a process that knows that all receivers before it are gone."""
        with self._database.transaction() as connection:
            connection.execute(self._sql(_RELEASE))

    def dead_letters(self, limit: int = 100) -> tuple[tuple[Message, str], ...]:
        """The dead messages, oldest first, each with its reason. Their receipts are empty."""
        with self._database.reading() as connection:
            return self._read_dead(connection, limit)

    def redrive(self, limit: int = 100) -> int:
        """Send up to `limit` dead messages again, oldest first, as new ones; how many. All or none."""
        with self._database.transaction() as connection:
            dead = [message for message, _ in self._read_dead(connection, limit)]
            self.send(rules.again(dead, self._clock.now_ms()))
            connection.executemany(_REVIVED, [(self._name, int(message.id)) for message in dead])
        return len(dead)

    def _read_dead(self, connection: sqlite3.Connection, limit: int) -> tuple[tuple[Message, str], ...]:
        rules.check_limit(limit)
        rows = connection.execute(_DEAD, (self._name, limit)).fetchall()
        return tuple((Message(str(row[0]), row[1], row[2], "", row[3], row[4]), row[5]) for row in rows)

    def _sql(self, template: str) -> str:
        return named(template, self._name)

    def _wake(self, count: int) -> None:
        self._database.touch(self._name, count)
        self._database.touch(ANY_QUEUE, count)

    def pause_ms(self) -> int:
        """0 or less when something can be delivered, else how long to wait before looking again."""
        self._database.catch_up()
        with self._database.reading() as connection:
            ready, visible_at = connection.execute(self._sql(_LOOK)).fetchone()
        if ready:
            return 0
        return POLL_MS if visible_at is None else min(POLL_MS, int(visible_at) - self._clock.now_ms())

    def _take(self, limit: int, visibility_ms: int) -> tuple[Message, ...]:
        self._database.catch_up()
        with self._database.transaction(durable=False) as connection:
            now = self._clock.now_ms()
            self._reappear(connection, now)
            rows = connection.execute(self._take_sql(), (max(1, now + visibility_ms), limit)).fetchall()
        rows.sort()
        return tuple([_message(row) for row in rows])

    def _remove(self, connection: sqlite3.Connection, held: Sequence[tuple[int, int, str]], now: int) -> None:
        floor = self._floor(now)
        connection.executemany(self._sql(_ACK), [(message_id, receives, floor) for message_id, receives, _ in held])
        self._settle(connection, (group for _, _, group in held))

    def _store(self, connection: sqlite3.Connection, messages: Sequence[Outgoing]) -> None:
        first_id = 1 + int(connection.execute(self._sql(_LAST_ID)).fetchone()[0])
        self._wake(self._insert(connection, first_id, messages, self._clock.now_ms()))

    def _insert(self, connection: sqlite3.Connection, first_id: int, messages: Sequence[Outgoing], now: int) -> int:
        """Store the messages from that id on; how many there were to store."""
        rows = [
            (message_id, None, now + message.delay_ms, now, message.group, message.body)
            if message.delay_ms
            else (message_id, message_id, 0, now, message.group, message.body)
            for message_id, message in enumerate(messages, first_id)
        ]
        connection.executemany(self._sql(_INSERT), rows)
        return len(rows)

    def _take_sql(self) -> str:
        return self._sql(_TAKE)

    def _floor(self, now: int) -> int:
        """A receipt is good for removal while its message's `visible_at` is above this: here always."""
        return -1

    def _reappear(self, connection: sqlite3.Connection, now: int) -> None:
        """Make visible what was in flight or delayed until now."""
        self._wake(connection.execute(self._sql(_REAPPEAR), (now,)).rowcount)

    def _settle(self, connection: sqlite3.Connection, groups: Iterable[str]) -> None:
        """Messages of these groups have gone; without order, nothing waited for that."""


def _message(row: tuple[Any, ...]) -> Message:
    message_id, body, group, receives, sent_at = row
    return Message(str(message_id), body, group, rules.receipt_of(message_id, receives, group), receives, sent_at)
