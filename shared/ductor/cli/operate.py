"""`ductor runs pause` and the other controls: each is one request, and prints what the server said."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote

import typer

from ductor.cli.options import DATA_HELP

Data = Annotated[Path, typer.Option("--data", envvar="DUCTOR_DATA", help=DATA_HELP)]
Reason = Annotated[str, typer.Option("--reason", help="Why; it goes into the audit trail.")]
RequestId = Annotated[str, typer.Option("--request-id", help="The same id makes a repeat do nothing.")]

_PLAIN: Final = {
    "pause": "Nothing new starts until the run is resumed.",
    "resume": "A paused run goes on.",
    "cancel": "Nothing new starts; what is at work is drained, then the run is cancelled.",
    "terminate": "End the run at once.",
    "redrive": "Run what failed again; what completed keeps its output.",
}


def add_to(runs: typer.Typer) -> None:
    """Register the controls below `ductor runs`."""
    for verb, text in _PLAIN.items():
        runs.command(verb, help=text)(_plain(verb))
    runs.command("signal", help="Send a signal to the step of a run that waits for its name.")(signal)
    runs.command("reset", help="Fork a run at a transition of its history.")(reset)
    runs.command("reset-targets", help="The points of a run's history that a fork may begin at, and why.")(targets)
    runs.command("continue-as-new", help="End a run and go on as a new one with a fresh history.")(continue_as_new)


def _plain(verb: str) -> Any:
    def control(run: str, reason: Reason = "", request_id: RequestId = "", data: Data = Path("data")) -> None:
        _send(run, verb, {"reason": reason}, request_id, data)

    return control


def signal(
    run: str,
    name: str,
    payload: Annotated[str, typer.Option("--payload", metavar="JSON|@FILE", help="Any JSON.")] = "",
    reason: Reason = "",
    request_id: RequestId = "",
    data: Data = Path("data"),
) -> None:
    from ductor.cli.values import json_value

    value = json_value(payload, "--payload") if payload else None
    _send(run, "signal", {"name": name, "payload": value, "reason": reason}, request_id, data)


def reset(
    run: str,
    at: Annotated[int, typer.Option("--at", min=0, help="Everything up to this transition has happened.")],
    override: Annotated[
        list[str] | None, typer.Option("--input", metavar="STEP=JSON", help="Args; repeatable.")
    ] = None,
    preserve: Annotated[list[str] | None, typer.Option("--preserve", help="A later result to take over.")] = None,
    preview: Annotated[bool, typer.Option("--preview", help="Only say what would happen.")] = False,
    reason: Reason = "",
    request_id: RequestId = "",
    data: Data = Path("data"),
) -> None:
    from ductor.cli.values import json_value, pair

    named = [pair(text, "=", "--input", "STEP=JSON") for text in override or ()]
    body: dict[str, Any] = {
        "transition_seq": at,
        "input_overrides": {step: json_value(text, "--input") for step, text in named},
        "preserve_outputs": preserve or [],
    }
    if not preview:
        answer = _send(run, "reset", {**body, "reason": reason}, request_id, data)
        typer.echo(f"new run {answer.get('new_run_id')}")
        return
    answer = _ask(run, "previewReset", body, data)
    for name in ("kept", "adopted", "rerun"):
        typer.echo(f"{name}: {', '.join(answer.get(name) or []) or '-'}")
    for one in answer.get("items") or ():
        typer.echo(f"{one['step']} in {one['scatter']}: {one['kept']} kept, {one['adopted']} adopted, of {one['of']}")


def targets(run: str, data: Data = Path("data")) -> None:
    from ductor.cli.access import find
    from ductor.cli.client import Client

    with Client(find(data)) as client:
        answer = client.request("GET", f"/api/v2/workflow-runs/{quote(run, safe='')}/reset-targets")
    for point in answer.get("targets") or ():
        typer.echo(f"{point.get('transition_seq')}  {point.get('reason')}")


def continue_as_new(
    run: str,
    context: Annotated[str, typer.Option("--context", metavar="JSON|@FILE", help="Its initial run context.")] = "",
    discard: Annotated[bool, typer.Option("--discard-pending", help="Stop what is at work, drop signals.")] = False,
    reason: Reason = "",
    request_id: RequestId = "",
    data: Data = Path("data"),
) -> None:
    from ductor.cli.values import json_value

    seed = {"seed_run_context": json_value(context, "--context")} if context else {}
    body = {"reason": reason, "discard_pending": discard, **seed}
    typer.echo(f"new run {_send(run, 'continueAsNew', body, request_id, data).get('new_run_id')}")


def _send(run: str, verb: str, body: dict[str, Any], request_id: str, data: Path) -> dict[str, Any]:
    answer = _ask(run, verb, {"request_id": request_id or str(uuid.uuid4()), **body}, data)
    typer.echo(f"{verb} {answer.get('status')}")
    return answer


def _ask(run: str, verb: str, body: dict[str, Any], data: Path) -> dict[str, Any]:
    from ductor.cli.access import find
    from ductor.cli.client import Client

    with Client(find(data)) as client:
        return client.operate(run, verb, body)
