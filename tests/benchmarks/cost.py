"""`make bench-cost`: meters workloads on the deployed functions (on moto), and prints what a million steps cost.

Deterministic but for the CPU time in the GB-seconds. Nothing here is an invoice: prices are lists of a day, latencies
are declared (prices.toml), and what an emulator cannot show (empty receives, retries of AWS's own) is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from tests.benchmarks.definitions import chain, dataflow_chain, fan_out
from tests.benchmarks.meter import SOURCE, per
from tests.benchmarks.metered import OF_QUEUE, MeteredWorld, metered_world
from tests.functions.policy import template

from ductor.app.prices import MILLION, Prices, Usage, bill, read_prices, total

RESULTS = Path("bench-results")
LATEST_MS = 900_000
"""The farthest that a wake-up waits in the timers queue."""

PRICES: Prices = read_prices(
    json.dumps({**{name: SOURCE[name] for name in ("as_of", "region", "currency")}, **SOURCE["prices"]})
)


@dataclass(frozen=True)
class Workload:
    """`runs` at once of a definition with `steps` steps. `target`: dollars per million steps, 0 = none.

    `peer_steps`: how many transitions or operations the same run is elsewhere; `calls`: how many call a function.
    """

    name: str
    document: dict[str, Any]
    runs: int
    steps: int
    peer_steps: int
    calls: int
    target: float = 0


WORKLOADS = (
    Workload("200 x chain of 10 actions", chain(10), 200, 10, 10, 10, 6.0),
    Workload("200 x chain of 10 dataflows", dataflow_chain(10), 200, 10, 10, 0, 1.0),
    Workload("100 x chain of 30 dataflows", dataflow_chain(30), 100, 30, 30, 0, 1.0),
    Workload("10 x fan-out of 100 actions", fan_out(100), 10, 102, 103, 102, 6.0),
    Workload("10 x chain of 100 actions", chain(100), 10, 100, 100, 100, 6.0),
    Workload("1 x chain of 500 actions", chain(500), 1, 500, 500, 500),
    Workload("1 x chain of 10 actions", chain(10), 1, 10, 10, 10),
)


@dataclass(frozen=True)
class Result:
    """A workload with what one of its steps used, and the bytes of rows that each leaves behind."""

    workload: Workload
    usage: Usage
    stored: float
    requests: dict[str, float]
    functions: dict[str, Usage]

    @property
    def dollars(self) -> float:
        """Per million steps."""
        return total(bill(self.usage, PRICES)) * MILLION


def measure(workload: Workload) -> Result:
    """Run it on a stack of its own, whose functions are warm."""
    with metered_world() as world:
        definition = world.publish({"environment": "default", "title": "Workload", **workload.document})
        _run(world, definition, 1)
        world.meter.forget()
        before = world.meter.stored_bytes()
        _run(world, definition, workload.runs)
        number = workload.runs * workload.steps
        requests = {" ".join(key): count / number for key, count in sorted(world.meter.requests.items())}
        stored = (world.meter.stored_bytes() - before) / number
        functions = {name: per(usage, number) for name, usage in world.meter.usage.items()}
        return Result(workload, per(world.meter.total(), number), stored, requests, functions)


def _run(world: MeteredWorld, definition: str, runs: int) -> None:
    """All runs from their trigger to their end, the wake-ups that fire afterwards, and the events that they caused."""
    started = [world.trigger(definition) for _ in range(runs)]
    world.pump("intents.fifo", "steps")
    ended = {world.header(run_id).status.value for run_id in started}
    if ended != {"completed"}:
        raise RuntimeError(f"not all runs were completed: {ended}")
    world.clock.advance(LATEST_MS)
    world.pump()
    world.deliver_events()


def idle_month() -> dict[str, float]:
    """Dollars a month of a stack on which nothing runs, by what they are for."""
    with metered_world() as world:
        world.sweeper({}, None)
        world.meter.forget()
        world.sweeper({}, None)
        sweeps = per(world.meter.total(), 1 / SOURCE["assumptions"]["month_minutes"])
    receives = SOURCE["assumptions"]["idle_receives"]
    fifo = sum(name.endswith(".fifo") for name in OF_QUEUE)
    polls = Usage(fifo_requests=fifo * receives, queue_requests=(len(OF_QUEUE) - fifo) * receives)
    alarms = sum(one["Type"] == "AWS::CloudWatch::Alarm" for one in template()["Resources"].values())
    return {
        "the sweeper, once a minute": total(bill(sweeps, PRICES)),
        f"Lambda's polls of {len(OF_QUEUE)} empty queues": total(bill(polls, PRICES)),
        f"{alarms} alarms": alarms * SOURCE["fixed"]["alarm_month"],
    }


def peers(result: Result) -> dict[str, float]:
    """Dollars per million steps elsewhere. Their functions do what ours do: one request each, no time."""
    workload, prices = result.workload, SOURCE["peers"]
    share = workload.peer_steps / workload.steps
    calls = workload.calls / workload.steps * PRICES.invocations
    written = SOURCE["assumptions"]["peer_payload_bytes"] / 1_000 * prices["durable_gb_written"]
    return {
        "Step Functions Standard": share * prices["step_functions_transition"] + calls,
        "Lambda durable functions": share * (prices["durable_operation"] + written),
    }


def table(results: list[Result]) -> str:
    """A Markdown table: a row per workload, dollars per million steps by service."""
    services = list(dict.fromkeys(line.service for line in bill(Usage(), PRICES)))
    used = [name for name in services if any(_of(result, name) >= 0.001 for result in results)]
    head = ["$ per million steps", *used, "**total**", *peers(results[0])]
    rows = [head, ["---", *["--:"] * (len(head) - 1)]]
    for result in results:
        elsewhere = [f"{dollars:.2f}" for dollars in peers(result).values()]
        amounts = [f"{_of(result, name):.3f}" for name in used]
        rows.append([result.workload.name, *amounts, f"**{result.dollars:.2f}**", *elsewhere])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _of(result: Result, service: str) -> float:
    return sum(line.amount for line in bill(result.usage, PRICES) if line.service == service) * MILLION


def verdict(result: Result) -> str:
    """One line per workload: what a step used, and whether its target is reached."""
    usage, target = result.usage, result.workload.target
    units = f"{usage.table_writes:.2f} write and {usage.table_reads:.2f} read units, {result.stored:.0f} bytes stored"
    if not target:
        return f"{result.workload.name}: {units} per step"
    reached = "reached" if result.dollars <= target else "MISSED"
    return f"{result.workload.name}: {units} per step; target ${target:.2f}: {reached}"


def main(say: Callable[[str], None] = print) -> None:
    """Measure all workloads, print the table and store the figures."""
    results = []
    for workload in WORKLOADS:
        results.append(measure(workload))
        say(verdict(results[-1]))
    say("\n" + table(results) + "\n")
    idle = idle_month()
    for what, dollars in idle.items():
        say(f"idle: {what}: ${dollars:.2f} a month")
    RESULTS.mkdir(exist_ok=True)
    now = datetime.now(UTC)
    file = RESULTS / f"cost-{now:%Y%m%dT%H%M%SZ}.json"
    file.write_text(json.dumps(_record(now, results, idle), indent=2) + "\n")
    say(f"list prices of {PRICES.region}, {PRICES.as_of}; stored in {file}")


def _record(now: datetime, results: list[Result], idle: dict[str, float]) -> dict[str, Any]:
    return {
        "at": now.isoformat(timespec="seconds"),
        "prices": msgspec.to_builtins(PRICES),
        "idle_month": idle,
        "workloads": [
            {
                "name": result.workload.name,
                "dollars_per_million_steps": result.dollars,
                "stored_bytes_per_step": result.stored,
                "usage_per_step": msgspec.to_builtins(result.usage),
                "by_function": msgspec.to_builtins(result.functions),
                "requests_per_step": result.requests,
                "peers": peers(result),
            }
            for result in results
        ],
    }


if __name__ == "__main__":
    main()
