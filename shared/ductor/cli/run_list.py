"""`ductor runs list`: an option for every filter of the list of runs. Reads one page; changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from ductor.cli.options import DATA_HELP, Format

_SUBJECT: Final = "TYPE:ID, TYPE: or :ID"
_MOMENT: Final = "an instant, or back from now like -1h."

Data = Annotated[Path, typer.Option("--data", envvar="DUCTOR_DATA", help=DATA_HELP)]
Shown = Annotated[Format, typer.Option("--format", help="text for people, json for programs.")]
Labels = Annotated[list[str] | None, typer.Option("--label", metavar="KEY=ID", help="With this label; repeatable.")]
Attributes = Annotated[
    list[str] | None, typer.Option("--attr", metavar="NAME=VALUE", help="With this visibility attribute; repeatable.")
]


def add_to(runs: typer.Typer) -> None:
    """Register the command."""
    runs.command("list")(list_runs)


def list_runs(  # noqa: PLR0913 (one parameter per option)
    family: Annotated[str, typer.Option(help="Only runs of this family.")] = "",
    status: Annotated[str, typer.Option(help="Only runs in this state, such as failed.")] = "",
    active: Annotated[bool, typer.Option("--active", help="Only runs that have not ended.")] = False,
    started_after: Annotated[str, typer.Option(metavar="TIME", help=f"Admitted then or later: {_MOMENT}")] = "",
    started_before: Annotated[str, typer.Option(metavar="TIME", help=f"Admitted before that: {_MOMENT}")] = "",
    subject: Annotated[str, typer.Option(metavar=_SUBJECT, help="Only runs about this subject.")] = "",
    label: Labels = None,
    attr: Attributes = None,
    root: Annotated[str, typer.Option(metavar="RUN", help="Only the tree of this run.")] = "",
    parent: Annotated[str, typer.Option(metavar="RUN", help="Only the children of this run.")] = "",
    journey: Annotated[str, typer.Option(metavar="ID", help="Only this journey, forks and successors included.")] = "",
    schedule: Annotated[str, typer.Option(metavar="FAMILY", help="Only what this family's schedule started.")] = "",
    environment: Annotated[str, typer.Option(help="Only runs in this environment.")] = "",
    definition: Annotated[str, typer.Option(metavar="ID", help="Only runs of this version.")] = "",
    q: Annotated[str, typer.Option("--q", help="Text in the run's id, family, subject's id or a label's id.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many, newest first.")] = 20,
    cursor: Annotated[str, typer.Option(help="Continue after an earlier page.")] = "",
    shown: Shown = Format.TEXT,
    data: Data = Path("data"),
) -> None:
    """List runs, newest first; of several options all must hold."""
    from ductor.cli import runs as command

    query = {
        "workflow_type": family,
        "status": status,
        "active_only": "true" if active else "",
        "started_after": started_after,
        "started_before": started_before,
        **_subject(subject),
        **_named(label, "label", "--label", "key=id"),
        **_named(attr, "attr", "--attr", "name=value"),
        "root_run_id": root,
        "parent_run_id": parent,
        "journey_id": journey,
        "schedule": schedule,
        "environment": environment,
        "definition_id": definition,
        "q": q,
        "limit": str(limit),
        "cursor": cursor,
    }
    command.show_list({name: value for name, value in query.items() if value}, shown=shown, data=data)


def _subject(text: str) -> dict[str, str]:
    """Either side may be empty, but not both."""
    if not text:
        return {}
    kind, found, subject = text.partition(":")
    if not found or not (kind or subject):
        from ductor.cli.failure import Exit, Failure

        raise Failure(f"--subject: write it as {_SUBJECT}, not {text!r}", code=Exit.USAGE)
    return {"subject_type": kind, "subject_id": subject}


def _named(texts: list[str] | None, prefix: str, option: str, form: str) -> dict[str, str]:
    from ductor.cli.values import pair

    return {f"{prefix}.{name}": value for name, value in (pair(text, "=", option, form) for text in texts or ())}
