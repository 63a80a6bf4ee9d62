"""`ductor worker`: finds the worker that is named, or says why not."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from ductor.cli.main import app

RUNNER = CliRunner()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("jobs", "names no worker"),
        (":worker", "names no worker"),
        ("no_such_module_here:worker", "cannot import no_such_module_here"),
        ("json:dumps", "json:dumps is no ductor.client.Worker"),
        ("json:nothing", "json:nothing is no ductor.client.Worker"),
        ("bare_jobs:worker", "bare_jobs:worker has no handlers"),
    ],
)
def test_what_is_no_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, said: str) -> None:
    (tmp_path / "bare_jobs.py").write_text("from ductor.client import Worker\nworker = Worker()\n")
    monkeypatch.chdir(tmp_path)
    result = RUNNER.invoke(app, ["worker", target])
    assert result.exit_code == 2
    assert said in result.output


def test_without_a_key_it_says_where_to_find_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keyless_jobs.py").write_text(
        "from ductor.client import Worker\nworker = Worker()\nworker.task('x')(lambda task: None)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DUCTOR_API_KEY", raising=False)
    result = RUNNER.invoke(app, ["worker", "keyless_jobs:worker"])
    assert result.exit_code == 2
    assert "DUCTOR_API_KEY" in result.output
