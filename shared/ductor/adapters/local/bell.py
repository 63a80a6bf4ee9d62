"""Wakes whoever serves several queues of one data file. Delivers nothing itself."""

from __future__ import annotations

from collections.abc import Sequence

from ductor.adapters.local.database import Database
from ductor.adapters.local.queue import ANY_QUEUE, SqliteQueue


class MessageBell:
    """Rings when any of the queues can deliver: at once for this process's sends, by polling for the rest."""

    def __init__(self, database: Database, queues: Sequence[SqliteQueue]) -> None:
        self._signal = database.signal(ANY_QUEUE)
        self._queues = queues

    def wait(self, wait_ms: int) -> None:
        """Return when a message can be delivered, or when one may have become visible; at latest after `wait_ms`."""
        left = wait_ms
        while left > 0:
            seen = self._signal.count
            pause = min(queue.pause_ms() for queue in self._queues)
            if pause <= 0:
                return
            pause = min(left, max(pause, 1))
            self._signal.wait(seen, pause / 1000)
            if self._signal.count != seen:
                return
            left -= pause
