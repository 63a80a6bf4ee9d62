"""Schedules over HTTP: shapes, statuses, and odd requests."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.world import ApiWorld
from tests.unit.app.world import HELLO

from ductor.app.environments import EnvironmentChanges
from ductor.testing.memory import VirtualClock

ALL = "/api/workflow-schedules"
ONE = f"{ALL}/hello_world"
HOURLY = {"cron": "0 * * * *", "timezone": "Europe/Berlin"}
HOUR = 3_600_000


@pytest.fixture
def scheduled(world: ApiWorld) -> ApiWorld:
    draft = world.draft(schedule=HOURLY)
    assert world.call("POST", f"/api/workflow-definitions/{draft['id']}/publish").status == 200
    return world


def pass_hours(world: ApiWorld, hours: int) -> None:
    clock = world.clock
    assert isinstance(clock, VirtualClock)
    for _ in range(hours):
        clock.advance(HOUR)
        world.scheduling.firing.fire_due()


def test_a_schedule_shows_what_it_fires_and_how_far_it_has_come(scheduled: ApiWorld) -> None:
    detail = scheduled.call("GET", ONE).json["data"]
    assert detail["cron"] == "0 * * * *"
    assert detail["timezone"] == "Europe/Berlin"
    assert detail["overlap_policy"] == "skip"
    assert detail["paused"] is False
    assert detail["next_occurrence_at"] == "2026-01-01T01:00:00.000Z"
    assert detail["last_occurrence"] is None
    pass_hours(scheduled, 2)
    detail = scheduled.call("GET", ONE).json["data"]
    assert detail["counts"] == {"fired": 1, "skipped": 1, "missed": 0, "refused": 0}
    assert detail["last_occurrence"]["outcome"] == "skipped"
    assert detail["last_occurrence"]["scheduled_at"] == "2026-01-01T02:00:00.000Z"
    assert detail["next_occurrence_at"] == "2026-01-01T03:00:00.000Z"


def test_the_list_is_wrapped_and_has_it(scheduled: ApiWorld) -> None:
    answer = scheduled.call("GET", ALL)
    assert [one["family_slug"] for one in answer.json["data"]] == ["hello_world"]
    assert answer.json["next_cursor"] is None
    assert set(answer.json["metadata"]) == {"trace_id", "request_id", "fetched_at"}


def test_a_preview_has_as_many_instants_as_asked_for(scheduled: ApiWorld) -> None:
    assert len(scheduled.call("GET", f"{ONE}/preview").json["data"]["occurrences"]) == 10
    data = scheduled.call("GET", f"{ONE}/preview", query="count=2").json["data"]
    assert data["occurrences"] == ["2026-01-01T01:00:00.000Z", "2026-01-01T02:00:00.000Z"]


def test_controls_are_accepted_and_say_what_the_schedule_is_now(scheduled: ApiWorld) -> None:
    paused = scheduled.call("POST", f"{ONE}:pause", {"request_id": "p1", "reason": "maintenance"})
    assert paused.status == 202
    assert (paused.json["data"]["paused"], paused.json["data"]["paused_by"]) == (True, "operator")
    assert paused.json["data"]["next_occurrence_at"] is None
    resumed = scheduled.call("POST", f"{ONE}:resume")
    assert (resumed.status, resumed.json["data"]["paused"]) == (202, False)
    audit = scheduled.call("GET", f"{ONE}/audit").json["data"]
    assert {(one["operation"], one["reason"]) for one in audit} == {("pause", "maintenance"), ("resume", "")}


def test_a_run_that_is_started_now_can_be_read(scheduled: ApiWorld) -> None:
    answer = scheduled.call("POST", f"{ONE}:triggerNow", {"request_id": "n1"})
    assert answer.status == 202
    again = scheduled.call("POST", f"{ONE}:triggerNow", {"request_id": "n1"})
    assert again.json["data"] == {**answer.json["data"], "repeated": True}
    assert scheduled.call("GET", f"/api/workflows/runs/{answer.json['data']['run_id']}").status == 200
    refused = scheduled.call("POST", f"{ONE}:triggerNow")
    assert (refused.status, refused.codes) == (409, [("overlap_policy", "SCHEDULE_RUN_ACTIVE")])


def test_a_backfill_tells_how_far_it_is(scheduled: ApiWorld) -> None:
    body = {"start_at": "-3h", "end_at": "2026-01-01T00:00:00Z", "request_id": "b1"}
    answer = scheduled.call("POST", f"{ONE}:backfill", body)
    assert answer.status == 202
    assert answer.json["data"]["status"] == "completed"
    assert answer.json["data"]["started"] == 4
    assert scheduled.call("GET", f"{ONE}/backfills/b1").json["data"] == answer.json["data"]
    occurrences = scheduled.call("GET", f"{ONE}/occurrences").json["data"]
    assert [one["scheduled_at"][11:16] for one in occurrences] == ["00:00", "23:00", "22:00", "21:00"]
    assert {one["by"] for one in occurrences} == {"b1"}


@pytest.mark.parametrize(
    ("verb", "body", "code"),
    [
        ("pause", {"request_id": "x" * 200}, ("request_id", "REQUEST_ID_INVALID")),
        ("pause", {"reason": "x" * 3_000}, ("reason", "FIELD_INVALID")),
        ("pause", {"unknown": 1}, ("unknown", "FIELD_UNKNOWN")),
        ("triggerNow", {"overlap_policy": "buffer_one"}, ("overlap_policy", "SCHEDULE_OVERLAP_POLICY_INVALID")),
        ("backfill", {"start_at": "soon", "end_at": "-1h"}, ("start_at", "FIELD_INVALID")),
        ("backfill", {"start_at": "-1h", "end_at": "-2h"}, ("start_at", "FIELD_INVALID")),
        ("backfill", {"start_at": "-1h", "end_at": "2030-01-01T00:00:00Z"}, ("end_at", "FIELD_INVALID")),
        ("backfill", {"start_at": "-900d", "end_at": "-1d"}, ("end_at", "BACKFILL_TOO_LARGE")),
    ],
)
def test_a_malformed_control_is_refused_with_its_field(
    scheduled: ApiWorld, verb: str, body: dict[str, Any], code: tuple[str, str]
) -> None:
    answer = scheduled.call("POST", f"{ONE}:{verb}", body)
    assert (answer.status, answer.codes) == (400, [code])


@pytest.mark.parametrize("path", ["", "/preview", "/occurrences", "/audit", "/backfills/b"])
@pytest.mark.parametrize("slug", ["no_such", "HELLO", "%00", "a%23b"])
def test_an_unknown_schedule_is_not_found(scheduled: ApiWorld, slug: str, path: str) -> None:
    answer = scheduled.call("GET", f"{ALL}/{slug}{path}")
    assert (answer.status, answer.codes) == (404, [("family_slug", "SCHEDULE_NOT_FOUND")])


@pytest.mark.parametrize("path", ["", "/preview", "/occurrences", "/audit"])
def test_a_stranger_sees_what_everybody_sees_of_what_is_not_there(scheduled: ApiWorld, path: str) -> None:
    stranger = scheduled.as_stranger()
    theirs = scheduled.call("GET", f"{ONE}{path}", headers=stranger)
    unknown = scheduled.call("GET", f"{ALL}/no_such{path}", headers=stranger)
    assert (theirs.status, theirs.codes) == (unknown.status, unknown.codes)


@pytest.mark.parametrize("query", ["count=0", "count=1001", "count=x", "count=-1", "other=1"])
def test_an_odd_preview_is_refused(scheduled: ApiWorld, query: str) -> None:
    assert scheduled.call("GET", f"{ONE}/preview", query=query).status == 400


@pytest.mark.parametrize("verb", ["pause", "resume", "triggerNow", "backfill"])
def test_steering_takes_the_scope_to_write_workflows(scheduled: ApiWorld, verb: str) -> None:
    body = {"start_at": "-1h", "end_at": "-30m"} if verb == "backfill" else {}
    answer = scheduled.call("POST", f"{ONE}:{verb}", body, headers=scheduled.with_scopes("workflow:read"))
    assert answer.status == 403


def test_which_environment_must_be_named_where_several_have_one(world: ApiWorld) -> None:
    for key in ("staging", "prod"):
        world.admin.environments.create(world.caller, key, EnvironmentChanges())
    draft = world.draft(schedule=HOURLY, environment="staging")
    path = f"/api/workflow-definitions/{draft['id']}"
    assert world.call("POST", f"{path}/publish").status == 200
    changes = {"environment": "prod", "expected_draft_revision": draft["draft_revision"]}
    assert world.call("PATCH", f"{path}/draft", changes).status == 200
    assert world.call("POST", f"{path}/publish").status == 200
    unnamed = world.call("GET", ONE)
    assert (unnamed.status, unnamed.codes) == (400, [("environment", "ENVIRONMENT_REQUIRED")])
    assert world.call("GET", ONE, query="environment=prod").json["data"]["environment"] == "prod"
    paused = world.call("POST", f"{ONE}:pause", {"environment": "staging"})
    assert (paused.status, paused.json["data"]["environment"]) == (202, "staging")
    assert [one["paused"] for one in world.call("GET", ALL).json["data"]] == [False, True]


def test_runs_are_found_by_their_schedule_and_say_which_occurrence_they_are_for(scheduled: ApiWorld) -> None:
    pass_hours(scheduled, 1)
    scheduled.published({**HELLO, "family_slug": "other"})
    (run,) = scheduled.call("GET", "/api/workflows/runs", query="schedule=hello-world").json["data"]
    assert (run["schedule"], run["scheduled_at"]) == ("hello_world", "2026-01-01T01:00:00.000Z")
    assert scheduled.call("GET", "/api/workflows/runs", query="schedule=other").json["data"] == []


def test_a_backfill_that_is_sent_again_later_is_the_same_although_its_times_are_relative(scheduled: ApiWorld) -> None:
    pass_hours(scheduled, 3)
    body = {"request_id": "b1", "start_at": "-5h", "end_at": "-1h"}
    first = scheduled.call("POST", f"{ONE}:backfill", body)
    pass_hours(scheduled, 2)
    again = scheduled.call("POST", f"{ONE}:backfill", body)
    assert (first.status, again.status) == (202, 202)
    assert again.json["data"]["start_at"] == first.json["data"]["start_at"]
    other = scheduled.call("POST", f"{ONE}:backfill", {**body, "start_at": "-6h"})
    assert (other.status, other.codes) == (409, [("request_id", "REQUEST_ID_REUSED")])
