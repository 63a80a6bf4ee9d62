"""`ductor workflow create`, `edit`, `list`, `show`, `diff`, `duplicate`, `archive`: definitions on a server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import typer
from rich.table import Table
from rich.text import Text

from ductor.cli import screen
from ductor.cli.access import find
from ductor.cli.client import Client, Refused
from ductor.cli.failure import Exit, Failure
from ductor.cli.options import Format
from ductor.cli.publish import located, read, remark, replaced
from ductor.cli.sources import collect
from ductor.validation.document_shape import DOCUMENT, SERVER_OWNED

Document = dict[str, Any]

_ROOT: Final = "/api/workflow-definitions"
_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def create(names: Sequence[str], *, data: Path) -> None:
    """Create a draft of each file; raises Failure at the first that is refused."""
    with Client(find(data)) as client:
        for source in collect(names):
            text, document = read(source)
            try:
                answer = client.request("POST", _ROOT, body=document)
            except Refused as refused:
                raise located(refused, source.name, text) from refused
            _echo_draft(answer)


def edit(names: Sequence[str], revision: int | None, *, data: Path) -> None:
    """Make drafts equal to files. With `revision` only a draft that is still there is changed."""
    sources = collect(names)
    if revision is not None and len(sources) != 1:
        raise Failure("--revision goes with one file", code=Exit.USAGE)
    with Client(find(data)) as client:
        for source in sources:
            text, document = read(source)
            try:
                answer = replaced(client, document, revision)
            except Refused as refused:
                raise located(refused, source.name, text) from refused
            _echo_draft(answer)


def show_list(filters: dict[str, str], *, shown: Format, data: Path) -> None:
    """Print every definition that matches, newest first."""
    with Client(find(data)) as client:
        rows = client.definitions(**filters)
    if shown is Format.JSON:
        typer.echo(json.dumps({"data": rows}))
        return
    screen.console().print(_table(rows) if rows else "no definitions")


def show(which: str, *, as_yaml: bool, shown: Format, data: Path) -> None:
    """Print one definition: YAML that a command takes, or JSON as the API answers it."""
    with Client(find(data)) as client:
        found = _get(client, resolved(client, which))
    if as_yaml or shown is Format.TEXT:
        if not as_yaml:
            typer.echo(f"# {_title(found)}")
        typer.echo(envelope(found), nl=False)
    else:
        typer.echo(json.dumps(found))


def diff(which: str, against: str, *, shown: Format, data: Path) -> None:
    """Print what changed between two definitions."""
    with Client(find(data)) as client:
        ident = resolved(client, which, drafts_first=True)
        query = {"against": resolved(client, against)} if against else {}
        answer = client.request("GET", f"{_ROOT}/{quote(ident, safe='')}/diff", query=query)["data"]
    if shown is Format.JSON:
        typer.echo(json.dumps(answer))
        return
    typer.echo(f"{_title(answer['before'])} -> {_title(answer['after'])}")
    for line in _difference(answer):
        typer.echo(line)


def duplicate(which: str, family: str, *, data: Path) -> None:
    """Copy a definition into another family."""
    with Client(find(data)) as client:
        ident = resolved(client, which, drafts_first=True)
        _echo_draft(client.request("POST", f"{_ROOT}/{quote(ident, safe='')}/duplicate", body={"family_slug": family}))


def archive(which: str, *, data: Path) -> None:
    """Archive a version."""
    with Client(find(data)) as client:
        ident = resolved(client, which)
        found = client.request("POST", f"{_ROOT}/{quote(ident, safe='')}/archive", body={})["data"]
    typer.echo(f"{_title(found)} ({found['id']})")


def resolved(client: Client, which: str, *, drafts_first: bool = False) -> str:
    """The id behind an id or a family slug: its newest published version, or its draft; the other one failing that."""
    if _ID.fullmatch(which):
        return which
    rows = client.family(which)
    drafts = [row for row in rows if row.get("status") == "DEFINITION_STATUS_DRAFT"]
    versions = [row for row in rows if row.get("status") == "DEFINITION_STATUS_PUBLISHED"]
    newest = sorted(versions, key=lambda row: int(row["version"]))[-1:]
    for found in (drafts, newest) if drafts_first else (newest, drafts):
        if found:
            return str(found[0]["id"])
    raise Failure(f"no definition of the family {which!r}", code=Exit.REFUSED, hint="`ductor workflow list` shows all")


def envelope(found: Document) -> str:
    """A file that `create`, `publish` and `validate` take: the document without what the server says of it."""
    import yaml

    fields = [name for name in DOCUMENT.fields if name in found and name not in SERVER_OWNED]
    body = {name: found[name] for name in fields if found[name] not in (None, "", [], {})}
    return yaml.safe_dump({"type": "workflow_definition", "definition": body}, sort_keys=False, allow_unicode=True)


def _get(client: Client, ident: str) -> Document:
    found = client.request("GET", f"{_ROOT}/{quote(ident, safe='')}")["data"]
    return found if isinstance(found, dict) else {}


def _echo_draft(answer: Document) -> None:
    draft = answer["data"]
    typer.echo(f"{draft['family_slug']} draft {draft['id']} revision {draft['draft_revision']}")
    for item in answer.get("warnings") or ():
        typer.echo(f"  {remark(item)}")


def _title(found: Document) -> str:
    status = str(found["status"]).removeprefix("DEFINITION_STATUS_").lower()
    state = f"draft revision {found['draft_revision']}" if status == "draft" else f"version {found['version']} {status}"
    return f"{found['family_slug']} {state}"


def _table(rows: list[Document]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("ID", no_wrap=True, min_width=36)
    for name in ("FAMILY", "VERSION", "STATUS", "UPDATED"):
        table.add_column(name, no_wrap=True)
    table.add_column("TITLE", overflow="ellipsis", no_wrap=True)
    for row in rows:
        status = str(row["status"]).removeprefix("DEFINITION_STATUS_").lower()
        cells = (row["id"], row["family_slug"], str(row["version"]), status, screen.local_time(row.get("updated_at")))
        table.add_row(*(Text(str(cell)) for cell in cells), Text(str(row.get("title") or "")))
    return table


def _difference(answer: Document) -> Iterator[str]:
    if answer["identical"]:
        yield "identical"
    yield from _fields(answer["fields"], "")
    for kind, name in (("steps", _step_name), ("edges", _edge_name)):
        part = answer[kind]
        for sign, change in (("-", "removed"), ("+", "added")):
            yield from (f"{sign} {kind[:-1]} {name(item)}" for item in part[change])
        for item in part["changed"]:
            yield f"~ {kind[:-1]} {name(item)}"
            yield from _fields(item["fields"], "    ")


def _fields(changes: list[Document], indent: str) -> Iterator[str]:
    for item in changes:
        sign = {"added": "+", "removed": "-"}.get(item["change"], "~")
        values = [screen.short(item[side]) for side in ("before", "after") if item[side] is not None]
        yield f"{indent}{sign} {item['field']}: {' -> '.join(values)}"


def _step_name(step: Document) -> str:
    return str(step.get("ref"))


def _edge_name(edge: Document) -> str:
    kind = str(edge.get("type", "")).removeprefix("EDGE_TYPE_").lower()
    return f"{edge.get('source_ref')} -> {edge.get('target_ref')} ({kind})"
