"""The one SQLite file behind the local ports: who may write when, what commits together, who is woken afterwards.

Knows nothing of rows or messages. Durable: what has returned survives `kill -9` and, with an honest disk, power loss.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Final, TypeVar

from ductor.adapters.local.later import PutOff
from ductor.adapters.local.schema import prepare, refuse_foreign
from ductor.adapters.local.signals import FairLock, Signal, Ticket
from ductor.ports import UnavailableError

_T = TypeVar("_T")

BUSY_TIMEOUT_MS: Final = 10_000
MAX_CHAIN: Final = 16
"""How many threads' transactions one commit may carry, so that none waits long for the others."""

_CACHE_KIB: Final = 16_384
_CHECKPOINT_PAGES: Final = 4_000
_WAL_LIMIT_BYTES: Final = 64 * 1024 * 1024

_OUTSIDE: Final = (sqlite3.OperationalError, sqlite3.InternalError)
_REASONS: Final = {
    sqlite3.SQLITE_BUSY: "is locked by another process",
    sqlite3.SQLITE_LOCKED: "is locked by another process",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full",
    sqlite3.SQLITE_READONLY: "is not writable",
    sqlite3.SQLITE_PERM: "is not accessible",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk reports an error",
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_NOTADB: "is not an SQLite file",
}


class _Local(threading.local):
    """What a thread has: its own reading connection, and whether it is the one that writes now."""

    reader: sqlite3.Connection | None = None
    writes: bool = False


