"""Forks on AWS, where no transaction takes back what one has stored that dies before its header."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from tests.functions.definitions import chain
from tests.functions.world import SECOND, AwsWorld

from ductor.app.headers import HEAD, run_pk
from ductor.app.reset import Resets
from ductor.app.retention import QUIET_MS, UNBORN_MS
from ductor.model.lineage import fork_run_id
from ductor.testing.chaos import Crash


def ask(world: AwsWorld, run_id: str, request_id: str) -> tuple[int, Any]:
    body = {"request_id": request_id, "transition_seq": 0}
    return world.request("POST", f"/api/v2/workflow-runs/{run_id}:reset", body)


def dies(world: AwsWorld, run_id: str, request_id: str) -> str:
    """The function is killed before it has stored the fork's header; the fork's id."""
    with patch.object(Resets, "_publish", side_effect=Crash), pytest.raises(Crash):
        ask(world, run_id, request_id)
    fork_id = fork_run_id(run_id, request_id)
    assert world.request("GET", f"/api/workflows/runs/{fork_id}")[0] == 404
    return fork_id


def rows(world: AwsWorld, run_id: str) -> list[str]:
    return [item.sk for item in world.emulator.table.query(run_pk(run_id)).items]


def test_a_fork_that_dies_in_the_making_is_made_by_the_next_request_or_removed(world: AwsWorld) -> None:
    run_id = world.trigger(world.publish(chain(2)))
    world.pump()
    repeated, given_up = dies(world, run_id, "again"), dies(world, run_id, "never-again")
    assert ask(world, run_id, "again")[0] < 300
    world.pump()
    world.clock.advance(UNBORN_MS + SECOND)
    world.sweeper({}, None)
    assert world.status(repeated) == "completed"
    assert rows(world, given_up) == [HEAD], "what a second sweep might still be removing is not begun anew"
    world.clock.advance(QUIET_MS + SECOND)
    world.sweeper({}, None)
    assert world.status(repeated) == "completed"
    assert rows(world, given_up) == []
