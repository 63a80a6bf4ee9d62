"""A schedule on real servers: killed over an occurrence, shared by two, and every minute has one run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.e2e.server import Server, publish

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

MINUTE_S = 60.0
PATIENCE_S = 45.0
EVERY_MINUTE = {
    "family_slug": "every_minute",
    "schedule": {"cron": "* * * * *", "overlap_policy": "allow_all"},
    "steps": [{"ref": "echo", "type": "action", "action": "core.echo", "args": {"at": "${{ TRIGGER.scheduled_at }}"}}],
    "edges": [],
}


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    pair = Server(tmp_path / "data", {}), Server(tmp_path / "data", {})
    yield pair
    for server in pair:
        server.stop()


def until_second(second: float) -> None:
    """Wait for the next time that the minute is so old."""
    time.sleep((second - time.time() % MINUTE_S) % MINUTE_S)


def instants(client: httpx.Client) -> list[str]:
    """The occurrences that have a run, newest first."""
    answer = client.get("/api/workflows/runs", params={"schedule": "every_minute"})
    return [run["scheduled_at"] for run in answer.json()["data"]]


def test_an_occurrence_during_a_kill_fires_once_though_two_servers_come_back(servers: tuple[Server, Server]) -> None:
    first, second = servers
    first.start()
    with first.client() as client:
        publish(client, EVERY_MINUTE)
    until_second(58)
    first.kill()
    boundary = time.time() // MINUTE_S * MINUTE_S + MINUTE_S
    until_second(1)
    first.start()
    second.start()
    with first.client() as client:
        at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(boundary))
        deadline = time.monotonic() + PATIENCE_S
        while at not in instants(client):
            assert time.monotonic() < deadline, "the occurrence was lost"
            time.sleep(0.2)
        found = instants(client)
        assert len(found) == len(set(found))
        counts = client.get("/api/workflow-schedules/every_minute").json()["data"]["counts"]
        assert (counts["fired"], counts["missed"]) == (len(found), 0)
