"""What came of the tests of one or several files, as data: for the command line to show."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Verdict(StrEnum):
    """`failed`: an expectation does not hold. `error`: the case could not be played to its end."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"


class Finding(msgspec.Struct, frozen=True):
    """One thing wrong. `line` is 1-based, 0 where there is none; `field` is the place in the file as text."""

    file: str
    line: int
    field: str
    expected: str
    actual: str
    details: tuple[str, ...] = ()


class CaseResult(msgspec.Struct, frozen=True):
    """One case. `seed` is the turn of chance that the findings belong to, None for a run without faults.

    `plays` counts how often the case was played: once without faults, and once per seed; `crashes` how often the
    process died in them. `story` shows the run as it was when the test failed.
    """

    file: str
    line: int
    name: str
    verdict: Verdict
    plays: int
    took_ms: float
    findings: tuple[Finding, ...] = ()
    seed: int | None = None
    story: tuple[str, ...] = ()
    crashes: int = 0


class FileResult(msgspec.Struct, frozen=True):
    """One test file. `findings` are about the file itself: it cannot be read, or what it names cannot."""

    file: str
    cases: tuple[CaseResult, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.findings and all(case.verdict is Verdict.PASSED for case in self.cases)
