"""Secrets in one encrypted file of the data folder (AES-256-GCM), its key in another one that only the owner reads.

Whoever reads both files reads the secrets: this keeps them out of backups of the database, logs and screens.
"""

from __future__ import annotations

import base64
import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from ductor.ports import SecretLostError, UnavailableError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_FILE: Final = "secrets.key"
FILE: Final = "secrets.enc"
_LOCK_FILE: Final = "secrets.lock"
_NONCE_BYTES: Final = 12
_PRIVATE: Final = 0o600


class _Kept(msgspec.Struct):
    """The file: base64 of nonce and sealed text by name. The name is sealed in, so that entries cannot be swapped."""

    format: int = 1
    secrets: dict[str, str] = {}


class FileSecrets:
    """`ports.Secrets` on a folder. Several threads and processes may share it; each change is one atomic rename."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._threads = threading.Lock()

    def put(self, name: str, text: str) -> None:
        nonce = os.urandom(_NONCE_BYTES)
        with self._alone():
            kept = self._read()
            sealed = _cipher(self._key(make=not kept.secrets)).encrypt(nonce, text.encode(), name.encode())
            kept.secrets[name] = base64.b64encode(nonce + sealed).decode("ascii")
            self._write(kept)

    def get(self, name: str) -> str | None:
        from cryptography.exceptions import InvalidTag

        entry = self._read().secrets.get(name)
        if entry is None:
            return None
        try:
            data = base64.b64decode(entry, validate=True)
            key = self._key(make=False)
            return _cipher(key).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], name.encode()).decode()
        except (ValueError, InvalidTag):
            raise SecretLostError(f"{KEY_FILE} does not open {FILE}; restore both from one backup") from None

    def delete(self, name: str) -> None:
        with self._alone():
            kept = self._read()
            if kept.secrets.pop(name, None) is not None:
                self._write(kept)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One change at a time, also across processes."""
        with self._threads:
            descriptor = os.open(self._folder / _LOCK_FILE, os.O_CREAT | os.O_RDWR, _PRIVATE)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield
            except OSError as fault:
                raise UnavailableError(f"the secrets cannot be stored: {fault.strerror or fault}") from fault
            finally:
                os.close(descriptor)

    def _read(self) -> _Kept:
        try:
            return msgspec.json.decode((self._folder / FILE).read_bytes(), type=_Kept)
        except FileNotFoundError:
            return _Kept()
        except (OSError, msgspec.DecodeError) as fault:
            raise UnavailableError(f"{FILE} cannot be read: {fault}") from None

    def _write(self, kept: _Kept) -> None:
        _replace(self._folder / FILE, msgspec.json.encode(kept))

    def _key(self, *, make: bool) -> bytes:
        """The key. A new one is made only while there is nothing that an older one had sealed."""
        path = self._folder / KEY_FILE
        try:
            return path.read_bytes()
        except FileNotFoundError:
            if not make:
                raise SecretLostError(f"{KEY_FILE} is gone, and with it what it sealed; restore it") from None
        except OSError as fault:
            raise UnavailableError(f"{KEY_FILE} cannot be read: {fault.strerror}") from None
        key = os.urandom(32)
        _replace(path, key)
        return key


def _replace(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, readable by its owner alone, and on disk when this returns."""
    draft = path.with_name(path.name + ".new")
    descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, _PRIVATE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _cipher(key: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)
