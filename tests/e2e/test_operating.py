"""Operators against real servers: two of them on one data file, one of which dies, and many callers on one run."""

from __future__ import annotations

import collections
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.e2e.effects import EFFECTS
from tests.e2e.folding import fold_all
from tests.e2e.server import Server, publish, status

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

DEADLINE_S = 90.0
RUNS = 60
STEPS = 4
ITEMS = 10

CHAIN = {
    "family_slug": "chain",
    "steps": [{"ref": f"s{n}", "type": "action", "action": "test.effect"} for n in range(STEPS)],
    "edges": [{"source_ref": f"s{n}", "target_ref": f"s{n + 1}"} for n in range(STEPS - 1)],
}
FAN = {
    "family_slug": "fan",
    "steps": [
        {"ref": "split", "type": "scatter", "args": {"items_expr": "TRIGGER.payload.items"}},
        {"ref": "work", "type": "action", "action": "test.effect"},
        {"ref": "all", "type": "gather"},
    ],
    "edges": [{"source_ref": "split", "target_ref": "work"}, {"source_ref": "work", "target_ref": "all"}],
}
PATIENT = {
    "family_slug": "patient",
    "steps": [
        {"ref": "slow", "type": "wait", "args": {"duration": "10m"}},
        {"ref": "told", "type": "wait_event", "args": {"event_name": "never", "correlation_key": "k"}},
    ],
}


class Pair:
    """Two servers on one data file."""

    def __init__(self, folder: Path) -> None:
        self.effects = folder / "effects"
        environment = {"DUCTOR_ACTIONS": "tests.e2e.effects", EFFECTS: str(self.effects)}
        self.data = folder / "data"
        self.servers = [Server(self.data, environment), Server(self.data, environment)]
        for server in self.servers:
            server.start()

    def stop(self) -> None:
        for server in self.servers:
            server.stop()

    def tenant(self) -> str:
        lines = (self.data / "env").read_text().splitlines()
        return dict(line.removeprefix("export ").split("=", 1) for line in lines)["DUCTOR_TENANT_ID"]

    def done(self, runs: set[str]) -> collections.Counter[tuple[str, str, int]]:
        """How often each attempt had its effect."""
        lines = [line.split() for line in self.effects.read_text().splitlines()]
        return collections.Counter((run, node, int(attempt)) for run, node, attempt, _ in lines if run in runs)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(tmp_path)
    yield pair
    pair.stop()


def trigger(client: httpx.Client, definition: str, **body: Any) -> str:
    answer = client.post(f"/api/v2/workflow-definitions/{definition}:trigger", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["run_id"])


