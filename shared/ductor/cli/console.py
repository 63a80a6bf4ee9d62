"""`ductor console`: the address of the web console that signs in. Sends nothing, opens nothing."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urlencode

import typer

from ductor.cli.access import KEY, TENANT, find, read_env


def run(data: Path, run_id: str) -> None:
    """Print the link, to a run's page if one is named. Raises Failure when no key is found."""
    access = find(data)
    typer.echo(sign_in_link(access.url, access.key, access.tenant, f"/runs/{quote(run_id, safe='')}" if run_id else ""))


def sign_in_link(url: str, key: str, tenant: str, to: str = "") -> str:
    """The console of the server at `url`, as this caller, at the view `to`. The key is in what comes after the `#`.

    A browser sends that part to nobody; whoever sees the link can do what the key may.
    """
    values = {"key": key, "tenant": tenant, **({"to": to} if to else {})}
    return f"{url}/console/#{urlencode(values)}"


def console_address(url: str, env_file: Path, *, on_terminal: bool) -> str:
    """What a server prints at its start. On a terminal it signs in; elsewhere a log would keep the key."""
    values = read_env(env_file) if on_terminal else {}
    if not values.get(KEY) or not values.get(TENANT):
        return f"{url}/console/"
    return f"{sign_in_link(url, values[KEY], values[TENANT])} (signs in: the key is in it)"
