"""`ductor trigger`: starts a run of a published definition, named by family or by id, and can wait for its end."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from ductor.cli.access import find
from ductor.cli.client import Client
from ductor.cli.failure import Exit, Failure
from ductor.cli.options import Format
from ductor.cli.values import json_value, labels, pair


@dataclass(frozen=True)
class Request:
    """What the command line asks for, as written."""

    definition: str
    input: str
    idempotency_key: str
    subject: str
    labels: tuple[str, ...]

    def body(self) -> dict[str, Any]:
        """The request body. Raises Failure for a malformed option."""
        body: dict[str, Any] = {}
        if self.input:
            body["input"] = json_value(self.input, "--input")
        if self.idempotency_key:
            body["idempotency_key"] = self.idempotency_key
        if self.subject:
            body["subject_type"], body["subject_id"] = pair(self.subject, ":", "--subject", "type:id")
        if self.labels:
            body["correlation_labels"] = [{"key": key, "id": value} for key, value in labels(self.labels)]
        return body


def run(request: Request, *, data: Path, wait: bool, shown: Format) -> None:
    """Trigger, print the run, and with `wait` follow it; raises Failure unless it then completes."""
    body = request.body()
    with Client(find(data)) as client:
        answer = client.trigger(definition_id(client, request.definition), body)
        run_id = str(answer.get("run_id"))
        if not wait:
            typer.echo(json.dumps(answer) if shown is Format.JSON else f"run {run_id}  {answer.get('status')}")
            return
        _follow(client, run_id, request.definition, shown)


def definition_id(client: Client, name: str) -> str:
    """`name` itself when it is an id, else the id of the newest published version of that family."""
    try:
        return str(uuid.UUID(name))
    except ValueError:
        versions = client.family(name, "published")
    if not versions:
        raise Failure(
            f"no published definition of the family '{name}'",
            code=Exit.REFUSED,
            hint="create and publish it first; a draft cannot run",
        )
    return str(max(versions, key=lambda row: int(row.get("version") or 0)).get("id"))


def _follow(client: Client, run_id: str, title: str, shown: Format) -> None:
    """Show the run until its end, and then its output. JSON goes to standard output alone, progress beside it."""
    from rich.console import Console

    from ductor.cli import screen
    from ductor.cli.follow import follow, require_completed

    console = Console(stderr=True, highlight=False) if shown is Format.JSON else screen.console()
    snapshot = follow(client, run_id, f"{title} {run_id}", console)
    completed = snapshot.get("status") == "completed"
    output = client.output(run_id) if completed else None
    if shown is Format.JSON:
        typer.echo(json.dumps({"run_id": run_id, "status": snapshot.get("status"), "output": output}))
    elif completed:
        typer.echo(f"output: {json.dumps(output, ensure_ascii=False)}")
    require_completed(snapshot)
