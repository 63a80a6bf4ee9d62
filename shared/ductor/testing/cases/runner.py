"""Runs test files: reads them and what they name, plays every case, without faults and with them. Prints nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path as FilePath
from typing import Final

import msgspec

from ductor.actions.registry import ActionRegistry
from ductor.model.errors import Violation
from ductor.model.json import encode
from ductor.testing.cases.checks import Failure
from ductor.testing.cases.document import Case, CaseFile, Faults, Given
from ductor.testing.cases.naming import Names
from ductor.testing.cases.player import Player, RestlessError
from ductor.testing.cases.reading import Marks, Path, UnreadableError, read_cases, shown
from ductor.testing.cases.results import CaseResult, FileResult, Finding, Verdict
from ductor.testing.cases.script import ImpossibleMomentError, Script
from ductor.testing.cases.stage import Published, Stage, UnpublishableError, Workflow
from ductor.validation.source import read_source

_CHILD: Final = "SUBWORKFLOW_UNKNOWN"

Reader = Callable[[FilePath], str]
"""Gives the text of a file; raises OSError or UnicodeDecodeError."""


class Options(msgspec.Struct, frozen=True):
    """`wanted` is a part of the names of the cases to play. `faults` are for every case, in place of the file's.

    `seed`: only this turn of chance, and no play without faults before it. `seeds`: how many turns, 0: as it is said.
    """

    wanted: str = ""
    faults: Faults | None = None
    seed: int | None = None
    seeds: int = 0


class UnknownWorkflowError(Exception):
    """A file that a test names cannot be used."""

    def __init__(self, place: Path, findings: Sequence[Finding]) -> None:
        super().__init__(str(place))
        self.place = place
        self.findings = tuple(findings)


def run_file(name: str, text: str, actions: ActionRegistry, options: Options, read: Reader) -> FileResult:
    """Play the cases of one test file. Never raises for what is wrong with the file or with what it tests."""
    try:
        cases = read_cases(text)
    except UnreadableError as fault:
        found = tuple(Finding(name, one.line or 0, one.field, "", one.message) for one in fault.faults)
        return FileResult(name, findings=found)
    marks = Marks(text)
    try:
        workflows = _workflows(name, cases, marks, read)
    except UnknownWorkflowError as fault:
        return FileResult(name, findings=fault.findings)
    bench = _Bench(name, cases, marks, workflows, actions, options)
    wanted = [number for number, case in enumerate(cases.cases) if options.wanted.lower() in case.name.lower()]
    return FileResult(name, tuple(bench.play(number) for number in wanted))


def _workflows(name: str, cases: CaseFile, marks: Marks, read: Reader) -> tuple[Workflow, ...]:
    """The definitions that the test names, the one under test last."""
    places: list[tuple[Path, str]] = [(("workflows", place), one) for place, one in enumerate(cases.workflows)]
    places.append((("workflow",), cases.workflow))
    return tuple(_workflow(name, place, named, marks, read) for place, named in places)


def _workflow(name: str, place: Path, named: str, marks: Marks, read: Reader) -> Workflow:
    path = FilePath(name).parent / named
    at = (name, marks.line(place) or 0, shown(place))
    try:
        text = read(path)
    except OSError as fault:
        told = f"{path} cannot be read: {fault.strerror or fault}"
        raise UnknownWorkflowError(place, [Finding(*at, "a definition file", told)]) from None
    except UnicodeDecodeError:
        raise UnknownWorkflowError(place, [Finding(*at, "a definition file", f"{path} is not UTF-8 text")]) from None
    document, faults = read_source(text, as_json=path.suffix == ".json")
    if faults or not isinstance(document, dict):
        found = faults or [Violation("", "FIELD_INVALID", "holds no definition")]
        raise UnknownWorkflowError(place, [_of_violation(str(path), fault) for fault in found])
    return Workflow(str(path), document)


def _of_violation(file: str, fault: Violation) -> Finding:
    hint = " (give its file under `workflows`, or mock it under `given.workflows`)" if fault.code == _CHILD else ""
    return Finding(file, 0, fault.field, "", f"{fault.message} [{fault.code}]{hint}")


class _Bench:
    """The cases of one file with everything that they share."""

    def __init__(
        self,
        name: str,
        cases: CaseFile,
        marks: Marks,
        workflows: tuple[Workflow, ...],
        actions: ActionRegistry,
        options: Options,
    ) -> None:
        self._name = name
        self._cases = cases
        self._marks = marks
        self._workflows = workflows
        self._actions = actions
        self._options = options
        self._names = Names([workflow.document for workflow in workflows], actions)
        self._published: dict[bytes, Published] = {}

    def play(self, number: int) -> CaseResult:
        """One case, until a play of it fails."""
        case, began = self._cases.cases[number], time.perf_counter()
        place: Path = ("cases", number)
        result = CaseResult(self._name, self._marks.line(place) or 0, case.name, Verdict.PASSED, 0, 0.0)
        lost = tuple(self._finding(fault) for fault in self._names.faults(self._cases, case, place))
        if lost:
            return msgspec.structs.replace(result, verdict=Verdict.ERROR, findings=lost)
        for plays, (seed, faults) in enumerate(self._plays(case), 1):
            result = msgspec.structs.replace(result, plays=plays)
            result = self._play_once(case, place, seed, faults, result)
            if result.verdict is not Verdict.PASSED:
                break
        return msgspec.structs.replace(result, took_ms=round((time.perf_counter() - began) * 1000, 1))

    def _plays(self, case: Case) -> list[tuple[int, Faults | None]]:
        faults = self._options.faults or case.faults or self._cases.faults
        if self._options.seed is not None:
            return [(self._options.seed, faults)] if faults.any else [(0, None)]
        seeds = (self._options.seeds or faults.seeds) if faults.any else 0
        return [(0, None), *((seed, faults) for seed in range(1, seeds + 1))]

    def _play_once(self, case: Case, place: Path, seed: int, faults: Faults | None, passed: CaseResult) -> CaseResult:
        """The result so far, with what this play adds to it."""
        given = case.given.over(self._cases.given)
        stage = Stage(seed, self._actions, given)
        try:
            self._publish(stage, given)
        except UnpublishableError as fault:
            found = tuple(_of_violation(fault.workflow, one) for one in fault.violations)
            return msgspec.structs.replace(passed, verdict=Verdict.ERROR, findings=found)
        player = Player(stage, faults)
        script = Script(case, given, stage, player, place)
        verdict = Verdict.FAILED
        failures: list[Failure] = []
        try:
            failures.extend(script.play())
        except ImpossibleMomentError as fault:
            failures.append(fault.failure)
        except RestlessError as fault:
            verdict = Verdict.ERROR
            failures.append(Failure(place, "a world that comes to rest", str(fault)))
        except Exception as fault:  # noqa: BLE001 - whatever a play dies of is the result of that case
            verdict = Verdict.ERROR
            failures.append(Failure(place, "a case that can be played", f"{type(fault).__name__}: {fault}"))
        stage.chaos.on = False
        gaps = [Failure((*place, "given"), "a mock", gap) for gap in stage.mocks.gaps]
        passed = msgspec.structs.replace(passed, crashes=passed.crashes + player.crashes)
        if not gaps and not failures:
            return passed
        story = [line for name in script.runs for line in script.story(name)]
        return msgspec.structs.replace(
            passed,
            verdict=verdict,
            findings=(*map(self._finding, gaps), *sorted(map(self._finding, failures), key=lambda one: one.line)),
            seed=None if faults is None else seed,
            story=tuple(story),
        )

    def _publish(self, stage: Stage, given: Given) -> None:
        """Publish once for all plays that the same is given to: checking a definition takes longer than running it."""
        key = encode([given.now, given.connections, given.environment, list(given.workflows)])
        known = self._published.get(key)
        if known is None:
            self._published[key] = stage.set_up(self._workflows)
        else:
            stage.take_over(known, self._workflows)

    def _finding(self, failure: Failure) -> Finding:
        line = self._marks.line(failure.place) or 0
        return Finding(self._name, line, shown(failure.place), failure.expected, failure.actual, failure.details)
