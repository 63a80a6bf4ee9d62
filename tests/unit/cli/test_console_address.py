"""The address of the web console that `ductor serve` prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from ductor.cli.serve import console_address

URL = "http://127.0.0.1:8080"


@pytest.fixture
def env_file(tmp_path: Path) -> Path:
    path = tmp_path / "env"
    path.write_text("export DUCTOR_API_KEY=dk_1_a+b\nexport DUCTOR_TENANT_ID=t-1\n")
    return path


def test_on_a_terminal_it_signs_in(env_file: Path) -> None:
    printed = console_address(URL, env_file, on_terminal=True)
    assert printed == f"{URL}/console/#key=dk_1_a%2Bb&tenant=t-1 (signs in: the key is in it)"


def test_what_may_end_in_a_log_holds_no_key(env_file: Path) -> None:
    assert console_address(URL, env_file, on_terminal=False) == f"{URL}/console/"


def test_without_a_key_it_is_the_plain_address(tmp_path: Path) -> None:
    assert console_address(URL, tmp_path / "env", on_terminal=True) == f"{URL}/console/"
