"""`ductor schedules`: shows and steers the schedules of published definitions. Each command is one or two requests."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote

import typer

from ductor.cli.options import DATA_HELP, Format

Data = Annotated[Path, typer.Option("--data", envvar="DUCTOR_DATA", help=DATA_HELP)]
Reason = Annotated[str, typer.Option("--reason", help="Why; it goes into the audit trail.")]
RequestId = Annotated[str, typer.Option("--request-id", help="The same id makes a repeat do nothing.")]
Environment = Annotated[str, typer.Option("--env", help="Needed where several environments have a schedule.")]
Overlap = Annotated[str, typer.Option("--overlap", metavar="skip|allow_all", help="Instead of the schedule's own.")]
Shown = Annotated[Format, typer.Option("--format", help="text for people, json for programs.")]

_ALL: Final = "/api/workflow-schedules"

schedules = typer.Typer(
    name="schedules", help="Schedules: list, preview, pause, start now, backfill.", no_args_is_help=True
)

Document = dict[str, Any]


@schedules.command("list")
def list_schedules(shown: Shown = Format.TEXT, data: Data = Path("data")) -> None:
    """List the schedules of the newest versions, and when each fires next."""
    from ductor.cli.client import next_cursor, rows

    found: list[Document] = []
    cursor = ""
    while True:
        page = _ask("GET", _ALL, data, query={"limit": "200", **({"cursor": cursor} if cursor else {})})
        found += rows(page)
        cursor = next_cursor(page)
        if not cursor:
            break
    if shown is Format.JSON:
        typer.echo(json.dumps(found))
        return
    _print_table(found)


@schedules.command()
def show(family: str, env: Environment = "", shown: Shown = Format.TEXT, data: Data = Path("data")) -> None:
    """Show one schedule, and what became of its last occurrences."""
    query = _query(env)
    detail = _data(_ask("GET", _path(family), data, query=query))
    recent = _ask("GET", f"{_path(family)}/occurrences", data, query={**query, "limit": "10"}).get("data") or []
    if shown is Format.JSON:
        typer.echo(json.dumps({"schedule": detail, "occurrences": recent}))
        return
    for name, value in detail.items():
        if value not in (None, "", 0) and name not in ("last_occurrence", "counts"):
            typer.echo(f"{name}: {value}")
    typer.echo("counts: " + ", ".join(f"{count} {name}" for name, count in (detail.get("counts") or {}).items()))
    for one in recent:
        told = ": ".join(filter(None, (one.get("code"), one.get("message")))) or one.get("run_id") or ""
        many = f" ({one['count']} times)" if one.get("count", 1) > 1 else ""
        typer.echo(f"  {one.get('scheduled_at')}  {one.get('outcome')}{many}  {told}".rstrip())


@schedules.command()
def preview(
    family: str,
    count: Annotated[int, typer.Option("--count", min=1, max=1_000, help="How many instants.")] = 10,
    env: Environment = "",
    data: Data = Path("data"),
) -> None:
    """Print the next instants at which a schedule fires, one a line."""
    found = _data(_ask("GET", f"{_path(family)}/preview", data, query={**_query(env), "count": str(count)}))
    for instant in found.get("occurrences") or ():
        typer.echo(instant)


@schedules.command()
def pause(
    family: str, env: Environment = "", reason: Reason = "", request_id: RequestId = "", data: Data = Path("data")
) -> None:
    """Nothing fires until it is resumed."""
    _control(family, "pause", {"environment": env, "reason": reason}, request_id, data)
    typer.echo(f"{family} paused")


@schedules.command()
def resume(
    family: str, env: Environment = "", reason: Reason = "", request_id: RequestId = "", data: Data = Path("data")
) -> None:
    """It fires again from now on; what lay in the pause is not caught up."""
    detail = _control(family, "resume", {"environment": env, "reason": reason}, request_id, data)
    typer.echo(f"{family} fires next at {detail.get('next_occurrence_at') or 'no time'}")


@schedules.command("trigger-now")
def trigger_now(
    family: str,
    overlap: Overlap = "",
    env: Environment = "",
    reason: Reason = "",
    request_id: RequestId = "",
    data: Data = Path("data"),
) -> None:
    """Start one run now, and print its id."""
    body = {"environment": env, "reason": reason, "overlap_policy": overlap}
    typer.echo(_control(family, "triggerNow", body, request_id, data).get("run_id"))


@schedules.command()
def backfill(
    family: str,
    start: Annotated[str, typer.Option("--from", help="RFC 3339, or a distance back such as -1d.")],
    end: Annotated[str, typer.Option("--to", help="RFC 3339, or a distance back; not in the future.")],
    overlap: Overlap = "",
    env: Environment = "",
    reason: Reason = "",
    request_id: RequestId = "",
    data: Data = Path("data"),
) -> None:
    """Run past occurrences that have not fired."""
    body = {"environment": env, "reason": reason, "overlap_policy": overlap, "start_at": start, "end_at": end}
    job = _control(family, "backfill", body, request_id, data)
    counts = ", ".join(f"{job.get(name)} {name}" for name in ("started", "fired_before", "skipped", "refused"))
    typer.echo(f"backfill {job.get('request_id')} {job.get('status')}: {counts}")


def _control(family: str, verb: str, body: Document, request_id: str, data: Path) -> Document:
    sent = {"request_id": request_id or str(uuid.uuid4()), **body}
    return _data(_ask("POST", f"{_path(family)}:{verb}", data, body=sent))


def _ask(
    method: str, path: str, data: Path, *, body: Document | None = None, query: dict[str, str] | None = None
) -> Document:
    from ductor.cli.access import find
    from ductor.cli.client import Client

    with Client(find(data)) as client:
        return client.request(method, path, body=body, query=query)


def _data(answer: Document) -> Document:
    found = answer.get("data")
    return found if isinstance(found, dict) else {}


def _path(family: str) -> str:
    return f"{_ALL}/{quote(family, safe='')}"


def _query(environment: str) -> dict[str, str]:
    return {"environment": environment} if environment else {}


def _print_table(found: list[Document]) -> None:
    from rich.table import Table
    from rich.text import Text

    from ductor.cli import screen

    console = screen.console()
    if not found:
        console.print("no schedules")
        return
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("SCHEDULE", "ENVIRONMENT", "WHEN", "ZONE", "NEXT", "LAST"):
        table.add_column(name, no_wrap=True)
    for one in found:
        when = one.get("cron") or f"every {screen.duration_text((one.get('rate_ms') or 0) / 1_000)}"
        following = "paused" if one.get("paused") else str(one.get("next_occurrence_at") or "never")
        last = (one.get("last_occurrence") or {}).get("outcome") or ""
        cells = (one.get("family_slug"), one.get("environment"), when, one.get("timezone"), following, last)
        table.add_row(*(Text(str(cell)) for cell in cells))
    console.print(table)
