"""`ductor admin environments` and `variables`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from ductor.cli.admin_access import part, send, show, value_of
from ductor.cli.options import Format

Document = dict[str, Any]

_ROOT = "/api/environments"


def create(key: str, fields: Document, data: Path) -> None:
    send(data, "POST", _ROOT, {"key": key, **fields})
    typer.echo(f"environment {key} is there")


def list_all(shown: Format, data: Path) -> None:
    columns = ("key", "title", "active", "mutable", "allow_direct_mutation", "require_promotion", "release")
    show(send(data, "GET", _ROOT), columns, shown)


def update(key: str, fields: Document, data: Path) -> None:
    send(data, "PATCH", f"{_ROOT}/{part(key)}", fields)
    typer.echo(f"environment {key} is changed")


def connect(key: str, name: str, connection: str, data: Path) -> None:
    """Change one name of the map; the others stay."""
    wanted = None if connection == "-" else connection
    send(data, "PATCH", f"{_ROOT}/{part(key)}", {"connections": {name: wanted}})
    typer.echo(f"environment {key}: {name} means {connection}" if wanted else f"environment {key}: {name} is removed")


def promote(version: str, to: str, data: Path) -> None:
    answer = send(data, "POST", f"/api/workflow-definitions/{part(version)}/promote", {"environment": to})
    made = answer["published"]
    typer.echo(f"{made['family_slug']} version {made['version']} ({made['id']}) in {to}")


def list_variables(environment: str, shown: Format, data: Path) -> None:
    show(send(data, "GET", "/api/variables", environment=environment), ("name", "value"), shown)


def set_variable(environment: str, name: str, value: str, data: Path) -> None:
    body = {"environment": environment, "value": value_of(value)}
    send(data, "PUT", f"/api/variables/{part(name)}", body)
    typer.echo(f"{name} is set in {environment}")


def unset_variable(environment: str, name: str, data: Path) -> None:
    send(data, "DELETE", f"/api/variables/{part(name)}", environment=environment)
    typer.echo(f"{name} is removed from {environment}")