def until_all(client: httpx.Client, runs: set[str], wanted: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    waiting = sorted(runs)
    while waiting:
        assert time.monotonic() < deadline, {run: status(client, run) for run in waiting[:5]}
        if status(client, waiting[-1]) == wanted:
            waiting.pop()
        else:
            time.sleep(0.05)


def test_two_servers_on_one_data_file_share_the_work_and_tick_nothing_twice(pair: Pair) -> None:
    with pair.servers[0].client() as first, pair.servers[1].client() as second:
        chain, fan = publish(first, CHAIN), publish(first, FAN)
        with ThreadPoolExecutor(8) as pool:
            chains = set(pool.map(lambda n: trigger((first, second)[n % 2], chain), range(RUNS)))
            fans = set(pool.map(lambda n: trigger((first, second)[n % 2], fan, input={"items": [0] * ITEMS}), range(6)))
        until_all(second, chains | fans, "completed")
    pair.stop()
    done = pair.done(chains | fans)
    assert set(done.values()) == {1}
    assert len(done) == RUNS * STEPS + 6 * ITEMS
    assert fold_all(pair.data, pair.tenant()).faults == []


def test_one_of_two_servers_is_killed_under_load_and_the_other_finishes_everything(pair: Pair) -> None:
    with pair.servers[0].client() as first, pair.servers[1].client() as second:
        chain, fan = publish(first, CHAIN), publish(first, FAN)
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(trigger, second, fan, input={"items": [0] * ITEMS}) for _ in range(6)]
            asked += [pool.submit(trigger, second, chain) for _ in range(RUNS)]
            asked[RUNS // 2].result()
            assert not asked[-1].done()
            pair.servers[0].kill()
            runs = {one.result() for one in asked}
        until_all(second, runs, "completed")
    pair.stop()
    done = pair.done(runs)
    assert len({(run, node) for run, node, _ in done}) == RUNS * STEPS + 6 * ITEMS
    assert max(done.values()) <= 2  # what the dead one had in its hands, once more
    assert fold_all(pair.data, pair.tenant()).faults == []


def test_controls_of_twenty_callers_on_one_run_give_one_history_that_folds_to_its_state(pair: Pair) -> None:
    with pair.servers[0].client() as first, pair.servers[1].client() as second:
        run_id = trigger(first, publish(first, PATIENT))
        until_all(first, {run_id}, "waiting")

        def call(caller: int) -> list[tuple[str, int]]:
            """Ten controls of one caller, each with a repeat."""
            chance, told = random.Random(caller), []
            for number in range(10):
                verb = chance.choice(("pause", "resume", "pause", "resume", "signal", "nodes/slow:pause"))
                body: dict[str, Any] = {"request_id": f"{caller}-{number}"}
                body |= {"name": "n", "payload": number} if verb == "signal" else {}
                path = f"/api/v2/workflow-runs/{run_id}" + (f"/{verb}" if "/" in verb else f":{verb}")
                for client in (first, second):
                    told.append((f"{caller}-{number}", client.post(path, json=body).status_code))
            return told

        with ThreadPoolExecutor(20) as pool:
            told = [one for answers in pool.map(call, range(20)) for one in answers]
        assert {code for _, code in told} == {202}
        assert first.post(f"/api/v2/workflow-runs/{run_id}:terminate", json={"request_id": "end"}).status_code == 202
        until_all(second, {run_id}, "terminated")
        answered: collections.Counter[str] = collections.Counter()
        query: dict[str, Any] = {"limit": 200}
        while True:
            page = first.get(f"/api/v2/workflow-runs/{run_id}/audit", params=query).json()
            answered.update(one["request_id"] for one in page["items"] if one["outcome"] != "duplicate")
            if not page["next_cursor"]:
                break
            query["cursor"] = page["next_cursor"]
        assert answered == {**{f"{caller}-{n}": 1 for caller in range(20) for n in range(10)}, "end": 1}
    pair.stop()
    assert fold_all(pair.data, pair.tenant()).faults == []


ANSWERING = {
    "family_slug": "answering",
    "steps": [
        {"ref": "shape", "type": "action", "action": "core.echo", "args": {"v": "${{ TRIGGER.payload.n }}"}},
        {"ref": "later", "type": "wait", "args": {"duration": "10m"}},
    ],
    "edges": [{"source_ref": "shape", "target_ref": "later"}],
    "checkpoints": [{"name": "answer", "step_ref": "shape", "response": True}],
}


def test_everybody_who_waits_for_the_checkpoint_of_one_key_gets_its_output_from_either_server(pair: Pair) -> None:
    with pair.servers[0].client() as first, pair.servers[1].client() as second:
        definition = publish(first, ANSWERING)
        body = {"input": {"n": 7}, "idempotency_key": "k", "wait_for_checkpoint": True}

        def ask(number: int) -> dict[str, Any]:
            answer = (first, second)[number % 2].post(f"/api/v2/workflow-definitions/{definition}:trigger", json=body)
            assert answer.status_code == 202, answer.text
            return dict(answer.json())

        with ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(ask, range(10)))
    assert len({answer["run_id"] for answer in answers}) == 1
    assert {answer["checkpoint_reached"] for answer in answers} == {True}
    assert [answer["response_group_output"] for answer in answers] == [answers[0]["response_group_output"]] * 10
    assert "7" in str(answers[0]["response_group_output"])
