"""`ductor runs batch`, which controls many runs, and `ductor publish-event`, which names none. One request each."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote

import typer

from ductor.cli.operate import Data, Reason, RequestId

LOOK_S: Final = 0.5
_BATCHES: Final = "/api/v2/workflow-runs/batches"

Wait = Annotated[bool, typer.Option("--wait", help="Until every run has been asked.")]


def add_to(app: typer.Typer, runs: typer.Typer) -> None:
    """Register the commands."""
    runs.command("batch", help="One control of every run that a filter finds, as a job.")(batch)
    runs.command("batch-status", help="How far a batch is.")(batch_status)
    app.command("publish-event", help="Publish an event: it ends waits that match, and starts runs.")(publish_event)


def batch(
    operation: Annotated[str, typer.Argument(metavar="pause|resume|cancel|terminate|redrive")],
    wanted: Annotated[
        list[str], typer.Option("--filter", metavar="NAME=VALUE", help="As in the list of runs; repeatable.")
    ],
    wait: Wait = False,
    reason: Reason = "",
    request_id: RequestId = "",
    data: Data = Path("data"),
) -> None:
    from ductor.cli.values import pair

    named = dict(pair(text, "=", "--filter", "NAME=VALUE") for text in wanted)
    body = {"request_id": request_id or str(uuid.uuid4()), "operation": operation, "filter": named, "reason": reason}
    _follow(_ask("POST", "/api/v2/workflow-runs:batch", data, body), data, wait=wait)


def batch_status(batch_id: str, wait: Wait = False, data: Data = Path("data")) -> None:
    _follow(_ask("GET", f"{_BATCHES}/{quote(batch_id, safe='')}", data), data, wait=wait)


def _follow(job: dict[str, Any], data: Path, *, wait: bool) -> None:
    while wait and job.get("status") == "running":
        time.sleep(LOOK_S)
        job = _ask("GET", f"{_BATCHES}/{quote(str(job.get('batch_id')), safe='')}", data)
    counts = f"{job.get('accepted')} accepted, {job.get('refused')} refused"
    typer.echo(f"batch {job.get('batch_id')} {job.get('status')}: {counts}")
    for one in job.get("refusals") or ():
        typer.echo(f"  {one.get('run_id')}  {one.get('code')}")


def publish_event(
    name: str,
    key: Annotated[str, typer.Option("--key", help="The correlation key that waits were given.")] = "",
    payload: Annotated[str, typer.Option("--payload", metavar="JSON|@FILE", help="Any JSON.")] = "",
    event_id: Annotated[str, typer.Option("--event-id", help="The same id makes a repeat do nothing.")] = "",
    data: Data = Path("data"),
) -> None:
    from ductor.cli.values import json_value

    body: dict[str, Any] = {"event_name": name, "event_id": event_id or str(uuid.uuid4())}
    body |= {"correlation_key": key} if key else {}
    body |= {"payload": json_value(payload, "--payload")} if payload else {}
    answer = _ask("POST", "/api/v2/workflow-events:publish", data, body)
    typer.echo(f"matched {answer.get('matched')}")
    for run in answer.get("started_runs") or ():
        typer.echo(f"started {run}")


def _ask(method: str, path: str, data: Path, body: dict[str, Any] | None = None) -> dict[str, Any]:
    from ductor.cli.access import find
    from ductor.cli.client import Client

    with Client(find(data)) as client:
        return client.request(method, path, body=body)
