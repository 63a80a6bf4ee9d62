"""The address of the web console, as `ductor serve` and `ductor console` print it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from ductor.cli.console import console_address
from ductor.cli.main import app

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


def test_the_command_prints_a_link_that_signs_in_and_opens_a_run(env_file: Path) -> None:
    data = ["--data", str(env_file.parent)]
    without = {"DUCTOR_API_KEY": "", "DUCTOR_TENANT_ID": "", "DUCTOR_API_URL": "", "DUCTOR_TENANT": ""}
    plain = CliRunner().invoke(app, ["console", *data], env={**without, "DUCTOR_API_URL": URL})
    assert (plain.exit_code, plain.stdout) == (0, f"{URL}/console/#key=dk_1_a%2Bb&tenant=t-1\n")
    run = CliRunner().invoke(app, ["console", "run-1", *data], env={**without, "DUCTOR_API_URL": URL})
    assert run.stdout == f"{URL}/console/#key=dk_1_a%2Bb&tenant=t-1&to=%2Fruns%2Frun-1\n"


def test_the_command_says_where_a_key_comes_from(tmp_path: Path) -> None:
    without = dict.fromkeys(("DUCTOR_API_KEY", "DUCTOR_TENANT_ID", "DUCTOR_API_URL", "DUCTOR_TENANT"), "")
    refused = CliRunner().invoke(app, ["console", "--data", str(tmp_path)], env=without)
    assert refused.exit_code != 0
