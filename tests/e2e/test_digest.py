"""Runs that meet in a digest on a real server, which is killed while they wait."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import httpx
import yaml
from tests.e2e.server import Server, publish, status
from tests.e2e.test_approval import until

EXAMPLE = Path(__file__).parents[2] / "events" / "order_digest.yaml"


def arrived(client: httpx.Client, definition: str, number: int) -> str:
    """The id of a run that waits in the digest."""
    body = {"input": {"customer": "ada", "order": f"o-{number}", "amount": number}}
    run_id = str(client.post(f"/api/v2/workflow-definitions/{definition}:trigger", json=body).json()["run_id"])
    until(lambda: status(client, run_id) == "waiting")
    return run_id


def test_runs_meet_once_although_the_server_is_killed_meanwhile(tmp_path: Path) -> None:
    document = yaml.safe_load(EXAMPLE.read_text())["definition"]
    document["steps"][0]["args"]["max_count"] = 4
    document["steps"][0]["args"]["max_wait"] = "1h"
    server = Server(tmp_path / "data", {})
    server.start()
    try:
        with server.client() as client:
            definition = publish(client, document)
            runs = [arrived(client, definition, number) for number in (1, 2, 3)]
        server.kill()
        server.start()
        with server.client() as client:
            body = {"input": {"customer": "ada", "order": "o-4", "amount": 4}}
            runs.append(client.post(f"/api/v2/workflow-definitions/{definition}:trigger", json=body).json()["run_id"])
            for run_id, ending in zip(runs, ("completed", "merged", "merged", "merged"), strict=True):
                until(partial(lambda run_id, ending: status(client, run_id) == ending, run_id, ending))
            snapshot = client.get(f"/api/v2/workflow-runs/{runs[0]}/snapshot").json()
            assert snapshot["nodes"]["mail"]["latest_output_json"] == '{"result":{"orders":4,"total":10}}'
    finally:
        server.stop()
