"""Large immutable values in the data file, so that they commit with the rows that name them. Never changes a value."""

from __future__ import annotations

from ductor.adapters import rules
from ductor.adapters.local.database import Database


class SqliteBlobs:
    """`ports.Blobs` on SQLite. A value takes up to 1 GB, SQLite's limit."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, key: str, data: bytes) -> None:
        with self._database.transaction() as connection:
            connection.execute("INSERT INTO blobs (key, data) VALUES (?, ?) ON CONFLICT (key) DO NOTHING", (key, data))

    def get(self, key: str) -> bytes | None:
        with self._database.reading() as connection:
            row = connection.execute("SELECT data FROM blobs WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def keys(self, prefix: str, limit: int) -> tuple[str, ...]:
        rules.check_limit(limit)
        low, _, end = rules.sort_bounds(prefix, None, None)
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT key FROM blobs WHERE key >= ?1 AND (?2 IS NULL OR key < ?2) ORDER BY key LIMIT ?3",
                (low, end, limit),
            ).fetchall()
        return tuple(row[0] for row in rows)

    def delete(self, key: str) -> None:
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM blobs WHERE key = ?", (key,))
