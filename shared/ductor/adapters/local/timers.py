"""Wake-ups of runs as rows of the data file. Never sends anything: the runtime turns due ones into intents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ductor.adapters import rules
from ductor.adapters.local.database import Database

SIGNAL: Final = "timers"


class SqliteTimers:
    """`ports.Timers` on SQLite, and its reading end: `due`, then send the intents, then `fired`, all in one batch.

    Between `due` and `fired` a timer stays armed, so a crash delivers it again and never loses it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def arm(self, run_id: str, at: int) -> None:
        with self._database.transaction() as connection:
            row = connection.execute(
                "INSERT INTO timers (at, run_id) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING "
                "at = (SELECT min(at) FROM timers)",
                (at, run_id),
            ).fetchone()
            if row is not None and row[0]:
                self._database.touch(SIGNAL, 1)

    def due(self, now: int, limit: int = 100) -> tuple[tuple[str, int], ...]:
        """The (run id, at) pairs whose time has come, earliest first. They stay armed until `fired`."""
        rules.check_limit(limit)
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT run_id, at FROM timers WHERE at <= ? ORDER BY at, run_id LIMIT ?", (now, limit)
            )
            return tuple(rows)

    def fired(self, timers: Sequence[tuple[str, int]]) -> None:
        """Forget wake-ups whose intents have been sent."""
        with self._database.transaction() as connection:
            connection.executemany("DELETE FROM timers WHERE run_id = ? AND at = ?", timers)

    def next_at(self) -> int | None:
        """When the earliest timer is due, None when there is none."""
        with self._database.reading() as connection:
            row = connection.execute("SELECT min(at) FROM timers").fetchone()
        return None if row[0] is None else int(row[0])

    def wait(self, now: int, wait_ms: int) -> None:
        """Return when the earliest timer is due, an earlier one is armed in this process, or `wait_ms` are over."""
        signal = self._database.signal(SIGNAL)
        seen = signal.count
        next_at = self.next_at()
        if next_at is not None:
            wait_ms = min(wait_ms, next_at - now)
        if wait_ms > 0:
            signal.wait(seen, wait_ms / 1000)
