"""What the `ductor admin` commands share: the administrator's access, requests, tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import typer
from rich.table import Table

from ductor.cli import screen
from ductor.cli.access import find
from ductor.cli.client import Client, Refused, rows
from ductor.cli.options import Format

ADMIN_ENV_FILE: Final = "admin.env"

Document = dict[str, Any]


@contextmanager
def administrator(data: Path) -> Iterator[Client]:
    """A client with the environment's key, else the one in `<data>/admin.env`."""
    with Client(find(data, file=ADMIN_ENV_FILE)) as client:
        try:
            yield client
        except Refused as refused:
            if "SCOPE_MISSING" in refused.codes:
                refused.hint = f"this takes an administrator's key: source {data / ADMIN_ENV_FILE}"
            raise


def send(data: Path, method: str, path: str, body: Document | None = None, **query: str) -> Document:
    """One request as administrator; the whole answer."""
    with administrator(data) as client:
        return client.request(method, path, body=body, query=query or None)


def part(text: str) -> str:
    """A value as one segment of a path."""
    return quote(text, safe="")


def value_of(text: str) -> Any:
    """JSON where it is JSON, text otherwise: `12` is a number, `eu` is a text."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def show(answer: Document, columns: Sequence[str], shown: Format) -> None:
    """The rows of a list answer: a table, or the rows as JSON."""
    found = rows(answer)
    if shown is Format.JSON:
        typer.echo(json.dumps(found, indent=2))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in found:
        table.add_row(*(screen.plain(_cell(row.get(column))) for column in columns))
    screen.console().print(table)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
