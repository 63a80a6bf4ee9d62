"""What steps cost, held down; and what a run says of its own cost, held against the meter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.benchmarks.definitions import chain, dataflow_chain, fan_out
from tests.benchmarks.meter import per
from tests.benchmarks.metered import MeteredWorld, metered_world

from ductor.app.prices import MILLION, Prices, Usage, bill, total

LATEST_MS = 900_000
TOLERANCE = 0.05
"""By how much an estimate may be off, but for the duration of functions, which depends on the machine."""


@pytest.fixture
def world() -> Iterator[MeteredWorld]:
    with metered_world() as made:
        yield made


def metered(world: MeteredWorld, document: dict[str, Any], runs: int) -> tuple[list[str], Usage]:
    """That many runs at once, when the functions are warm, and what one of them used."""
    definition = world.publish({"environment": "default", "title": "Workload", **document})
    for number in (1, runs):
        world.meter.forget()
        started = [world.trigger(definition) for _ in range(number)]
        world.pump("intents.fifo", "steps")
        world.clock.advance(LATEST_MS)
        world.pump()
        world.deliver_events()
    return started, per(world.meter.total(), runs)


def dollars(usage: Usage, *, without_duration: bool = False) -> float:
    lines = bill(usage, Prices())
    return total(tuple(line for line in lines if not (without_duration and line.unit == "GB-seconds")))


def test_a_chain_of_actions_at_load_stays_within_its_budget_of_requests(world: MeteredWorld) -> None:
    (run_id, *_), usage = metered(world, chain(6), 10)
    step = per(usage, 6)
    assert step.table_writes <= 5.7  # 4 a step, and 10 a run
    assert step.table_reads <= 2.2
    assert step.fifo_requests <= 0.6
    assert step.queue_requests <= 0.6
    assert step.invocations <= 0.85
    assert step.log_bytes <= 600
    assert dollars(step) * MILLION <= 6.0  # of ten steps, which share what a run costs, each costs still less
    agree(world, run_id, "at_load", usage)


def test_steps_in_the_coordinator_cost_a_dollar_a_million_and_further_ones_next_to_nothing(world: MeteredWorld) -> None:
    (run_id, *_), short = metered(world, dataflow_chain(10), 10)
    agree(world, run_id, "at_load", short)
    assert short.table_writes == 6  # header twice, its entries by tenant and as one that starts, that gone, its family
    assert dollars(per(short, 10)) * MILLION <= 1.0
    _, long = metered(world, dataflow_chain(30), 10)
    assert (dollars(long, without_duration=True) - dollars(short, without_duration=True)) / 20 * MILLION <= 0.1
    assert dollars(per(long, 30)) * MILLION <= 1.0


@pytest.mark.parametrize("document", [chain(8), fan_out(20)])
def test_a_run_alone_estimates_what_the_meter_counts(world: MeteredWorld, document: dict[str, Any]) -> None:
    (run_id,), usage = metered(world, document, 1)
    agree(world, run_id, "alone", usage)


def agree(world: MeteredWorld, run_id: str, which: str, usage: Usage) -> None:
    """The route's estimate, and the metered bill of such a run."""
    cost = world.ok("GET", f"/api/workflows/runs/{run_id}/cost")
    lines = {(line["service"], line["unit"]): line["amount"] for line in cost[which]["lines"]}
    duration = lines.pop(("Lambda", "GB-seconds"))
    assert sum(lines.values()) == pytest.approx(dollars(usage, without_duration=True), rel=TOLERANCE)
    assert duration > 0
    assert cost["at_load"]["amount"] <= cost["alone"]["amount"]
