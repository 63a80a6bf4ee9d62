"""Events that start runs, over the API: what is answered, what could not be started, and how deep a request comes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.world import ApiWorld, Reply
from tests.unit.app.world import HELLO

from ductor.model.causation import HEADER, MAX_DEPTH

PUBLISH = "/api/v2/workflow-events:publish"
REFUSED = "/api/v2/workflow-events/refused-starts"


def listening(slug: str = "listens", **fields: Any) -> dict[str, Any]:
    return {**HELLO, "family_slug": slug, "triggers": [{"patterns": ["order.*"]}], **fields}


def event(event_id: str = "e1", **fields: Any) -> dict[str, Any]:
    return {"event_name": "order.paid", "event_id": event_id, **fields}


def _get(world: ApiWorld, path: str) -> Reply:
    path, _, query = path.partition("?")
    return world.call("GET", path, query=query)


def test_the_answer_lists_the_runs_that_were_started_and_the_starts_that_were_refused(world: ApiWorld) -> None:
    world.published(listening())
    world.published(listening("strict", input_schema={"type": "object", "required": ["order"]}))
    answer = world.call("POST", PUBLISH, event(payload={"amount": 1})).json
    assert (answer["matched"], len(answer["started_runs"])) == (0, 1)
    (refused,) = answer["refused_starts"]
    assert (refused["family_slug"], refused["code"]) == ("strict", "INPUT_INVALID")
    assert [fault["field"] for fault in refused["errors"]] == ["input.order"]
    listed = _get(world, REFUSED).json
    assert listed["items"] == [refused]
    assert listed["next_cursor"] is None
    run = _get(world, f"/api/workflows/runs/{answer['started_runs'][0]}").json["data"]["summary"]
    assert run["workflow_type"] == "listens"


def test_the_refused_starts_are_paged(world: ApiWorld) -> None:
    world.published(listening(input_schema={"type": "object", "required": ["order"]}))
    for number in range(3):
        world.call("POST", PUBLISH, event(f"e{number}", payload={}))
        world.clock.advance(1)
    first = _get(world, f"{REFUSED}?limit=2").json
    second = _get(world, f"{REFUSED}?limit=2&cursor={first['next_cursor']}").json
    assert [item["event_id"] for item in first["items"] + second["items"]] == ["e2", "e1", "e0"]
    assert _get(world, f"{REFUSED}?cursor=nonsense").codes == [("cursor", "CURSOR_INVALID")]


def test_a_name_of_the_engine_is_refused(world: ApiWorld) -> None:
    reply = world.call("POST", PUBLISH, {"event_name": "ductor.run.completed", "event_id": "e1"})
    assert (reply.status, reply.codes) == (400, [("event_name", "EVENT_NAME_RESERVED")])


def test_rule_24_an_action_tells_how_deep_its_run_is(world: ApiWorld) -> None:
    definition_id = world.published(listening())
    trigger = f"/api/v2/workflow-definitions/{definition_id}:trigger"
    plain = world.call("POST", trigger, {}).json["run_id"]
    deep = world.call("POST", trigger, {}, headers={HEADER: "7"}).json["run_id"]
    assert [world.header(run_id).origin.depth for run_id in (plain, deep)] == [0, 8]
    (started,) = world.call("POST", PUBLISH, event(), headers={HEADER: "7"}).json["started_runs"]
    assert world.header(started).origin.depth == 8


def test_rule_24_an_action_cannot_start_what_is_too_deep(world: ApiWorld) -> None:
    definition_id = world.published(listening())
    trigger = f"/api/v2/workflow-definitions/{definition_id}:trigger"
    reply = world.call("POST", trigger, {}, headers={HEADER: str(MAX_DEPTH)})
    assert (reply.status, reply.codes) == (409, [("", "CAUSATION_TOO_DEEP")])
    answer = world.call("POST", PUBLISH, event(), headers={HEADER: str(MAX_DEPTH)}).json
    assert (answer["started_runs"], [one["code"] for one in answer["refused_starts"]]) == ([], ["CAUSATION_TOO_DEEP"])


def test_a_key_means_the_same_request_however_deep_it_comes_from(world: ApiWorld) -> None:
    trigger = f"/api/v2/workflow-definitions/{world.published(listening())}:trigger"
    body = {"idempotency_key": "k"}
    first = world.call("POST", trigger, body).json["run_id"]
    assert world.call("POST", trigger, body, headers={HEADER: "3"}).json["run_id"] == first


@pytest.mark.parametrize("told", ["-1", "x", "1.5", "9999999", ""])
def test_a_depth_that_is_no_number_is_refused(world: ApiWorld, told: str) -> None:
    assert world.call("POST", PUBLISH, event(), headers={HEADER: told}).codes == [(HEADER, "FIELD_INVALID")]
