"""Definitions over the API: the lifecycle of the product text, with its fields where the text reads them."""

from __future__ import annotations

from tests.api.world import ApiWorld
from tests.unit.app.world import HELLO

ROOT = "/api/workflow-definitions"


def test_create_answers_the_draft(world: ApiWorld) -> None:
    answer = world.call("POST", ROOT, HELLO)
    assert answer.status == 201
    data = answer.json["data"]
    assert data["id"]
    assert (data["status"], data["version"], data["draft_revision"]) == ("DEFINITION_STATUS_DRAFT", 1, 1)
    assert data["steps"][0]["type"] == "STEP_TYPE_DATAFLOW"
    assert data["created_at"] == "2026-01-01T00:00:00.000Z"
    assert data["published_at"] is None


def test_create_without_environment_takes_the_keys_default(world: ApiWorld) -> None:
    lead_router = {"family_slug": "lead-router", "title": "Lead Router", "description": "Enrich", "tags": ["sales"]}
    answer = world.call("POST", ROOT, lead_router)
    assert answer.status == 201
    assert answer.json["data"]["environment"] == "default"


def test_a_second_draft_of_a_family_is_a_conflict(world: ApiWorld) -> None:
    world.draft()
    answer = world.call("POST", ROOT, HELLO)
    assert (answer.status, answer.json["error_code"]) == (409, "ALREADY_EXISTS")
    assert answer.codes == [("family_slug", "DRAFT_EXISTS")]


def test_read_gives_what_create_gave(world: ApiWorld) -> None:
    draft = world.draft()
    assert world.call("GET", f"{ROOT}/{draft['id']}").json["data"] == draft


def test_edit_answers_data_warnings_and_metadata(world: ApiWorld) -> None:
    draft = world.draft()
    step = {"ref": "extra", "type": "STEP_TYPE_WAIT", "args": {"duration": "1s"}}
    body = {"expected_draft_revision": 1, "title": "New", "operations": [{"add_step": step}]}
    answer = world.call("PATCH", f"{ROOT}/{draft['id']}/draft", body)
    assert answer.status == 200
    assert set(answer.json) == {"data", "warnings", "metadata"}
    assert (answer.json["data"]["title"], answer.json["data"]["draft_revision"]) == ("New", 2)


def test_edit_of_a_stale_revision_is_a_conflict(world: ApiWorld) -> None:
    draft = world.draft()
    answer = world.call("PATCH", f"{ROOT}/{draft['id']}/draft", {"expected_draft_revision": 7, "title": "x"})
    assert (answer.status, answer.json["error_code"]) == (409, "ABORTED")
    assert answer.codes == [("expected_draft_revision", "DRAFT_REVISION_CONFLICT")]


def test_publish_with_the_reviewed_revision(world: ApiWorld) -> None:
    draft = world.draft()
    answer = world.call("POST", f"{ROOT}/{draft['id']}/publish", {"expected_draft_revision": draft["draft_revision"]})
    assert answer.status == 200
    assert set(answer.json) == {"published", "draft", "warnings", "metadata"}
    published = world.call("GET", f"{ROOT}/{answer.json['published']['id']}").json["data"]
    assert (published["status"], published["version"]) == ("DEFINITION_STATUS_PUBLISHED", 1)
    assert answer.json["draft"]["id"] == draft["id"]
    assert answer.json["draft"]["version"] == 2


def test_publish_without_a_body(world: ApiWorld) -> None:
    assert world.call("POST", f"{ROOT}/{world.draft()['id']}/publish").status == 200


def test_publish_refuses_with_every_violation(world: ApiWorld) -> None:
    draft = world.draft(steps=[{"ref": "a", "type": "action"}, {"ref": "b", "type": "wait"}], edges=[])
    answer = world.call("POST", f"{ROOT}/{draft['id']}/publish")
    assert (answer.status, answer.json["error_code"]) == (400, "INVALID_ARGUMENT")
    assert {field.split(".")[0] for field, _ in answer.codes} == {"a", "b"}
    assert all(item["message"] for item in answer.json["errors"])


def test_validate_lists_what_is_wrong(world: ApiWorld) -> None:
    draft = world.draft(family_slug="broken", steps=[{"ref": "a", "type": "action"}], edges=[])
    answer = world.call("POST", f"{ROOT}/{draft['id']}/validate")
    assert answer.status == 200
    assert answer.json["data"]["valid"] is False
    assert answer.json["data"]["violations"]
    assert world.call("POST", f"{ROOT}/{world.published()}/validate").json["data"]["valid"] is True


