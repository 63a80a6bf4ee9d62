"""What a queue gave up on, listed and sent again from the shell: in a data file, and in a stack on moto."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import moto
import pytest
from botocore.exceptions import ClientError
from tests.contract.moto_backend import CREDENTIALS
from typer.testing import CliRunner, Result

from ductor.adapters.aws.clients import Clients
from ductor.adapters.local.database import Database
from ductor.adapters.local.fifo import SqliteFifoQueue
from ductor.adapters.local.system import SystemClock
from ductor.bootstrap.aws_parts import AwsSettings, parts
from ductor.cli.main import app
from ductor.ports import Outgoing, Queue, QueueName

FIFO = {"FifoQueue": "true"}
URLS: dict[str, str] = {}


class Stacks:
    """CloudFormation, which moto has only with many more packages: one stack, `ductor-dev`, with what `URLS` holds."""

    def describe_stack_resource(self, **asked: str) -> dict[str, Any]:
        if asked["StackName"] != "ductor-dev":
            raise ClientError(
                {"Error": {"Code": "ValidationError", "Message": "it does not exist"}}, "DescribeStackResource"
            )
        return {"StackResourceDetail": {"PhysicalResourceId": URLS[asked["LogicalResourceId"]]}}


def command(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["admin", "dead-letters", *arguments])


def bury(queue: Queue) -> None:
    queue.send([Outgoing(b'{"odd": 1}', group="run-1", dedup_id="d-1")])
    (message,) = queue.receive(1, visibility_ms=30_000)
    queue.dead_letter([message.receipt], "not an intent")


def listed(*arguments: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(command("intents", "--format", "json", *arguments).stdout)
    return rows


@pytest.fixture
def file_queue(tmp_path: Path) -> Iterator[SqliteFifoQueue]:
    database = Database(tmp_path / "ductor.db")
    yield SqliteFifoQueue(database, QueueName.INTENTS, SystemClock())
    database.close()


def test_a_data_file(tmp_path: Path, file_queue: SqliteFifoQueue) -> None:
    where = ("--data", str(tmp_path))
    assert command("intents", *where).stdout == "no dead letters\n"
    bury(file_queue)
    (row,) = listed(*where)
    assert (row["run"], row["reason"], row["body"], row["receives"]) == ("run-1", "not an intent", '{"odd": 1}', 1)
    assert "not an intent" in command("intents", *where).stdout
    assert command("intents", "--redrive", *where).stdout == "1 messages sent again\n"
    assert command("intents", "--redrive", *where).stdout == "0 messages sent again\n"
    assert [message.body for message in file_queue.receive(5, visibility_ms=1_000)] == [b'{"odd": 1}']


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    made = Clients.__call__
    monkeypatch.setattr(
        Clients, "__call__", lambda self, service: Stacks() if service == "cloudformation" else made(self, service)
    )
    with moto.mock_aws():
        sqs = Clients()("sqs")
        for resource in ("IntentsQueue", "IntentsDeadLetters"):
            URLS[resource] = sqs.create_queue(QueueName=f"{resource}.fifo", Attributes=FIFO)["QueueUrl"]
        settings = {"DUCTOR_INTENTS_URL": URLS["IntentsQueue"], "DUCTOR_INTENTS_DEAD_URL": URLS["IntentsDeadLetters"]}
        yield parts(AwsSettings(settings)).intents


def test_a_stack(stack: Queue) -> None:
    bury(stack)
    (row,) = listed("--stack", "ductor-dev")
    assert (row["run"], row["reason"]) == ("run-1", "not an intent")
    assert command("intents", "--redrive", "--stack", "ductor-dev").stdout == "1 messages sent again\n"
    assert listed("--stack", "ductor-dev") == []
    assert [message.body for message in stack.receive(5, visibility_ms=1_000)] == [b'{"odd": 1}']


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("timers",), "it is one of intents, steps"),
        (("intents", "--data", "/nowhere"), "there is no data file"),
    ],
)
def test_what_is_not_there_is_said(arguments: tuple[str, ...], told: str) -> None:
    done = command(*arguments)
    assert done.exit_code != 0
    assert told in f"{done.output}{done.exception}"


def test_a_stack_that_is_not_there(stack: Queue) -> None:
    done = command("intents", "--stack", "nobody")
    assert done.exit_code != 0
    assert "the stack nobody cannot be read" in f"{done.output}{done.exception}"
