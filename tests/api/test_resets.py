"""Forks over HTTP."""

from __future__ import annotations

from tests.api.world import ApiWorld

RUN = "/api/v2/workflow-runs/{}"


def test_a_run_is_forked_and_a_repeat_gives_the_same_fork(world: ApiWorld) -> None:
    run = RUN.format(world.triggered())
    body = {"request_id": "r", "reason": "bad deploy", "transition_seq": 0}
    first = world.call("POST", f"{run}:reset", body)
    assert (first.status, first.json["status"]) == (202, "accepted")
    assert world.call("POST", f"{run}:reset", body).json["new_run_id"] == first.json["new_run_id"]
    shown = world.call("GET", f"/api/workflows/runs/{first.json['new_run_id']}").json["data"]["summary"]
    assert shown["source_run_id"] == first.json["run_id"]


def test_a_preview_and_the_points_are_for_readers(world: ApiWorld) -> None:
    run, reader = RUN.format(world.triggered()), world.with_scopes("workflow:read")
    preview = world.call("POST", f"{run}:previewReset", {"transition_seq": 0}, headers=reader)
    assert (preview.status, preview.json["kept"], preview.json["rerun"]) == (200, [], ["greet", "pause"])
    points = world.call("GET", f"{run}/reset-targets", headers=reader)
    assert [point["transition_seq"] for point in points.json["targets"]] == [0]
    assert world.call("POST", f"{run}:reset", {"request_id": "r", "transition_seq": 0}, headers=reader).status == 403


def test_the_history_of_others_is_not_there(world: ApiWorld) -> None:
    run, stranger = RUN.format(world.triggered()), world.as_stranger()
    assert world.call("GET", f"{run}/reset-targets", headers=stranger).status == 404
    assert world.call("POST", f"{run}:previewReset", {"transition_seq": 0}, headers=stranger).status == 404