def test_archive_refuses_triggers(world: ApiWorld) -> None:
    published = world.published()
    assert world.call("POST", f"{ROOT}/{published}/archive").json["data"]["status"] == "DEFINITION_STATUS_ARCHIVED"
    answer = world.call("POST", f"/api/v2/workflow-definitions/{published}:trigger")
    assert answer.codes == [("definition_id", "DEFINITION_ARCHIVED")]


def test_duplicate_starts_another_family(world: ApiWorld) -> None:
    answer = world.call("POST", f"{ROOT}/{world.draft()['id']}/duplicate", {"family_slug": "copy"})
    assert answer.status == 201
    assert (answer.json["data"]["family_slug"], answer.json["data"]["draft_revision"]) == ("copy", 1)


def test_delete_draft_keeps_versions(world: ApiWorld) -> None:
    published = world.published()
    (draft,) = world.call("GET", ROOT, query="status=draft").json["data"]
    assert world.call("DELETE", f"{ROOT}/{draft['id']}/draft").json["data"]["deleted"] is True
    assert world.call("GET", f"{ROOT}/{draft['id']}").status == 404
    assert world.call("GET", f"{ROOT}/{published}").status == 200


def test_list_pages_and_filters(world: ApiWorld) -> None:
    for number in range(3):
        world.draft(family_slug=f"family_{number}", tags=[f"t{number}", "all"])
    first = world.call("GET", ROOT, query="limit=2&tags=all").json
    assert [item["family_slug"] for item in first["data"]] == ["family_2", "family_1"]
    rest = world.call("GET", ROOT, query=f"limit=2&tags=all&cursor={first['next_cursor']}").json
    assert [item["family_slug"] for item in rest["data"]] == ["family_0"]
    assert rest["next_cursor"] is None
    found = world.call("GET", ROOT, query="family_slug=family_1&status=DEFINITION_STATUS_DRAFT&q=hello").json["data"]
    assert [item["status"] for item in found] == ["DEFINITION_STATUS_DRAFT"]


def test_a_cursor_of_another_list_is_refused(world: ApiWorld) -> None:
    for number in range(2):
        world.draft(family_slug=f"family_{number}")
    cursor = world.call("GET", ROOT, query="limit=1").json["next_cursor"]
    assert world.call("GET", ROOT, query=f"limit=1&q=x&cursor={cursor}").codes == [("cursor", "CURSOR_INVALID")]


def test_validate_shows_when_a_schedule_fires_next(world: ApiWorld) -> None:
    draft = world.draft(schedule={"cron": "0 9 29 2 *"})
    data = world.call("POST", f"/api/workflow-definitions/{draft['id']}/validate").json["data"]
    assert [at[5:16] for at in data["next_occurrences"]] == ["02-29T09:00"] * 5


def test_diff_names_what_changed_by_step_edge_and_field(world: ApiWorld) -> None:
    draft = world.draft()
    version = world.call("POST", f"/api/workflow-definitions/{draft['id']}/publish").json["published"]
    edit = {
        "expected_draft_revision": 1,
        "title": "Other",
        "operations": [
            {"update_step": {"ref": "pause", "args": {"duration": "5s"}}},
            {"add_step": {"ref": "more", "type": "wait", "args": {"duration": "1s"}}},
            {"remove_edge": {"source_ref": "greet", "target_ref": "pause"}},
        ],
    }
    assert world.call("PATCH", f"/api/workflow-definitions/{draft['id']}/draft", edit).status == 200
    answer = world.call("GET", f"/api/workflow-definitions/{draft['id']}/diff", query=f"against={version['id']}")
    data = answer.json["data"]
    assert (data["before"]["version"], data["after"]["draft_revision"], data["identical"]) == (1, 2, False)
    assert [(item["field"], item["before"], item["after"]) for item in data["fields"]] == [
        ("title", "Hello World", "Other")
    ]
    assert [step["ref"] for step in data["steps"]["added"]] == ["more"]
    assert data["steps"]["changed"] == [
        {
            "ref": "pause",
            "fields": [{"field": "args.duration", "change": "changed", "before": "2s", "after": "5s"}],
        }
    ]
    assert [edge["target_ref"] for edge in data["edges"]["removed"]] == ["pause"]


def test_diff_without_a_base_says_so(world: ApiWorld) -> None:
    answer = world.call("GET", f"/api/workflow-definitions/{world.draft()['id']}/diff")
    assert (answer.status, answer.codes) == (409, [("against", "DIFF_BASE_MISSING")])
