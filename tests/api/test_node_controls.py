"""Controls of single steps over HTTP."""

from __future__ import annotations

import pytest
from tests.api.world import ApiWorld

NODE = "/api/v2/workflow-runs/{}/nodes/pause"


@pytest.fixture
def url(world: ApiWorld) -> str:
    return NODE.format(world.triggered())


@pytest.mark.parametrize(
    ("verb", "more"),
    [("pause", {}), ("resume", {}), ("reset", {}), ("updateTimeout", {"timeout_ms": 5})],
)
def test_a_control_of_a_step_is_accepted(world: ApiWorld, url: str, verb: str, more: dict[str, int]) -> None:
    reply = world.call("POST", f"{url}:{verb}", {"request_id": "r", "reason": "why", **more})
    assert (reply.status, reply.json["status"], reply.json["node"]) == (202, "accepted", "pause")


def test_a_step_without_retries_is_refused(world: ApiWorld, url: str) -> None:
    reply = world.call("POST", f"{url}:updateRetryPolicy", {"request_id": "r", "retry_max_attempts": 3})
    assert (reply.status, reply.codes) == (409, [("node", "STEP_TYPE_WRONG")])


def test_a_policy_out_of_bounds_is_refused(world: ApiWorld, url: str) -> None:
    reply = world.call("POST", f"{url}:updateRetryPolicy", {"request_id": "r", "retry_max_attempts": 0})
    assert reply.status == 400
