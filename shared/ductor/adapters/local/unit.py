"""Group commit on the data file. Holds no state of its own: the database knows which thread is in a transaction."""

from __future__ import annotations

from contextlib import AbstractContextManager

from ductor.adapters.local.database import Database


class SqliteUnit:
    """`ports.Unit` on SQLite: `batch` is one transaction, `part` a savepoint in it.

    A batch inside a batch behaves like a part. A part outside a batch does nothing. When the file fails inside a
    batch, the whole batch is lost, and its end raises UnavailableError even if the failure was caught inside.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def batch(self) -> AbstractContextManager[object]:
        return self._database.batch()

    def part(self) -> AbstractContextManager[object]:
        return self._database.part()
