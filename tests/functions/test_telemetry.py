"""Logs and metrics of the functions: JSON with run and tenant, and no metric of a single run."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import pytest
from tests.functions.definitions import chain
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
