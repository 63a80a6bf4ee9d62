"""The data folder of a local installation: its lock, its env files, and its data file beside a running server."""

from __future__ import annotations

import fcntl
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ductor.adapters.local.database import Database
from ductor.adapters.local.fifo import SqliteFifoQueue
from ductor.adapters.local.queue import SqliteQueue
from ductor.adapters.local.system import SystemClock
from ductor.adapters.local.table import SqliteTable
from ductor.bootstrap.local_settings import StartError
from ductor.model.definition import DefinitionRow
from ductor.ports import DeadLetters, QueueName, UnavailableError


def data_file(data: Path) -> Path:
    """Where a data folder has its one file."""
    return data / "ductor.db"


class Presence:
    """A lock file that tells whether another server uses the same data folder right now."""

    def __init__(self, data: Path) -> None:
        self._file = (data / "lock").open("a")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.alone = True
        except BlockingIOError:
            self.alone = False
        fcntl.flock(self._file, fcntl.LOCK_SH)

    def close(self) -> None:
        self._file.close()


def correct_address(path: Path, url: str) -> None:
    """The address in an env file follows the server when it starts on another port."""
    lines = path.read_text().splitlines()
    wanted = f"export DUCTOR_API_URL={shlex.quote(url)}"
    changed = [wanted if line.startswith("export DUCTOR_API_URL=") else line for line in lines]
    if changed != lines:
        _replace_private(path, "".join(f"{line}\n" for line in changed))


def write_env(path: Path, tenant: str, key: str, url: str) -> None:
    """The lines to `source` before using the API; readable by the owner alone."""
    values = {"DUCTOR_API_KEY": key, "DUCTOR_TENANT_ID": tenant, "DUCTOR_TENANT": tenant, "DUCTOR_API_URL": url}
    _replace_private(path, "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items()))


def _replace_private(path: Path, text: str) -> None:
    """Write a file whole or not at all, readable by its owner alone."""
    draft = path.with_suffix(".new")
    descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def system_definitions(data: Path) -> list[DefinitionRow]:
    """The newest version of each system definition in a data folder. Raises StartError when there is no data file."""
    from ductor.app.system_definitions import SystemDefinitions

    with _opened(data) as database:
        try:
            return SystemDefinitions(SqliteTable(database)).newest()
        except UnavailableError as error:
            raise StartError(str(error)) from error


@contextmanager
def dead_letters(data: Path, name: QueueName) -> Iterator[DeadLetters]:
    """The dead letters of a queue in a data folder. Raises StartError when there is no data file, UnavailableError."""
    kind = SqliteFifoQueue if name is QueueName.INTENTS else SqliteQueue
    with _opened(data) as database:
        yield kind(database, name, SystemClock())


@contextmanager
def _opened(data: Path) -> Iterator[Database]:
    """The data file of a folder, beside a server that may have it open too. Raises StartError when there is none."""
    path = data_file(data)
    if not path.is_file():
        raise StartError(f"there is no data file {path}")
    database = Database(path)
    try:
        yield database
    finally:
        database.close()
