"""Logs and metrics of the functions: JSON with run and tenant, and no metric of a single run."""

from __future__ import annotations

import io
import json
import logging
import os
import socket
import subprocess
import sys
from typing import Any

import pytest
from tests.contract.moto_backend import CREDENTIALS
from tests.functions.definitions import chain
from tests.functions.test_imports import imported
from tests.functions.world import AwsWorld

from ductor.app.commit import Committer
from ductor.lambdas.telemetry import Telemetry


@pytest.fixture
def logged(world: AwsWorld) -> io.StringIO:
    """What the package's logger writes."""
    stream = io.StringIO()
    (handler,) = logging.getLogger("ductor").handlers
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(stream)
    return stream


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_failed_tick_is_logged_with_its_run_and_tenant(
    world: AwsWorld, logged: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = world.trigger(world.publish(chain(1)))
    monkeypatch.setattr(Committer, "commit", _boom)
    batch = world.receive("intents.fifo")
    assert batch is not None
    world.deliver("intents.fifo", world.coordinator, batch)
    (line,) = lines(logged.getvalue())
    assert (line["run_id"], line["tenant"], line["level"]) == (run_id, world.tenant, "ERROR")
    assert "boom" in line["exception"]


def test_metrics_have_the_function_as_their_only_dimension(world: AwsWorld, capsys: pytest.CaptureFixture[str]) -> None:
    world.trigger(world.publish(chain(2)))
    capsys.readouterr()
    world.pump()
    embedded = [line for line in lines(capsys.readouterr().out) if "_aws" in line]
    assert {line["service"] for line in embedded} == {"coordinator", "step"}
    for line in embedded:
        assert [metrics["Dimensions"] for metrics in line["_aws"]["CloudWatchMetrics"]] == [[["service"]]]
    assert sum(line.get("AttemptsHandled", [0])[0] for line in embedded) == 2


def test_nothing_of_one_run_is_left_in_the_lines_of_the_next(world: AwsWorld, logged: io.StringIO) -> None:
    world.send_intent("odd", "somebody", "1")
    world.pump("intents.fifo")
    Telemetry("probe").log.warning("between two runs")
    of_run, between = lines(logged.getvalue())
    assert of_run["run_id"] == "somebody"
    assert "run_id" not in between
    assert "tenant" not in between


def _boom(*_: Any, **__: Any) -> Any:
    raise RuntimeError("boom")


TRACED = """
from types import SimpleNamespace
import botocore.session
from ductor.lambdas.telemetry import Telemetry

telemetry = Telemetry("probe", tracing=True)
client = botocore.session.get_session().create_client("sqs")

def handle(event, context):
    with telemetry.about("run-1"):
        client.get_queue_url(QueueName="nowhere") if event else None
    return {"secret": "answer"}

handler = telemetry.traced(handle)
assert handler({}, SimpleNamespace()) == {"secret": "answer"}
"""


def test_where_lambda_collects_traces_each_run_of_a_batch_is_a_part_of_them() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as daemon:
        daemon.bind(("127.0.0.1", 0))
        daemon.settimeout(10)
        environment = {
            **os.environ,
            **CREDENTIALS,
            "AWS_XRAY_DAEMON_ADDRESS": f"127.0.0.1:{daemon.getsockname()[1]}",
            "LAMBDA_TASK_ROOT": "/var/task",
            "_X_AMZN_TRACE_ID": "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1",
        }
        subprocess.run([sys.executable, "-c", TRACED], env=environment, check=True)
        told = [daemon.recv(65_536).decode() for _ in range(2)]
    documents = [json.loads(text.split("\n", 1)[1]) for text in told]
    assert {document["trace_id"] for document in documents} == {"1-5759e988-bd862e3fe1be46a994272793"}
    assert any(document["name"] == "## probe" for document in documents)
    assert '"run-1"' in "".join(told)
    assert "secret" not in "".join(told)


def test_elsewhere_nothing_of_the_tracing_library_is_loaded(world: AwsWorld) -> None:
    modules = imported("coordinator", world)["modules"]
    assert [name for name in modules if name.startswith("aws_xray_sdk")] == []