class Database:
    """One data file. Threads share one writing connection, in turn, and read on connections of their own.

    One writing connection, because SQLite drops a connection's whole page cache when another one has written. Threads
    that wait for their turn join the transaction of the one before them, so that one forced write serves them all.
    Several processes may open the same file; their writes wait for each other up to `busy_timeout_ms`.
    """

    def __init__(self, path: Path, *, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> None:
        """Open the file, or create it for this user alone. Raises ForeignFileError, UnavailableError."""
        self.path = path
        self._busy_timeout_ms = busy_timeout_ms
        self._local = _Local()
        self._lock = FairLock()
        self._signals: dict[str, Signal] = {}
        self._touched: dict[str, int] = {}
        self.put_off = PutOff()
        self._readers: weakref.WeakSet[sqlite3.Connection] = weakref.WeakSet()
        self._broken: UnavailableError | None = None
        self._chain: list[Ticket] = []
        self._closed = False
        self._reading = _Reading(self)
        self._joined = _Joined(self)
        try:
            self._create()
            refuse_foreign(path)
            self._writer = self._open()
            prepare(self._writer, path)
        except (OSError, sqlite3.Error) as error:
            raise self.failure(error) from error

    def _create(self) -> None:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL, 0o600))

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path,
            timeout=self._busy_timeout_ms / 1000,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            factory=_Connection,
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT_BYTES}")
        return connection

    @property
    def in_batch(self) -> bool:
        """Whether this thread is inside a transaction of its own."""
        return self._local.writes

    @property
    def contended(self) -> bool:
        """Whether a thread waits for its turn to write."""
        return self._lock.waiting > 0

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection that sees the latest commit, or this thread's own transaction when it is inside one."""
        return self._joined if self._local.writes else self._reading

    def transaction(self, *, durable: bool = True) -> AbstractContextManager[sqlite3.Connection]:
        """A connection to write on: this thread's transaction when inside one, else a new one, committed at the end.

        With `durable=False` a new transaction is not forced to disk: a power loss may undo it, a crash of the process
        does not, and the next durable commit carries it along.
        """
        return self._joined if self._local.writes else _Transaction(self, durable)

    def batch(self) -> AbstractContextManager[object]:
        """One transaction around all that this thread does inside; nested, it bounds an exception like `part`."""
        return _Part(self) if self._local.writes else _Transaction(self, True)

    def part(self) -> AbstractContextManager[object]:
        """Inside a transaction, undo this block alone when an exception leaves it; outside, do nothing."""
        return _Part(self) if self._local.writes else contextlib.nullcontext()

    def signal(self, name: str) -> Signal:
        """The signal of that name, raised after each commit that touched it."""
        return self._signals.get(name) or self._signals.setdefault(name, Signal())

    def touch(self, name: str, count: int) -> None:
        """Inside a transaction: once it has committed, wake up to `count` waiters for that signal."""
        if count:
            self._touched[name] = self._touched.get(name, 0) + count

    def catch_up(self) -> None:
        """Write what this thread's transaction has put off, so that whoever looks next sees it. Outside, do nothing."""
        if self._local.writes and self.put_off.pending:
            with self._joined as connection:
                self.put_off.carry_out(connection)

    def close(self) -> None:
        """Close every connection once no write is under way. Whatever is called later raises UnavailableError."""
        self._lock.acquire()
        while self._chain:
            self._commit_chain(True)
            self._lock.acquire()
        try:
            self._closed = True
            for reader in list(self._readers):
                reader.close()
            self._writer.close()
        finally:
            self._lock.release()

    def reader(self) -> sqlite3.Connection:
        """This thread's reading connection."""
        connection = self._local.reader
        if connection is None:
            connection = self._open()
            connection.execute("PRAGMA query_only = ON")
            self._local.reader = connection
            self._readers.add(connection)
        return connection

    def writer(self) -> sqlite3.Connection:
        """The writing connection of the transaction under way. Raises UnavailableError after a failure inside it."""
        if self._broken is not None:
            raise UnavailableError(str(self._broken)) from self._broken
        return self._writer

    def begin(self, durable: bool) -> sqlite3.Connection:
        """Wait for this thread's turn and start a transaction, or join the one that the last thread left open."""
        self._lock.acquire()
        try:
            if self._chain:
                self._writer.execute("SAVEPOINT link")
            else:
                if not durable:
                    self._writer.execute("PRAGMA synchronous = NORMAL")
                self._writer.execute("BEGIN IMMEDIATE")
        except BaseException as error:
            self._settle(error, durable)
            raise
        self._local.writes = True
        return self._writer

    def end(self, commit: bool, durable: bool) -> None:
        """Commit or roll back, pass the turn on, then wake the waiters. Raises sqlite3.Error, UnavailableError.

        While other threads wait for their turn the commit is left to the last of them: one forced write for all.
        This thread returns only when that has happened.
        """
        self._local.writes = False
        if commit and self._broken is None:
            self._write_the_rest(durable)
        self.put_off.clear()
        broken = self._broken
        if broken is not None:
            self._settle(broken, durable)
            if commit:
                raise UnavailableError(str(broken)) from broken
            return
        if not commit:
            self._undo_link(durable)
            return
        ticket = Ticket()
        try:
            if self._chain:
                self._writer.execute("RELEASE link")
        except sqlite3.Error as error:
            self._settle(error, durable)
            raise
        self._chain.append(ticket)
        if durable and len(self._chain) < MAX_CHAIN and self.contended:
            self._lock.release()
            ticket.wait()
        else:
            self._commit_chain(durable)
        ticket.check()

    def _write_the_rest(self, durable: bool) -> None:
        try:
            self.put_off.carry_out(self._writer)
        except BaseException as error:
            self.put_off.clear()
            self._settle(error, durable)
            raise

    def _commit_chain(self, durable: bool) -> None:
        """Commit what this and earlier threads have done, tell them, and pass the turn on."""
        failure: Exception | None = None
        try:
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            failure = error
        touched = self._touched
        self._settle(failure, durable)
        if failure is None:
            for name, count in touched.items():
                self.signal(name).notify(count)

    def _undo_link(self, durable: bool) -> None:
        """Undo this thread's part; what earlier threads did commits now, as nobody may come after."""
        if not self._chain:
            self._settle(None, durable)
            return
        try:
            self._writer.execute("ROLLBACK TO link")
            self._writer.execute("RELEASE link")
        except sqlite3.Error as error:
            self._settle(error, durable)
            return
        self._commit_chain(durable)

    def _settle(self, failure: BaseException | None, durable: bool) -> None:
        """End the transaction, whatever is left of it, tell those who wait for it, and pass the turn on."""
        self._broken, self._touched = None, {}
        self._close_chain(failure)
        self._reset(durable)
        self._lock.release()

    def _close_chain(self, failure: BaseException | None) -> None:
        chain, self._chain = self._chain, []
        for ticket in chain:
            ticket.settle(failure)

    def _reset(self, durable: bool) -> None:
        with contextlib.suppress(sqlite3.Error):
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            if not durable:
                self._writer.execute("PRAGMA synchronous = FULL")

    def failed(self, error: sqlite3.Error) -> Exception:
        """What to raise for an error inside a transaction; that can no longer commit, as SQLite may have undone it."""
        failure = self.failure(error)
        if isinstance(failure, UnavailableError):
            self._broken = failure
        return failure

    def failure(self, error: Exception) -> Exception:
        """The error for callers: UnavailableError with a sentence for what comes from outside, a bug as it is."""
        if self._closed:
            return UnavailableError(f"the data file {self.path} has been closed")
        if isinstance(error, OSError):
            return UnavailableError(f"the data file {self.path} cannot be opened: {error.strerror}")
        if isinstance(error, _OUTSIDE) or type(error) is sqlite3.DatabaseError:
            code = getattr(error, "sqlite_errorcode", None) or 0
            reason = _REASONS.get(code & 0xFF, "failed")
            return UnavailableError(f"the data file {self.path} {reason} ({error})")
        return error


