"""Collects the files that a command names: paths, patterns, folders, standard input. Parses nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ductor.cli.failure import Exit, Failure
from ductor.validation.source import CASE_SUFFIXES

FOLDER_SUFFIXES: Final = (".yaml", ".yml")
"""What a folder is searched for. JSON files are checked when they are named: in folders they are mostly data."""

STDIN: Final = "-"


@dataclass(frozen=True)
class Source:
    """One text and the name to show for it."""

    name: str
    data: bytes


def collect(names: Sequence[str], *, cases: bool = False) -> list[Source]:
    """Every named text once, in order. Raises Failure when a name matches nothing or cannot be read.

    Patterns and folders stand for the definitions in them or, with `cases`, for the tests (`*.test.yaml`). Of named
    files those of the other kind are left out too, because it may have been the shell that expanded a pattern.
    """
    paths: dict[str, None] = {}
    for name in names:
        paths |= dict.fromkeys(_matches(name, cases=cases))
    wanted = [path for path in paths if path.endswith(CASE_SUFFIXES) is cases]
    if not wanted and paths and not cases:
        hint = f"ductor test {' '.join(paths)}"
        raise Failure("these are tests of workflows, no definitions", code=Exit.USAGE, hint=hint)
    return [_read(path) for path in wanted or paths]


def _matches(name: str, *, cases: bool) -> Iterator[str]:
    path = Path(name)
    # Whatever can be read: a shell gives `<(command)` as a pipe.
    if name == STDIN or (path.exists() and not path.is_dir()):
        yield name
        return
    if path.is_dir():
        found = sorted(str(below) for below in path.rglob("*") if below.suffix in FOLDER_SUFFIXES and below.is_file())
    else:
        found = sorted(str(match) for match in _expanded(path) if match.is_file())
    found = [match for match in found if match.endswith(CASE_SUFFIXES) is cases]
    if not found:
        kind, endings = ("test", CASE_SUFFIXES) if cases else ("definition", FOLDER_SUFFIXES)
        missing = f"{name} holds no {kind} file" if path.is_dir() else f"no such {kind} file: {name}"
        raise Failure(
            missing, code=Exit.USAGE, hint=f"in folders and patterns, their names end in {' or '.join(endings)}"
        )
    yield from found


def _expanded(pattern: Path) -> Iterator[Path]:
    root = Path(pattern.anchor)
    relative = str(pattern.relative_to(root)) if pattern.anchor else str(pattern)
    return iter(root.glob(relative))


def _read(name: str) -> Source:
    if name == STDIN:
        return Source("<stdin>", sys.stdin.buffer.read())
    try:
        return Source(name, Path(name).read_bytes())
    except OSError as error:
        raise Failure(f"cannot read {name}: {error.strerror or error}", code=Exit.USAGE) from error
