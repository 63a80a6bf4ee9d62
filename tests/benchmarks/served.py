"""What a client of a real server process sees: start, latency over HTTP, memory."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
from tests.benchmarks.definitions import chain
from tests.e2e.server import Server, publish

RUNS = 300
STARTS = 5


@contextmanager
def served() -> Iterator[Server]:
    """A server on an empty data folder."""
    with tempfile.TemporaryDirectory(prefix="ductor-bench-") as folder:
        server = Server(Path(folder) / "data", {})
        server.start()
        try:
            yield server
        finally:
            server.stop()


def start_seconds() -> float:
    """Median seconds from the start of the process on existing data to its first answer."""
    seconds: list[float] = []
    with served() as server:
        for _ in range(STARTS):
            server.stop()
            began = time.perf_counter()
            server.start()
            seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def one_step_latency_ms() -> tuple[float, float]:
    """p50 and p99 of milliseconds from sending a trigger over HTTP to the stored end of a one-step run.

    The end is the run's own `finished_at`; client and server read the same clock.
    """
    with served() as server, server.client() as client:
        definition = publish(client, chain(1))
        latencies = sorted(_latency(client, definition) for _ in range(RUNS))
    return statistics.median(latencies), latencies[int(len(latencies) * 0.99)]


def _latency(client: httpx.Client, definition: str) -> float:
    began = time.time() * 1000
    answer = client.post(f"/api/v2/workflow-definitions/{definition}:trigger", json={})
    return _finished_ms(client, answer.json()["run_id"]) - began


def _finished_ms(client: httpx.Client, run_id: str) -> float:
    while True:
        summary: dict[str, Any] = client.get(f"/api/workflows/runs/{run_id}").json()["data"]["summary"]
        if summary["finished_at"]:
            return _milliseconds(summary["finished_at"])
        time.sleep(0.001)


def _milliseconds(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp() * 1000


def memory_mb() -> tuple[float, float]:
    """Resident megabytes of a server: ready, and after 1,000 finished one-step runs."""
    with served() as server, server.client() as client:
        ready = server.memory_mb()
        definition = publish(client, chain(1))
        last = ""
        for _ in range(1_000):
            last = client.post(f"/api/v2/workflow-definitions/{definition}:trigger", json={}).json()["run_id"]
        _finished_ms(client, last)
        return ready, server.memory_mb()
