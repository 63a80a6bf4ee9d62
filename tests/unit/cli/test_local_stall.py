"""A definition of a local installation hears of the stall of another one's run."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any, cast

import httpx
from tests.unit.cli.local import LocalServer

from ductor.app.loops import SweeperLoop

DEADLINE_S = 30


def told(answer: httpx.Response) -> Any:
    body = answer.raise_for_status().json()
    return body.get("data", body)


def publish(client: httpx.Client, slug: str, step: dict[str, Any], **fields: Any) -> str:
    document = {"environment": "default", "family_slug": slug, "title": slug, "steps": [step], "edges": [], **fields}
    draft = told(client.post("/api/workflow-definitions", json=document))
    body = {"expected_draft_revision": draft["draft_revision"]}
    path = f"/api/workflow-definitions/{draft['id']}/publish"
    return str(told(client.post(path, json=body))["published"]["id"])


def make_unreadable(data: Path, run_id: str) -> None:
    (file,) = data.glob("*.db")
    with sqlite3.connect(file) as connection:
        done = connection.execute(
            "UPDATE rows SET version = version + 1, body = CAST(replace(body, ?, ?) AS BLOB) WHERE pk = ? AND sk = ?",
            ('"root":{', '"root":7,"of_a_later_release":{', f"R#{run_id}", "HEAD"),
        )
    assert done.rowcount == 1


def until(found: Any) -> None:
    end = time.monotonic() + DEADLINE_S
    while not found():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_stall_starts_what_listens_to_it(tmp_path: Path) -> None:
    with LocalServer(tmp_path, {}) as server:
        sweeper = cast(SweeperLoop, server._app._loops["sweeper"])._sweeper
        keys = server.ordinary
        headers = {"authorization": f"Bearer {keys['DUCTOR_API_KEY']}", "x-tenant-id": keys["DUCTOR_TENANT_ID"]}
        with httpx.Client(base_url=keys["DUCTOR_API_URL"], headers=headers) as client:
            listens = {"triggers": [{"patterns": ["ductor.run.stalled"]}]}
            shape = {"ref": "a", "type": "STEP_TYPE_DATAFLOW", "args": {"operation": "project", "project": {"v": "1"}}}
            publish(client, "watching", shape, **listens)
            asks = publish(client, "asking", {"ref": "w", "type": "STEP_TYPE_WAIT", "args": {"duration": "9h"}})
            path = f"/api/v2/workflow-definitions/{asks}:trigger"
            run_id = told(client.post(path, json={"input": {}}))["run_id"]
            run = f"/api/workflows/runs/{run_id}"
            until(lambda: told(client.get(run))["summary"]["status"] == "waiting")
            make_unreadable(tmp_path, run_id)
            client.post(f"/api/v2/workflow-runs/{run_id}:pause", json={"request_id": "r"}).raise_for_status()
            until(lambda: told(client.get(run))["summary"].get("stalled"))
            sweeper.sweep()
            until(lambda: "watching" in client.get("/api/workflows/runs").text)
