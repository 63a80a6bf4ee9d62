"""`ductor admin tenants` and `keys`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from ductor.cli.admin_access import part, send, show
from ductor.cli.failure import Exit, Failure
from ductor.cli.options import Format
from ductor.cli.values import pair

Document = dict[str, Any]


def entitlements(plan: str, step_types: Sequence[str] | None, limits: Sequence[str] | None) -> Document:
    """What the options allow. Raises Failure for a limit that is no number."""
    wanted: Document = {"plan": plan}
    if step_types:
        wanted["step_types"] = list(step_types)
    for text in limits or ():
        name, number = pair(text, "=", "--limit", "name=number")
        if not number.isdecimal():
            raise Failure(f"--limit: {number!r} is no number", code=Exit.USAGE)
        wanted[name] = int(number)
    return wanted


def create_tenant(name: str, allowed: Document, data: Path) -> None:
    made = send(data, "POST", "/api/admin/tenants", {"name": name, "entitlements": allowed})["data"]
    typer.echo(f"tenant {made['id']} ({made['name']})")
    typer.echo(f"administrator's key: {made['admin_key']}")
    typer.echo("Keep the key now; it cannot be shown again.")


def list_tenants(shown: Format, data: Path) -> None:
    show(send(data, "GET", "/api/admin/tenants"), ("id", "name", "created_at", "entitlements"), shown)


def entitle(tenant: str, allowed: Document, data: Path, *, replace: bool) -> None:
    """Change what is named, or `replace` the plan as a whole. Of two administrators at once the later one counts."""
    path = f"/api/admin/tenants/{part(tenant)}"
    if not replace:
        named = {name: value for name, value in allowed.items() if value != ""}
        allowed = send(data, "GET", path)["data"]["entitlements"] | named
    send(data, "PATCH", path, {"entitlements": allowed})
    typer.echo(f"tenant {tenant}: changed what its plan allows")


def issue_key(wanted: Document, data: Path) -> None:
    made = send(data, "POST", "/api/admin/api-keys", wanted)["data"]
    typer.echo(made["key"])
    typer.echo("Keep it now; it cannot be shown again.", err=True)


def list_keys(shown: Format, data: Path) -> None:
    columns = ("id", "name", "roles", "scopes", "environments_write", "last_used_at", "expires_at", "revoked_at")
    show(send(data, "GET", "/api/admin/api-keys"), columns, shown)


def revoke_key(key: str, data: Path) -> None:
    send(data, "DELETE", f"/api/admin/api-keys/{part(key)}")
    typer.echo(f"key {key} is revoked")
