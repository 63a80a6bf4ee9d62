"""The examples: each has a test file beside it, and all of their cases hold, with random crashes too."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cases.bench import ACTIONS, ROOT

from ductor.testing.cases.reading import read_cases
from ductor.testing.cases.runner import Options, run_file
from ductor.validation.source import CASE_SUFFIXES

EVENTS = ROOT / "events"
FILES = sorted(EVENTS.glob("*.test.yaml"))


def read(path: Path) -> str:
    return path.read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".test.yaml"))
def test_every_case_of_the_examples_holds(path: Path) -> None:
    result = run_file(str(path), read(path), ACTIONS, Options(), read)

    assert result.findings == ()
    assert [(case.name, case.findings, case.story) for case in result.cases if case.findings] == []
    assert sum(case.crashes for case in result.cases) > 0


def test_every_example_has_a_test_with_random_crashes() -> None:
    tested = set()
    for path in FILES:
        file = read_cases(read(path))
        assert file.faults.crash == "random", path.name
        tested.add(file.workflow)

    definitions = {path.name for path in EVENTS.glob("*.yaml") if not path.name.endswith(CASE_SUFFIXES)}
    assert definitions == tested
