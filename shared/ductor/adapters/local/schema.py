"""The layout of the data file, and the refusal of files that are not ours or newer than this code. Never reads rows."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from ductor.ports import QueueName, UnavailableError

APPLICATION_ID: Final = 0x44756374
"""Marks the file as Ductor's ("Duct"), so that another program's database is never written to."""

SCHEMA_VERSION: Final = 1


class ForeignFileError(UnavailableError):
    """The file is not a Ductor data file, or was written by a newer Ductor. Nothing in it was changed."""


# A rowid table with a unique key, not WITHOUT ROWID: bodies of kilobytes would spill every row into overflow pages.
_ROWS: Final = """
CREATE TABLE rows (
    id INTEGER PRIMARY KEY,
    pk TEXT NOT NULL, sk TEXT NOT NULL, version INTEGER NOT NULL, body BLOB NOT NULL, ttl INTEGER,
    i1p TEXT, i1s TEXT, i2p TEXT, i2s TEXT, i3p TEXT, i3s TEXT
);
CREATE UNIQUE INDEX rows_key ON rows (pk, sk);
CREATE INDEX rows_ttl ON rows (ttl) WHERE ttl IS NOT NULL;
CREATE INDEX rows_i1 ON rows (i1p, i1s, pk, sk) WHERE i1p IS NOT NULL;
CREATE INDEX rows_i2 ON rows (i2p, i2s, pk, sk) WHERE i2p IS NOT NULL;
CREATE INDEX rows_i3 ON rows (i3p, i3s, pk, sk) WHERE i3p IS NOT NULL;
"""

_BLOBS: Final = """
CREATE TABLE blobs (key TEXT PRIMARY KEY, data BLOB NOT NULL);
"""

_TIMERS: Final = """
CREATE TABLE timers (at INTEGER NOT NULL, run_id TEXT NOT NULL, PRIMARY KEY (at, run_id)) WITHOUT ROWID;
"""

# `turn` orders what can be delivered now; NULL is in flight, delayed, or behind an older message of its group.
# `visible_at` is when a message in flight or delayed becomes visible, 0 for one that is neither.
# AUTOINCREMENT: an id that came back would make an old receipt fit a new message.
_QUEUE: Final = """
CREATE TABLE queue_$name (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    turn INTEGER, visible_at INTEGER NOT NULL DEFAULT 0, receives INTEGER NOT NULL DEFAULT 0,
    sent_at INTEGER NOT NULL, grp TEXT NOT NULL, body BLOB NOT NULL
);
CREATE INDEX queue_$name_turn ON queue_$name (turn) WHERE turn IS NOT NULL;
CREATE INDEX queue_$name_hidden ON queue_$name (visible_at) WHERE visible_at > 0;
INSERT INTO sqlite_sequence (name, seq) VALUES ('queue_$name', 0);
"""

# Three tables take turns, each for five minutes; the one that is two slots old is emptied whole, which costs nothing
# per message and lets no entry be forgotten before its five minutes are over.
_FIFO: Final = """
CREATE INDEX queue_$name_group ON queue_$name (grp);
CREATE TABLE dedup_$name_0 (
    grp TEXT, dedup_id TEXT, until INTEGER, message_id INTEGER, PRIMARY KEY (grp, dedup_id)
) WITHOUT ROWID;
CREATE TABLE dedup_$name_1 (
    grp TEXT, dedup_id TEXT, until INTEGER, message_id INTEGER, PRIMARY KEY (grp, dedup_id)
) WITHOUT ROWID;
CREATE TABLE dedup_$name_2 (
    grp TEXT, dedup_id TEXT, until INTEGER, message_id INTEGER, PRIMARY KEY (grp, dedup_id)
) WITHOUT ROWID;
"""

_DEAD: Final = """
CREATE TABLE dead_letters (
    queue TEXT NOT NULL, message_id INTEGER NOT NULL, grp TEXT NOT NULL, body BLOB NOT NULL, reason TEXT NOT NULL,
    receives INTEGER NOT NULL, sent_at INTEGER NOT NULL, died_at INTEGER NOT NULL, PRIMARY KEY (queue, message_id)
);
"""


def refuse_foreign(path: Path) -> None:
    """Look into the file without changing a byte of it. Raises ForeignFileError, sqlite3.Error."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        _is_current(connection, path)
    finally:
        connection.close()


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Create the layout in a new file, or check that the file's is ours. Safe against another process doing the same.

    Raises ForeignFileError, sqlite3.Error.
    """
    if _is_current(connection, path):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not _is_current(connection, path):
            for statement in _statements():
                connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _is_current(connection: sqlite3.Connection, path: Path) -> bool:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        return False
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise ForeignFileError(f"{path} is an SQLite file of another program, not a Ductor data file")
    if version > SCHEMA_VERSION:
        raise ForeignFileError(
            f"{path} was written by a newer Ductor (layout {version}; this one knows up to {SCHEMA_VERSION}): "
            "upgrade Ductor, or point it to another data directory"
        )
    return True


def _statements() -> list[str]:
    script = _ROWS + _BLOBS + _TIMERS + _DEAD
    for name in QueueName:
        script += _QUEUE.replace("$name", name)
    script += _FIFO.replace("$name", QueueName.INTENTS)
    script += f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION};"
    return [statement for statement in script.split(";") if statement.strip()]
