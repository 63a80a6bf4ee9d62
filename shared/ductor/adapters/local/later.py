"""Writes of one transaction that are cheaper together, done before it commits. Keeps nothing beyond the transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

Write = Callable[[sqlite3.Connection, list[Any]], None]
"""Writes entries, in the order in which they were put off."""


class PutOff:
    """What the transaction under way has still to write. Used by the thread whose turn it is to write, and no other.

    Entries stay known after they were written: when a savepoint is undone whose block wrote what had been put off
    before it, they are written once more.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[Write, Any]] = []
        self._written = 0

    def add(self, write: Write, entries: Sequence[Any]) -> None:
        """Have `write` called with these entries at the next `carry_out`, with all others that are put off for it."""
        self._entries += [(write, entry) for entry in entries]

    def carry_out(self, connection: sqlite3.Connection) -> None:
        """Write now what is put off. Raises sqlite3.Error."""
        pending: dict[Write, list[Any]] = {}
        for write, entry in self._entries[self._written :]:
            pending.setdefault(write, []).append(entry)
        self._written = len(self._entries)
        for write, entries in pending.items():
            write(connection, entries)

    @property
    def pending(self) -> bool:
        """Whether there is anything to write."""
        return self._written < len(self._entries)

    @property
    def mark(self) -> tuple[int, int]:
        """Where a savepoint begins."""
        return len(self._entries), self._written

    def undo(self, mark: tuple[int, int]) -> None:
        """All since `mark` was rolled back: what was put off since then is gone, what was written is not any more."""
        length, self._written = mark
        del self._entries[length:]

    def clear(self) -> None:
        """The transaction is over."""
        self._entries.clear()
        self._written = 0
