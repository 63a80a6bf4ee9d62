"""`make bench`: prints a table of what this machine reaches beside the targets, and stores it as JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.benchmarks import engine, listing, local, scatter, served
from tests.benchmarks.definitions import chain, fan_out

RESULTS = Path("bench-results")


@dataclass(frozen=True)
class Figure:
    """One measured figure. `reached` is None where there is no target."""

    name: str
    value: float
    unit: str
    target: str
    reached: bool | None


def main() -> None:
    """Measure everything, or only the groups named on the command line."""
    figures: list[Figure] = []
    for name, measure in GROUPS.items():
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        for figure in measure():
            figures.append(figure)
            print(_line(figure), flush=True)
    RESULTS.mkdir(exist_ok=True)
    now = datetime.now(UTC)
    record = {
        "at": now.isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "figures": [asdict(figure) for figure in figures],
    }
    file = RESULTS / f"{now:%Y%m%dT%H%M%SZ}.json"
    file.write_text(json.dumps(record, indent=2) + "\n")
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}; stored in {file}")


def _line(figure: Figure) -> str:
    mark = {True: "reached", False: "MISSED", None: ""}[figure.reached]
    return f"{figure.name:<58} {figure.value:>10.2f} {figure.unit:<8} {figure.target:<12} {mark}"


def _engine() -> list[Figure]:
    short, long = engine.microseconds_per_step(10), engine.microseconds_per_step(500)
    return [
        Figure("engine: CPU per action step, 10-step run", short, "us", "<= 150", short <= 150),
        Figure("engine: cost per step at 500 steps / at 10 steps", long / short, "x", "<= 1.5", long / short <= 1.5),
    ]


def _throughput() -> list[Figure]:
    chains = max(local.steps_per_second(chain(10), 200) for _ in range(3))
    fans = max(local.steps_per_second(fan_out(100), 20) for _ in range(3))
    return [
        Figure("local, durable: 200 runs x 10 sequential actions", chains, "steps/s", ">= 3500", chains >= 3500),
        Figure("local, durable: 20 fan-outs of 100", fans, "steps/s", ">= 6000", fans >= 6000),
    ]


def _scatter() -> list[Figure]:
    few, many, megabytes = scatter.seconds_and_megabytes()
    return [
        Figure("local: scatter of 10,000 no-op actions, CPU", many, "s", "", None),
        Figure("local: its CPU time / that of 1,000", many / few, "x", "<= 12", many / few <= 12),
        Figure("local: peak memory", megabytes, "MB", "<= 200", megabytes <= 200),
    ]


def _latency() -> list[Figure]:
    p50, p99 = served.one_step_latency_ms()
    return [
        Figure("HTTP trigger to finished, one action, p50", p50, "ms", "<= 5", p50 <= 5),
        Figure("HTTP trigger to finished, one action, p99", p99, "ms", "", None),
    ]


def _start() -> list[Figure]:
    seconds = served.start_seconds()
    return [Figure("server start to first answer, median", seconds, "s", "<= 1", seconds <= 1)]


def _memory() -> list[Figure]:
    ready, used = served.memory_mb()
    return [
        Figure("server memory when ready", ready, "MB", "", None),
        Figure("server memory after 1,000 runs", used, "MB", "", None),
    ]


def _listing() -> list[Figure]:
    return [
        Figure(f"100,000 runs, a page by {name}, p95 CPU", taken, "ms", "<= 50", taken <= 50)
        for name, taken in listing.p95_ms().items()
    ]


GROUPS: dict[str, Callable[[], list[Figure]]] = {
    "engine": _engine,
    "throughput": _throughput,
    "latency": _latency,
    "start": _start,
    "memory": _memory,
    "scatter": _scatter,
    "listing": _listing,
}

if __name__ == "__main__":
    main()
