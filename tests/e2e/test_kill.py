"""kill -9 of the server while 200 runs of 10 steps are under way: nothing is lost, and little is done twice."""

from __future__ import annotations

import collections
import random
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import msgspec
import pytest
from tests.e2e.effects import EFFECTS
from tests.e2e.server import Server, publish, status

from ductor.model.attempt import Attempt, AttemptStatus

RUNS = 200
STEPS = 10
MOMENTS = 20
DEADLINE_S = 60.0

CHAIN = {
    "family_slug": "chain",
    "steps": [{"ref": f"s{n}", "type": "action", "action": "test.effect"} for n in range(STEPS)],
    "edges": [{"source_ref": f"s{n}", "target_ref": f"s{n + 1}"} for n in range(STEPS - 1)],
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    environment = {"DUCTOR_ACTIONS": "tests.e2e.effects", EFFECTS: str(tmp_path / "effects")}
    server = Server(tmp_path / "data", environment)
    server.start()
    yield server
    server.stop()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_kill_at_any_moment_loses_no_step_and_repeats_only_what_was_in_flight(server: Server, tmp_path: Path) -> None:
    chance = random.Random(20)
    with server.client() as client:
        definition = publish(client, CHAIN)
        for cycle in range(MOMENTS):
            keys = [f"{cycle}-{n}" for n in range(RUNS)]
            accepted = _trigger_and_kill(server, client, definition, keys, chance.uniform(0.02, 0.8))
            in_flight = _in_flight(server.data / "ductor.db")
            server.start()
            # A trigger whose answer was lost is repeated: the key makes it the same run.
            runs = {run for key in keys if (run := _trigger(client, definition, key)) is not None}
            assert len(runs) == RUNS
            assert accepted <= runs
            _wait_until_completed(client, runs)
            _check_effects(tmp_path / "effects", runs, in_flight)


def _trigger_and_kill(
    server: Server, client: httpx.Client, definition: str, keys: list[str], moment: float
) -> set[str]:
    """The runs that were accepted before the server was killed, `moment` seconds after the first trigger."""
    with ThreadPoolExecutor(8) as pool:
        triggers = [pool.submit(_trigger, client, definition, key) for key in keys]
        time.sleep(moment)
        server.kill()
    return {run for trigger in triggers if (run := trigger.result()) is not None}


def _trigger(client: httpx.Client, definition: str, key: str) -> str | None:
    try:
        answer = client.post(f"/api/v2/workflow-definitions/{definition}:trigger", json={"idempotency_key": key})
    except httpx.TransportError:
        return None
    assert answer.status_code == 202, answer.text
    return str(answer.json()["run_id"])


def _in_flight(file: Path) -> set[tuple[str, str, int]]:
    """(run, node, attempt) of the attempts that had been claimed and not ended when the server was killed."""
    with sqlite3.connect(file) as connection:
        bodies = connection.execute("SELECT body FROM rows WHERE sk LIKE 'A#%'").fetchall()
    attempts = [msgspec.json.decode(body, type=Attempt) for (body,) in bodies]
    return {
        (attempt.task.run_id, attempt.task.node, attempt.task.attempt)
        for attempt in attempts
        if attempt.status is AttemptStatus.RUNNING
    }


def _wait_until_completed(client: httpx.Client, runs: set[str]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    waiting = sorted(runs)
    while waiting and time.monotonic() < deadline:
        if status(client, waiting[-1]) == "completed":
            waiting.pop()
    assert not waiting, {run: status(client, run) for run in waiting[:5]}


def _check_effects(file: Path, runs: set[str], in_flight: set[tuple[str, str, int]]) -> None:
    done: collections.Counter[tuple[str, str, int]] = collections.Counter()
    for line in file.read_text().splitlines():
        run, node, attempt, _ = line.split()
        if run in runs:
            done[run, node, int(attempt)] += 1
    assert set(done) == {(run, f"s{n}", 1) for run in runs for n in range(STEPS)}
    assert {effect for effect, count in done.items() if count > 1} <= in_flight
    assert max(done.values()) <= 2
