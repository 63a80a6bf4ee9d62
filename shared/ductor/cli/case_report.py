"""Shows what came of workflow tests: lines for people, JSON, or JUnit's XML for build servers. Decides nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

import msgspec

from ductor.testing.cases.results import CaseResult, FileResult, Finding, Verdict

_MARKS = {Verdict.PASSED: "ok  ", Verdict.FAILED: "FAIL", Verdict.ERROR: "FAIL"}


def as_text(files: Sequence[FileResult], *, verbose: bool) -> Iterator[str]:
    """A line per case of the files that hold a failure, or with `verbose` of all; then what is wrong, and the sum."""
    for file in files:
        yield from _of_file(file, verbose=verbose)
    cases = [case for file in files for case in file.cases]
    failed = sum(case.verdict is not Verdict.PASSED for case in cases)
    broken = sum(1 for file in files if file.findings)
    took = sum(case.took_ms for case in cases) / 1000
    parts = [f"{len(cases) - failed} passed", *([f"{failed} failed"] if failed else [])]
    parts += [f"{broken} of {len(files)} files could not be used"] if broken else []
    plays = sum(case.plays for case in cases)
    yield f"{', '.join(parts)} in {len(files)} files ({plays} plays, {took:.1f} s)"


def _of_file(file: FileResult, *, verbose: bool) -> Iterator[str]:
    took = sum(case.took_ms for case in file.cases)
    yield f"{file.file}: {len(file.cases)} cases, {'passed' if file.passed else 'FAILED'} ({took:.0f} ms)"
    for finding in file.findings:
        yield from _of_finding(finding)
    for case in file.cases:
        if verbose or case.verdict is not Verdict.PASSED:
            yield f"  {_MARKS[case.verdict]} {case.name} ({case.took_ms:.0f} ms{_plays(case)})"
        if case.verdict is not Verdict.PASSED:
            yield from _of_case(case)


def _plays(case: CaseResult) -> str:
    return f", {case.plays} plays, {case.crashes} crashes" if case.plays > 1 else ""


def _of_case(case: CaseResult) -> Iterator[str]:
    for finding in case.findings:
        yield from _of_finding(finding)
    for line in case.story:
        yield f"       {line}"
    yield f"       repeat: {repeat(case)}"


def _of_finding(finding: Finding) -> Iterator[str]:
    place = f"{finding.file}:{finding.line}" if finding.line else finding.file
    if not finding.expected:
        yield (
            f"       {place}: {finding.field}: {finding.actual}"
            if finding.field
            else f"       {place}: {finding.actual}"
        )
        return
    yield f"       {place}: {finding.field}"
    yield f"         expected  {finding.expected}"
    yield f"         was       {finding.actual}"
    for line in finding.details:
        yield f"           {line}"


def repeat(case: CaseResult) -> str:
    """The command that plays this case again as it failed."""
    seed = "" if case.seed is None else f" --seed {case.seed}"
    return f"ductor test {case.file} --filter {json.dumps(case.name, ensure_ascii=False)}{seed}"


def as_json(files: Sequence[FileResult]) -> str:
    """Everything, for programs."""
    shown: list[dict[str, Any]] = []
    for file in files:
        cases = [{**msgspec.to_builtins(case), "repeat": repeat(case)} for case in file.cases]
        shown.append({**msgspec.to_builtins(file), "passed": file.passed, "cases": cases})
    return json.dumps({"passed": all(file.passed for file in files), "files": shown}, indent=2, ensure_ascii=False)


def as_junit(files: Sequence[FileResult]) -> str:
    """One `testsuite` per file, in the form that build servers read."""
    root = ElementTree.Element("testsuites", name="ductor test")
    for file in files:
        bad = [case for case in file.cases if case.verdict is not Verdict.PASSED]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=file.file,
            tests=str(len(file.cases) + bool(file.findings)),
            failures=str(sum(case.verdict is Verdict.FAILED for case in bad)),
            errors=str(sum(case.verdict is Verdict.ERROR for case in bad) + bool(file.findings)),
            time=f"{sum(case.took_ms for case in file.cases) / 1000:.3f}",
        )
        if file.findings:
            unread = ElementTree.SubElement(suite, "testcase", name="the file", classname=file.file)
            _problem(unread, "error", [line for finding in file.findings for line in _of_finding(finding)])
        for case in file.cases:
            _junit_case(suite, case)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _junit_case(suite: ElementTree.Element, case: CaseResult) -> None:
    shown = ElementTree.SubElement(
        suite, "testcase", name=case.name, classname=case.file, line=str(case.line), time=f"{case.took_ms / 1000:.3f}"
    )
    if case.verdict is not Verdict.PASSED:
        _problem(shown, "failure" if case.verdict is Verdict.FAILED else "error", list(_of_case(case)))


def _problem(shown: ElementTree.Element, kind: str, lines: Sequence[str]) -> None:
    text = "\n".join(line.strip() for line in lines)
    printable = "".join(char if char.isprintable() or char == "\n" else "?" for char in text)
    ElementTree.SubElement(shown, kind, message=printable.split("\n", 1)[0]).text = printable
