"""`ductor runs`: lists, shows and follows runs. Changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ductor.cli import screen
from ductor.cli.access import find
from ductor.cli.client import Client
from ductor.cli.follow import follow, require_completed
from ductor.cli.options import Format

Document = dict[str, Any]

WIDE: Final = 110
"""Columns of a terminal that has room for everything."""


def show_list(query: dict[str, str], *, shown: Format, data: Path) -> None:
    """Print one page of the runs that the query of the list route finds, and how to get the next."""
    with Client(find(data)) as client:
        rows, cursor = client.runs(query)
    if shown is Format.JSON:
        typer.echo(json.dumps({"data": rows, "next_cursor": cursor or None}))
        return
    console = screen.console()
    console.print(_table(rows, console.width) if rows else "no runs")
    if cursor:
        console.print(screen.plain(f"more: add --cursor {cursor}"), soft_wrap=True)


def show(run_id: str, *, shown: Format, data: Path) -> None:
    """Print a run: head, what it waits for, and every node."""
    with Client(find(data)) as client:
        detail, snapshot = client.run(run_id), client.snapshot(run_id)
    if shown is Format.JSON:
        typer.echo(json.dumps({"run": detail, "snapshot": snapshot}))
        return
    console = screen.console()
    _head(console, detail.get("summary") or {}, snapshot)
    console.print(screen.node_table(snapshot.get("nodes") or {}, _fetched_at(snapshot)))


def watch(run_id: str, *, data: Path) -> None:
    """Follow a run; raises Failure unless it completes."""
    with Client(find(data)) as client:
        title = str((client.run(run_id).get("summary") or {}).get("workflow_type") or "run")
        require_completed(follow(client, run_id, f"{title} {run_id}", screen.console()))


def _table(rows: list[Document], width: int) -> Table:
    """A line per run. The id is never cut, because people copy it; a narrow terminal does without the last column."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("RUN", no_wrap=True, min_width=36)
    table.add_column("WORKFLOW", no_wrap=True)
    for name in ("STATUS", "STARTED", "TOOK"):
        table.add_column(name, no_wrap=True, min_width=9)
    wide = width >= WIDE
    if wide:
        table.add_column("WAITS FOR", no_wrap=True)
    for row in rows:
        waiting = row.get("waiting_on")
        cells = (
            Text(str(row.get("run_id"))),
            Text(_workflow(row)),
            screen.styled(str(row.get("status"))),
            Text(screen.local_time(row.get("started_at") or row.get("created_at"))),
            Text(screen.span(row.get("started_at"), row.get("finished_at"))),
            Text(screen.waiting_text(waiting) if isinstance(waiting, dict) else ""),
        )
        table.add_row(*cells[: 6 if wide else 5])
    return table


def _head(console: Console, summary: Document, snapshot: Document) -> None:
    status = str(snapshot.get("status"))
    end = summary.get("finished_at") or _fetched_at(snapshot)
    took = screen.span(summary.get("started_at"), end)
    console.print(Text.assemble((_workflow(summary), "bold"), "  ", screen.styled(status), f"  {took}"))
    console.print(Text(f"run {snapshot.get('run_id')}"))
    for name, said in (("waiting_on", screen.waiting_text), ("stalled", _stalled), ("error", screen.error_text)):
        found = summary.get(name) or snapshot.get(name)
        if found:
            console.print(Text(f"{name.replace('_', ' ')}: {said(found)}"))


def _stalled(stalled: Document) -> str:
    since = screen.local_time(stalled.get("since"))
    return f"{screen.short(stalled.get('reason'))}{f', since {since}' if since else ''}; a redrive goes on"


def _workflow(summary: Document) -> str:
    version = summary.get("definition_version")
    name = str(summary.get("workflow_type") or summary.get("family_slug") or "")
    return f"{name} v{version}" if version else name


def _fetched_at(snapshot: Document) -> str | None:
    return (snapshot.get("metadata") or {}).get("fetched_at")
