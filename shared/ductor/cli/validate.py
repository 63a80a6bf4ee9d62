"""`ductor workflow validate` and `schema`: the validator of the server, without a server. It only reads files."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import typer

from ductor.cli.failure import Exit, Failure
from ductor.cli.options import Format
from ductor.cli.sources import Source, collect
from ductor.model.errors import Severity, Violation
from ductor.validation.context import Context

_ORDER = (Severity.ERROR, Severity.WARNING, Severity.UNRESOLVED)


@dataclass(frozen=True)
class Report:
    """What one file holds. A line is None where the text gives none."""

    name: str
    violations: tuple[tuple[int | None, Violation], ...]

    @property
    def valid(self) -> bool:
        return all(violation.severity is not Severity.ERROR for _, violation in self.violations)

    def as_json(self) -> dict[str, Any]:
        groups: dict[str, list[dict[str, Any]]] = {"errors": [], "warnings": [], "unresolved": []}
        for line, found in self.violations:
            name = {Severity.ERROR: "errors", Severity.WARNING: "warnings"}.get(found.severity, "unresolved")
            groups[name].append({"field": found.field, "code": found.code, "message": found.message, "line": line})
        return {"file": self.name, "valid": self.valid, **groups}

    def as_text(self) -> list[str]:
        """A verdict, then one line per finding, errors first, as `file:line:` that editors jump to."""
        ranked = sorted(self.violations, key=lambda pair: (_ORDER.index(pair[1].severity), pair[0] or 0))
        return [f"{self.name}: {self._verdict()}", *(self._line(line, found) for line, found in ranked)]

    def _verdict(self) -> str:
        counts = Counter(found.severity for _, found in self.violations)
        words = [_count(counts[Severity.ERROR], "error"), _count(counts[Severity.WARNING], "warning")]
        if counts[Severity.UNRESOLVED]:
            words.append(f"{counts[Severity.UNRESOLVED]} unresolved until a server sees it")
        told = ", ".join(word for word in words if word)
        return f"{'valid' if self.valid else 'invalid'}{f' ({told})' if told else ''}"

    def _line(self, line: int | None, found: Violation) -> str:
        place = f"{self.name}:{line}" if line else self.name
        field = f"{found.field}: " if found.field else ""
        return f"{place}: {found.severity.value}: {field}{found.message} [{found.code}]"


def run(names: Sequence[str], shown: Format) -> None:
    """Print a report per file; exit 1 when one of them has an error. What only a server knows is no error."""
    context = _context()
    reports = [check(source, context) for source in collect(names)]
    valid = all(report.valid for report in reports)
    if shown is Format.JSON:
        typer.echo(json.dumps({"valid": valid, "files": [report.as_json() for report in reports]}, indent=2))
    else:
        for report in reports:
            for line in report.as_text():
                typer.echo(line)
    if not valid:
        raise typer.Exit(int(Exit.FAILED))


def check(source: Source, context: Context) -> Report:
    """Every fault of one text, with its line."""
    from ductor.cli.lines import Lines
    from ductor.validation.source import read_source
    from ductor.validation.validator import validate

    try:
        text = source.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        fault = Violation("", "FIELD_INVALID", f"is not UTF-8 text (byte {error.start}); save it as UTF-8")
        return Report(source.name, ((None, fault),))
    document, violations = read_source(text, as_json=source.name.endswith(".json"))
    if not any(violation.severity is Severity.ERROR for violation in violations):
        violations = [*violations, *validate(document, context)]
    lines = Lines(text) if violations else None
    return Report(source.name, tuple((lines.of(found.field) if lines else None, found) for found in violations))


def print_schema() -> None:
    """The JSON Schema of the document on standard output."""
    from ductor.validation.schema import document_schema

    typer.echo(json.dumps(document_schema(), indent=2))


def _context() -> Context:
    from ductor.bootstrap.local_settings import StartError, action_catalog
    from ductor.cli.modules import add_working_directory

    add_working_directory()
    try:
        return Context(catalog=action_catalog(), now=int(time.time() * 1000))
    except StartError as error:
        raise Failure(str(error)) from error


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}" if number else ""
