"""Runs that earlier releases recorded read as they did then."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from ductor.model.transition import Transition
from ductor.testing.golden import read, replayed, written

FOLDER = Path(__file__).parent.parent / "golden"
RECORDINGS = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_recorded_history_gives_the_recorded_state(path: Path) -> None:
    golden = read(path.read_bytes())
    assert replayed(golden) == golden.state


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_what_is_read_is_written_as_it_was(path: Path) -> None:
    data = path.read_bytes()
    assert written(read(data)) == data


def test_every_kind_of_transition_is_recorded() -> None:
    recorded = frozenset[str]().union(*(read(path.read_bytes()).kinds for path in RECORDINGS))
    assert {kind.__name__ for kind in get_args(Transition)} - recorded == set()
