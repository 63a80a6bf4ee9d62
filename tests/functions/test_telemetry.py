"""Logs and metrics of the functions: JSON with run and tenant, and no metric of a single run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.functions.definitions import chain
from tests.functions.world import AwsWorld

from ductor.app.commit import Committer
from ductor.lambdas.telemetry import Telemetry

# `capsys` comes first in each test: a logger keeps the output that it found when it was made.


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_failed_tick_is_logged_with_its_run_and_tenant(
    capsys: pytest.CaptureFixture[str], world: AwsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = world.trigger(world.publish(chain(1)))
    capsys.readouterr()
    monkeypatch.setattr(Committer, "commit", _boom)
    batch = world.receive("intents.fifo")
    assert batch is not None
    world.deliver("intents.fifo", world.coordinator, batch)
    logged = next(line for line in lines(capsys) if line.get("level") == "ERROR")
    assert (logged["run_id"], logged["tenant"]) == (run_id, world.tenant)
    assert "boom" in logged["exception"]


def test_metrics_have_the_function_as_their_only_dimension(world: AwsWorld, capsys: pytest.CaptureFixture[str]) -> None:
    world.trigger(world.publish(chain(2)))
    capsys.readouterr()
    world.pump()
    embedded = [line for line in lines(capsys) if "_aws" in line]
    assert {line["service"] for line in embedded} == {"coordinator", "step"}
    for line in embedded:
        assert [metrics["Dimensions"] for metrics in line["_aws"]["CloudWatchMetrics"]] == [[["service"]]]
    assert sum(line.get("AttemptsHandled", [0])[0] for line in embedded) == 2


def test_nothing_of_one_run_is_left_in_the_lines_of_the_next(
    capsys: pytest.CaptureFixture[str], world: AwsWorld
) -> None:
    world.send_intent("odd", "somebody", "1")
    world.pump("intents.fifo")
    capsys.readouterr()
    Telemetry("probe").log.warning("between two runs")
    (line,) = lines(capsys)
    assert "run_id" not in line
    assert "tenant" not in line


def _boom(*_: Any, **__: Any) -> Any:
    raise RuntimeError("boom")
