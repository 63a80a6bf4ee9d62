"""`ductor runs node …` and the decisions: controls of one step of a run. Each is one request."""

from __future__ import annotations

import uuid
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote

import typer

from ductor.cli.operate import Data, Reason, RequestId

Payload = Annotated[str, typer.Option("--payload", metavar="JSON|@FILE", help="Any JSON.")]
Comment = Annotated[str, typer.Option("--comment", help="What the audit trail shows beside the decision.")]
Approver = Annotated[str, typer.Option("--approver", help="Who decided; a label.")]

_PLAIN: Final = {
    "pause": "Hold a step: it starts nothing new until it is resumed.",
    "resume": "A held step goes on.",
    "reset": "Begin a step anew, with a fresh attempt.",
}

node = typer.Typer(name="node", help="Controls of one step: pause, resume, reset, retries, timeout.")


class Outcome(StrEnum):
    """How a waiting step is to end."""

    SUCCESS = "success"
    ERROR = "error"


def add_to(runs: typer.Typer) -> None:
    """Register the controls of steps below `ductor runs`."""
    for verb, text in _PLAIN.items():
        node.command(verb, help=text)(_plain(verb))
    node.command("retry-policy", help="Change a step's retries from the next attempt on.")(retry_policy)
    node.command("timeout", help="Change how long a step may take.")(timeout)
    runs.add_typer(node)
    runs.command("approve", help="Approve an approval step.")(_decision("approve"))
    runs.command("reject", help="Reject an approval step.")(_decision("reject"))
    runs.command("resolve", help="End a waiting step with a payload as its output, or as failed.")(resolve)


def _plain(verb: str) -> Any:
    def control(
        run: str, step: str, reason: Reason = "", request_id: RequestId = "", data: Data = Path("data")
    ) -> None:
        _send(run, "nodes", step, verb, {"reason": reason}, request_id, data)

    return control


def retry_policy(
    run: str,
    step: str,
    max_attempts: Annotated[int | None, typer.Option("--max-attempts", min=1, max=100, help="In total.")] = None,
    backoff_ms: Annotated[int | None, typer.Option("--backoff-ms", min=0, help="Before the second attempt.")] = None,
    multiplier: Annotated[float | None, typer.Option("--multiplier", help="Of the backoff, per attempt.")] = None,
    reason: Reason = "",
    request_id: RequestId = "",
    data: Data = Path("data"),
) -> None:
    changes = {
        "retry_max_attempts": max_attempts,
        "retry_backoff_ms": backoff_ms,
        "retry_backoff_multiplier": multiplier,
    }
    body = {name: value for name, value in changes.items() if value is not None}
    _send(run, "nodes", step, "updateRetryPolicy", {"reason": reason, **body}, request_id, data)


def timeout(
    run: str,
    step: str,
    milliseconds: Annotated[int, typer.Argument(min=0, help="0 = without limit.")],
    reason: Reason = "",
    request_id: RequestId = "",
    data: Data = Path("data"),
) -> None:
    body = {"reason": reason, "timeout_ms": milliseconds}
    _send(run, "nodes", step, "updateTimeout", body, request_id, data)


def _decision(verb: str) -> Any:
    def decide(
        run: str,
        step: str,
        comment: Comment = "",
        approver: Approver = "",
        payload: Payload = "",
        request_id: RequestId = "",
        data: Data = Path("data"),
    ) -> None:
        said = {"comment": comment, "approver_id": approver}
        body = {name: text for name, text in said.items() if text} | _payload(payload)
        _send(run, "steps", step, verb, body, request_id, data)

    return decide


def resolve(
    run: str,
    step: str,
    outcome: Annotated[Outcome, typer.Option("--outcome", help="How it ends.")] = Outcome.SUCCESS,
    payload: Payload = "",
    message: Annotated[str, typer.Option("--message", help="Why it failed, with --outcome error.")] = "",
    reason: Reason = "",
    request_id: RequestId = "",
    data: Data = Path("data"),
) -> None:
    body: dict[str, Any] = {"reason": reason, "outcome": outcome.value, **_payload(payload)}
    if message:
        body["error"] = {"message": message}
    _send(run, "steps", step, "resolve", body, request_id, data)


def _payload(text: str) -> dict[str, Any]:
    from ductor.cli.values import json_value

    return {"payload": json_value(text, "--payload")} if text else {}


def _send(run: str, kind: str, step: str, verb: str, body: dict[str, Any], request_id: str, data: Path) -> None:
    from ductor.cli.access import find
    from ductor.cli.client import Client

    path = f"/api/v2/workflow-runs/{quote(run, safe='')}/{kind}/{quote(step, safe='')}:{verb}"
    with Client(find(data)) as client:
        answer = client.request("POST", path, body={"request_id": request_id or str(uuid.uuid4()), **body})
    typer.echo(f"{verb} {answer.get('status')}")
