"""`ductor admin connections`. Secrets come from files, variables or a prompt: never from the command line itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from ductor.cli.admin_access import part, send, show, value_of
from ductor.cli.failure import Exit, Failure
from ductor.cli.options import Format

Document = dict[str, Any]

_ROOT = "/api/connections"


def fields(
    title: str | None, settings: Sequence[str] | None, secrets: Sequence[str] | None, environments: Sequence[str] | None
) -> Document:
    """The request's fields. Reads secrets. Raises Failure for an option that is not of its form."""
    found: Document = {} if title is None else {"title": title}
    if settings:
        found["settings"] = dict(map(_setting, settings))
    if secrets:
        found["secrets"] = dict(map(_secret, secrets))
    if environments:
        found["environments"] = list(environments)
    return found


def create(slug: str, kind: str, given: Document, data: Path) -> None:
    made = send(data, "POST", _ROOT, {"slug": slug, "type": kind, **given})["data"]
    typer.echo(f"connection {made['slug']} ({made['id']}) of type {made['type']}")


def list_types(shown: Format, data: Path) -> None:
    answer = send(data, "GET", f"{_ROOT}/types")
    if shown is Format.TEXT:
        for row in answer["data"]:
            for name in ("settings", "secrets"):
                row[name] = [f"{field['name']}{'' if field['required'] else '?'}" for field in row[name]]
    show(answer, ("type", "title", "settings", "secrets", "actions"), shown)


def list_all(shown: Format, data: Path) -> None:
    columns = ("slug", "id", "type", "title", "settings", "secrets", "environments", "active")
    show(send(data, "GET", _ROOT), columns, shown)


def update(connection: str, changes: Document, data: Path) -> None:
    send(data, "PATCH", f"{_ROOT}/{part(connection)}", changes)
    typer.echo(f"connection {connection} is changed")


def delete(connection: str, data: Path) -> None:
    send(data, "DELETE", f"{_ROOT}/{part(connection)}")
    typer.echo(f"connection {connection} is deleted")


def test(connection: str, data: Path) -> None:
    """Raises Failure when the other system refuses or cannot be reached."""
    result = send(data, "POST", f"{_ROOT}/{part(connection)}:test")["data"]
    if not result["ok"]:
        raise Failure(f"{connection} does not work: {result['message']} ({result['code']})")
    typer.echo(f"{connection} works ({result['took_ms']} ms)")


def _setting(text: str) -> tuple[str, Any]:
    name, found, value = text.partition("=")
    if not name or not found:
        raise Failure(f"--set: write it as name=value, not {text!r}", code=Exit.USAGE)
    return name, value_of(value) if value else None


def _secret(text: str) -> tuple[str, str]:
    name, found, source = text.partition("=")
    if not found:
        return name, str(typer.prompt(f"{name}", hide_input=True, err=True))
    if source.startswith("env:"):
        value = os.environ.get(source.removeprefix("env:"))
        if value is None:
            raise Failure(f"--secret {name}: there is no variable {source.removeprefix('env:')}", code=Exit.USAGE)
        return name, value
    if source.startswith("@"):
        return name, _read(name, source[1:])
    # Whoever lists processes, or reads the shell's history, would read it.
    message = f"--secret {name}: give {name}=@file, {name}=env:VARIABLE or the name alone, not the secret itself"
    raise Failure(message, code=Exit.USAGE)


def _read(name: str, file: str) -> str:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"--secret {name}: cannot read {file}", code=Exit.USAGE) from error
    return text.rstrip("\r\n")
