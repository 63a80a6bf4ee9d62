"""`ductor test`: plays the cases of test files on the simulator, with the actions of this installation mocked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ductor.cli.failure import Exit, Failure
from ductor.cli.options import CaseFormat

if TYPE_CHECKING:
    from ductor.testing.cases.results import FileResult
    from ductor.testing.cases.runner import Options


@dataclass(frozen=True)
class Asked:
    """The options of the command. `seeds` 0: as the files say; `seed` None: all of them."""

    wanted: str = ""
    crash: bool = False
    seeds: int = 0
    seed: int | None = None
    shown: CaseFormat = CaseFormat.TEXT
    verbose: bool = False


def run(names: Sequence[str], asked: Asked) -> None:
    """Play them all and print what came of it; exit 1 when a case failed, 2 when a file could not be used."""
    if not names:
        raise Failure("name test files or folders", code=Exit.USAGE, hint="ductor test events")
    from ductor.cli.case_report import as_json, as_junit, as_text

    files = _played(names, asked)
    if asked.shown is CaseFormat.JSON:
        typer.echo(as_json(files))
    elif asked.shown is CaseFormat.JUNIT:
        typer.echo(as_junit(files))
    else:
        for line in as_text(files, verbose=asked.verbose):
            typer.echo(line)
    if any(file.findings for file in files):
        raise typer.Exit(int(Exit.USAGE))
    if not all(file.passed for file in files):
        raise typer.Exit(int(Exit.FAILED))
    if not any(file.cases for file in files):
        raise Failure(f"no case has {asked.wanted!r} in its name", code=Exit.USAGE)


def print_schema() -> None:
    """The JSON Schema of test files on standard output."""
    from ductor.testing.cases.reading import case_schema

    typer.echo(json.dumps(case_schema(), indent=2))


def _played(names: Sequence[str], asked: Asked) -> list[FileResult]:
    from ductor.bootstrap.local_settings import StartError, action_catalog
    from ductor.cli.modules import add_working_directory
    from ductor.cli.sources import collect
    from ductor.testing.cases.runner import run_file

    add_working_directory()
    sources = collect(names, cases=True)
    try:
        actions = action_catalog()
    except StartError as error:
        raise Failure(str(error)) from error
    options = _options(asked)
    return [run_file(source.name, _text(source.data), actions, options, _read) for source in sources]


def _options(asked: Asked) -> Options:
    from ductor.testing.cases.document import Faults
    from ductor.testing.cases.runner import Options

    faults = Faults(crash="random") if asked.crash else None
    return Options(wanted=asked.wanted, faults=faults, seed=asked.seed, seeds=asked.seeds)


def _text(data: bytes) -> str:
    """As UTF-8; what is none becomes a character that the reader of YAML refuses with its place."""
    return data.decode("utf-8-sig", "replace").replace("\ufffd", "\x00")


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8-sig")
