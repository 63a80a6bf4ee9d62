"""`ductor workflow import asl`: reads the file, writes YAML, and lists what needs a person's hand."""

from __future__ import annotations

import re
import time
from pathlib import Path

import typer

from ductor.cli.asl.importer import convert
from ductor.cli.asl.report import Report
from ductor.cli.failure import Exit, Failure
from ductor.cli.sources import collect
from ductor.cli.values import strict_json


def run(name: str, family: str, out: Path | None) -> None:
    """Write the definition; raises Exit with 1 when something was not carried over."""
    (source,) = collect([name])
    machine = strict_json(source.data, source.name)
    if not isinstance(machine, dict) or not isinstance(machine.get("States"), dict):
        raise Failure(f"{source.name} holds no state machine: an object with StartAt and States is needed")
    document, report = convert(machine, family or _slug(source.name))
    _check(document, report)
    text = _yaml(document)
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
        typer.echo(f"wrote {out}")
    for note in report.notes:
        typer.echo(note.line(), err=True)
    if not report.complete:
        raise typer.Exit(int(Exit.FAILED))


def _check(document: dict[str, object], report: Report) -> None:
    """What the validator says of the outcome is listed too, so that no fault waits for publication."""
    from ductor.bootstrap.local_settings import action_catalog
    from ductor.model.errors import Severity
    from ductor.validation.context import Context
    from ductor.validation.validator import validate

    for found in validate(document, Context(catalog=action_catalog(), now=int(time.time() * 1000))):
        if found.severity is Severity.ERROR:
            report.manual(found.field or "definition", "", f"{found.message} [{found.code}]")


def _slug(name: str) -> str:
    stem = Path(name).name.removesuffix(".json").removesuffix(".asl")
    slug = re.sub(r"[^a-z0-9_]+", "_", stem.lower()).strip("_")
    return (slug if slug[:1].isalpha() else f"imported_{slug}".rstrip("_"))[:63]


def _yaml(document: dict[str, object]) -> str:
    import yaml

    return yaml.safe_dump(
        {"type": "workflow_definition", "definition": document}, sort_keys=False, allow_unicode=True, width=100
    )
