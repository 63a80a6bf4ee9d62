"""Batches over HTTP."""

from __future__ import annotations

from tests.api.world import ApiWorld

BATCH = "/api/v2/workflow-runs:batch"


def test_a_batch_is_begun_and_read(world: ApiWorld) -> None:
    world.triggered()
    body = {"request_id": "b", "operation": "pause", "filter": {"workflow_type": "hello_world", "active_only": True}}
    begun = world.call("POST", BATCH, body)
    assert (begun.status, begun.json["accepted"], begun.json["status"]) == (202, 1, "completed")
    path = f"/api/v2/workflow-runs/batches/{begun.json['batch_id']}"
    assert world.call("GET", path).json["accepted"] == 1
    assert world.call("GET", path, headers=world.as_stranger()).status == 404


def test_an_empty_filter_is_refused(world: ApiWorld) -> None:
    reply = world.call("POST", BATCH, {"request_id": "b", "operation": "pause", "filter": {}})
    assert (reply.status, reply.codes) == (400, [("filter", "FILTER_REQUIRED")])
