"""The commands `ductor workflow create`, `edit`, `list`, …: their names and options. Loads nothing before one runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ductor.cli.options import DATA_HELP, Format

Data = Annotated[Path, typer.Option("--data", envvar="DUCTOR_DATA", help=DATA_HELP)]
Shown = Annotated[Format, typer.Option("--format", help="text for people, json for programs.")]
Files = Annotated[
    list[str], typer.Argument(metavar="FILE…", help="YAML or JSON files, patterns, folders, - for stdin.")
]
Which = Annotated[str, typer.Argument(metavar="DEFINITION", help="The id of a definition, or a family slug.")]


def add_to(workflow: typer.Typer) -> None:
    """Add every command of this module to the group."""
    for command in (create, edit, show, diff, duplicate, archive, export, graph):
        workflow.command()(command)
    workflow.command("list")(list_definitions)
    importing = typer.Typer(name="import", help="Make definitions of other systems' files.", no_args_is_help=True)
    importing.command("asl")(import_asl)
    workflow.add_typer(importing)


def create(files: Files, data: Data = Path("data")) -> None:
    """Make a new draft of each file. A family that has a draft already is refused; `edit` changes that one."""
    from ductor.cli import definitions as command

    command.create(files, data=data)


def edit(
    files: Files,
    revision: Annotated[
        int | None, typer.Option("--revision", help="The draft_revision that you looked at; another one is refused.")
    ] = None,
    data: Data = Path("data"),
) -> None:
    """Make the family's draft equal to each file, without publishing it."""
    from ductor.cli import definitions as command

    command.edit(files, revision, data=data)


def list_definitions(
    status: Annotated[str, typer.Option(help="draft, published or archived.")] = "",
    q: Annotated[str, typer.Option("--q", help="Text in slug, title, description or tags.")] = "",
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Must have this tag; repeatable.")] = None,
    family: Annotated[str, typer.Option(help="Only this family: its draft and all its versions.")] = "",
    shown: Shown = Format.TEXT,
    data: Data = Path("data"),
) -> None:
    """List drafts and versions, newest first."""
    from ductor.cli import definitions as command

    filters = {"status": status, "q": q, "tags": ",".join(tag or ()), "family_slug": family}
    command.show_list({name: value for name, value in filters.items() if value}, shown=shown, data=data)


def show(
    definition: Which,
    yaml: Annotated[bool, typer.Option("--yaml", help="As a file that `create` and `publish` take.")] = False,
    shown: Shown = Format.TEXT,
    data: Data = Path("data"),
) -> None:
    """Show a definition. Of a family: its newest version, or its draft when nothing is published."""
    from ductor.cli import definitions as command

    command.show(definition, as_yaml=yaml, shown=shown, data=data)


def diff(
    definition: Annotated[str, typer.Argument(metavar="DEFINITION", help="An id, or a family slug for its draft.")],
    against: Annotated[str, typer.Option(help="The id to compare with; default: the family's newest version.")] = "",
    shown: Shown = Format.TEXT,
    data: Data = Path("data"),
) -> None:
    """Show what changed: fields, steps and edges."""
    from ductor.cli import definitions as command

    command.diff(definition, against, shown=shown, data=data)


def duplicate(
    definition: Which,
    family: Annotated[str, typer.Argument(metavar="NEW_FAMILY", help="The slug of the copy.")],
    data: Data = Path("data"),
) -> None:
    """Copy a definition into a new family, as its draft."""
    from ductor.cli import definitions as command

    command.duplicate(definition, family, data=data)


def archive(
    definition: Annotated[
        str, typer.Argument(metavar="DEFINITION", help="A version's id; a slug: the newest version.")
    ],
    data: Data = Path("data"),
) -> None:
    """Refuse new runs of a version for ever. Runs in flight finish."""
    from ductor.cli import definitions as command

    command.archive(definition, data=data)


def export(
    families: Annotated[list[str] | None, typer.Argument(metavar="[FAMILY]…", help="Only these; default: all.")] = None,
    data: Data = Path("data"),
) -> None:
    """Print the global system definitions as YAML, read from the data file itself. Tenants' are read with `show`."""
    from ductor.cli import export as command

    command.run(families or (), data=data)


def graph(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A YAML or JSON file, or - for stdin.")],
) -> None:
    """Print a definition's graph as a Mermaid flowchart, without a server."""
    from ductor.cli import mermaid as command

    command.run(file)


def import_asl(
    file: Annotated[str, typer.Argument(metavar="FILE", help="An Amazon States Language file (JSON), or - for stdin.")],
    family: Annotated[str, typer.Option(help="The family slug; default: made of the file's name.")] = "",
    out: Annotated[Path | None, typer.Option("--out", help="Write the YAML here instead of standard output.")] = None,
) -> None:
    """Turn an AWS Step Functions state machine into a definition; what could not be carried over is listed.

    Exit 1 when something needs your hand; the definition is written all the same.
    """
    from ductor.cli.asl import command

    command.run(file, family, out)
