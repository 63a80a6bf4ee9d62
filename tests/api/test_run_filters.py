"""The filters of the run list over HTTP."""

from __future__ import annotations

import pytest
from tests.api.world import ApiWorld

RUNS = "/api/workflows/runs"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("workflow_type=hello-world", True),
        ("workflow_type=other", False),
        ("environment=default", True),
        ("environment=staging", False),
        ("q=HELLO", True),
        ("q=nothing-like-this", False),
        ("schedule=hello_world", False),
        ("status=pending", True),
        ("status=failed&workflow_type=hello_world", False),
        ("active_only=true&workflow_type=hello_world", True),
        ("started_after=-1h", True),
        ("started_before=-1h", False),
    ],
)
def test_a_filter_of_the_list(world: ApiWorld, query: str, found: bool) -> None:
    run_id = world.triggered()
    answer = world.call("GET", RUNS, query=query)
    assert answer.status == 200
    assert [run["run_id"] for run in answer.json["data"]] == ([run_id] if found else [])


@pytest.mark.parametrize("name", ["journey_id", "root_run_id", "definition_id", "q"])
def test_a_run_by_one_of_its_ids(world: ApiWorld, name: str) -> None:
    run_id = world.triggered()
    summary = world.call("GET", f"{RUNS}/{run_id}").json["data"]["summary"]
    query = f"{name}={run_id if name == 'q' else summary[name]}"
    assert [run["run_id"] for run in world.call("GET", RUNS, query=query).json["data"]] == [run_id]


@pytest.mark.parametrize("name", ["status", "workflow_type", "active_only", "started_after", "q", "limit"])
def test_a_filter_that_is_given_twice_is_refused_and_none_of_them_dropped(world: ApiWorld, name: str) -> None:
    answer = world.call("GET", RUNS, query=f"{name}=1&{name}=2")
    assert answer.status == 400
    assert (name, "FIELD_INVALID") in answer.codes
