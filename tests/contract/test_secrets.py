"""What every store of secrets does, and what the encrypted file does on top."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import moto
import pytest
from tests.contract.moto_backend import CLIENTS, CREDENTIALS

from ductor.adapters.aws.secrets import SsmSecrets
from ductor.adapters.local.secrets import FILE, KEY_FILE, FileSecrets
from ductor.ports import SecretLostError, Secrets
from ductor.testing.memory import MemorySecrets

NAME = "tenant-1/0192/api_key/Zx-9_a"
TEXT = 'sk_live_51H ä€ "quoted" \\ back\nslash'


@pytest.fixture(params=["memory", "file", "ssm"])
def secrets(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Secrets]:
    if request.param == "memory":
        yield MemorySecrets()
    elif request.param == "file":
        yield FileSecrets(tmp_path)
    else:
        with mock.patch.dict(os.environ, CREDENTIALS), moto.mock_aws():
            yield SsmSecrets("/ductor/test", CLIENTS)


def test_a_text_comes_back_as_it_was(secrets: Secrets) -> None:
    secrets.put(NAME, TEXT)
    secrets.put("other/name", "another text")
    assert secrets.get(NAME) == TEXT


def test_an_unknown_name_has_no_text(secrets: Secrets) -> None:
    assert secrets.get(NAME) is None
    secrets.delete(NAME)


def test_a_deleted_text_is_gone(secrets: Secrets) -> None:
    secrets.put(NAME, TEXT)
    assert secrets.get(NAME) == TEXT
    secrets.delete(NAME)
    assert secrets.get(NAME) is None


def test_another_process_reads_the_file(tmp_path: Path) -> None:
    FileSecrets(tmp_path).put(NAME, TEXT)
    FileSecrets(tmp_path).put("second", "second text")
    assert FileSecrets(tmp_path).get(NAME) == TEXT


def test_the_file_holds_no_plain_text_and_belongs_to_its_owner(tmp_path: Path) -> None:
    FileSecrets(tmp_path).put(NAME, "sk_live_plain_text")
    for name in (FILE, KEY_FILE):
        path = tmp_path / name
        assert b"sk_live_plain_text" not in path.read_bytes()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_without_its_key_the_file_is_lost_and_told_so(tmp_path: Path) -> None:
    secrets = FileSecrets(tmp_path)
    secrets.put(NAME, TEXT)
    (tmp_path / KEY_FILE).unlink()
    with pytest.raises(SecretLostError):
        secrets.get(NAME)
    with pytest.raises(SecretLostError):
        secrets.put("new", "a new text")


def test_another_key_does_not_open_the_file(tmp_path: Path) -> None:
    secrets = FileSecrets(tmp_path)
    secrets.put(NAME, TEXT)
    (tmp_path / KEY_FILE).write_bytes(os.urandom(32))
    with pytest.raises(SecretLostError):
        secrets.get(NAME)


def test_entries_of_the_file_cannot_be_swapped(tmp_path: Path) -> None:
    secrets = FileSecrets(tmp_path)
    secrets.put("aaaa", "text of a")
    secrets.put("bbbb", "text of b")
    path = tmp_path / FILE
    path.write_text(path.read_text().replace("aaaa", "cccc").replace("bbbb", "aaaa"))
    with pytest.raises(SecretLostError):
        secrets.get("aaaa")
