"""`ductor runs tree`: the runs that one trigger led to, as a tree. Changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer
from rich.text import Text
from rich.tree import Tree

from ductor.cli import screen
from ductor.cli.access import find
from ductor.cli.client import Client
from ductor.cli.options import Format


def show(run_id: str, *, shown: Format, data: Path) -> None:
    """Print the tree that a run belongs to, the run itself in bold."""
    with Client(find(data)) as client:
        found = client.tree(run_id)
    if shown is Format.JSON:
        typer.echo(json.dumps(found))
        return
    console = screen.console()
    branches: dict[str, Tree] = {}
    for run in found.get("runs") or []:
        above = branches.get(run["asked_by"])
        label = _label(run, run_id)
        branches[run["run_id"]] = above.add(label) if above else Tree(label)
    root = branches.get(str(found.get("root_run_id")))
    if root is not None:
        console.print(root)
    if found.get("truncated"):
        console.print(screen.plain(f"only the first {len(branches)} runs are shown"))


def _label(run: dict[str, Any], asked: str) -> Text:
    node = f" of {run['node']}" if run["relation"] == "child" else ""
    style = "bold" if run["run_id"] == asked else ""
    head = Text(f"{run['workflow_type']} v{run['definition_version']}  {run['relation']}{node}  ", style=style)
    return head + screen.styled(run["status"]) + Text(f"  {run['run_id']}", style="dim")