class _Connection(sqlite3.Connection):
    """A connection that closes itself with its thread, and that a weak set can hold."""

    def __del__(self) -> None:
        self.close()


class _Reading:
    """Reads outside a transaction."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> sqlite3.Connection:
        return _translated(self._database, self._database.reader)

    def __exit__(self, _: object, error: BaseException | None, __: TracebackType | None) -> None:
        if isinstance(error, sqlite3.Error):
            raise self._database.failure(error) from error


class _Joined:
    """Work on the transaction that this thread already has."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> sqlite3.Connection:
        return self._database.writer()

    def __exit__(self, _: object, error: BaseException | None, __: TracebackType | None) -> None:
        if isinstance(error, sqlite3.Error):
            raise self._database.failed(error) from error


class _Transaction:
    """A transaction of its own."""

    __slots__ = ("_database", "_durable")

    def __init__(self, database: Database, durable: bool) -> None:
        self._database = database
        self._durable = durable

    def __enter__(self) -> sqlite3.Connection:
        return _translated(self._database, lambda: self._database.begin(self._durable))

    def __exit__(self, _: object, error: BaseException | None, __: TracebackType | None) -> None:
        failure = self._database.failed(error) if isinstance(error, sqlite3.Error) else None
        _translated(self._database, lambda: self._database.end(error is None, self._durable))
        if failure is not None:
            raise failure from error


class _Part:
    """A savepoint inside the transaction that this thread has."""

    __slots__ = ("_database", "_mark")

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._mark = self._database.put_off.mark
        self._run("SAVEPOINT part")

    def __exit__(self, _: object, error: BaseException | None, __: TracebackType | None) -> None:
        if error is None:
            self._run("RELEASE part")
            return
        self._database.put_off.undo(self._mark)
        with contextlib.suppress(UnavailableError):  # the first error is the one to tell; the batch stays broken
            self._run("ROLLBACK TO part")
            self._run("RELEASE part")

    def _run(self, statement: str) -> None:
        connection = self._database.writer()
        try:
            connection.execute(statement)
        except sqlite3.Error as error:
            raise self._database.failed(error) from error


def _translated(database: Database, action: Callable[[], _T]) -> _T:
    try:
        return action()
    except (OSError, sqlite3.Error) as error:
        raise database.failure(error) from error
