"""`ductor admin dead-letters`: what a queue gave up on, and sending it again. Talks to no server.

It reads the data file, or the queues of a stack with the operator's own AWS credentials.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import typer

from ductor.cli import screen
from ductor.cli.admin_access import show
from ductor.cli.failure import Exit, Failure
from ductor.cli.options import Format
from ductor.ports import DeadLetters, Message, QueueName, UnavailableError

_COLUMNS: Final = ("id", "run", "receives", "sent_at", "reason", "body")
_SHOWN: Final = 200
"""Characters of a body in the table; JSON has all of it."""


def run(called: str, *, data: Path, stack: str, redrive: bool, limit: int, shown: Format) -> None:
    """List the dead letters, or send up to `limit` of them again. Raises Failure."""
    names = [name.value for name in QueueName]
    if called not in names:
        raise Failure(f"there is no queue {called!r}; it is one of {', '.join(names)}", code=Exit.USAGE)
    name = QueueName(called)
    with _queue(name, data, stack) as queue:
        try:
            if redrive:
                typer.echo(f"{queue.redrive(limit)} messages sent again")
            else:
                _list([_row(message, reason) for message, reason in queue.dead_letters(limit)], shown)
        except UnavailableError as error:
            raise Failure(f"the queue {name.value} cannot be reached: {error}", code=Exit.UNREACHABLE) from error


@contextmanager
def _queue(name: QueueName, data: Path, stack: str) -> Iterator[DeadLetters]:
    if stack:
        yield _of_stack(name, stack)
        return
    from ductor.bootstrap.local_folder import dead_letters
    from ductor.bootstrap.local_settings import StartError

    try:
        with dead_letters(data, name) as queue:
            yield queue
    except StartError as error:
        raise Failure(str(error), hint="name the data folder with --data, or a stack with --stack") from error


def _of_stack(name: QueueName, stack: str) -> DeadLetters:
    from botocore.exceptions import BotoCoreError, ClientError

    from ductor.bootstrap.aws_parts import AwsSettings, parts

    called = name.value.capitalize()
    urls: dict[str, str] = {}
    for variable, resource in (("URL", f"{called}Queue"), ("DEAD_URL", f"{called}DeadLetters")):
        try:
            found: Any = (
                parts().clients("cloudformation").describe_stack_resource(StackName=stack, LogicalResourceId=resource)
            )
        except (BotoCoreError, ClientError) as error:
            hint = "credentials and region are found as the AWS command line finds them: AWS_PROFILE, AWS_REGION"
            raise Failure(f"the stack {stack} cannot be read: {error}", code=Exit.UNREACHABLE, hint=hint) from error
        urls[f"DUCTOR_{name.value.upper()}_{variable}"] = found["StackResourceDetail"]["PhysicalResourceId"]
    of = parts(AwsSettings(urls))
    return of.intents if name is QueueName.INTENTS else of.steps


def _row(message: Message, reason: str) -> dict[str, Any]:
    text = message.body.decode("utf-8", "replace")
    return {
        "id": message.id,
        "run": message.group,
        "receives": message.receives,
        "sent_at": datetime.fromtimestamp(message.sent_at / 1000, UTC).isoformat(timespec="milliseconds"),
        "reason": reason,
        "body": text,
    }


def _list(rows: list[dict[str, Any]], shown: Format) -> None:
    if shown is Format.TEXT:
        if not rows:
            typer.echo("no dead letters")
            return
        rows = [{**row, "body": row["body"][:_SHOWN], "sent_at": screen.local_time(row["sent_at"])} for row in rows]
    show({"data": rows}, _COLUMNS, shown)
