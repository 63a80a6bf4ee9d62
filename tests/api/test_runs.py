"""Starting, steering and reading runs over the API."""

from __future__ import annotations

import json

import pytest
from tests.api.world import ApiWorld

SAMPLE = {
    "subject_type": "lead",
    "subject_id": "lead-123",
    "input": {"email": "a@example.com", "source": "webinar"},
    "wait_for_checkpoint": False,
    "idempotency_key": "lead-123-signup",
    "external_deployment_id": "prod-us-east-1-wave-1",
    "correlation_labels": [
        {"key": "conversation", "id": "conversation-42"},
        {"key": "support_ticket", "id": "ticket-9182"},
    ],
}


def trigger(world: ApiWorld, body: object, definition_id: str = "") -> str:
    answer = world.call("POST", f"/api/v2/workflow-definitions/{definition_id or world.published()}:trigger", body)
    assert answer.status == 202, answer.text
    return str(answer.json["run_id"])


def test_the_trigger_sample(world: ApiWorld) -> None:
    answer = world.call("POST", f"/api/v2/workflow-definitions/{world.published()}:trigger", SAMPLE)
    assert answer.status == 202
    assert answer.json["status"] == "running"
    assert set(answer.json["metadata"]) == {"trace_id", "request_id", "fetched_at"}
    run = world.call("GET", f"/api/workflows/runs/{answer.json['run_id']}").json["data"]["summary"]
    assert run["correlation_labels"] == SAMPLE["correlation_labels"]
    assert (run["workflow_type"], run["subject_id"]) == ("hello_world", "lead-123")


def test_a_repeated_trigger_answers_the_same_run(world: ApiWorld) -> None:
    definition_id = world.published()
    assert trigger(world, SAMPLE, definition_id) == trigger(world, SAMPLE, definition_id)


def test_another_body_under_the_same_key_is_refused(world: ApiWorld) -> None:
    definition_id = world.published()
    run_id = trigger(world, SAMPLE, definition_id)
    path = f"/api/v2/workflow-definitions/{definition_id}:trigger"
    answer = world.call("POST", path, {**SAMPLE, "input": {"email": "b@example.com"}})
    assert answer.status == 409
    assert answer.codes == [("idempotency_key", "IDEMPOTENCY_KEY_REUSED")]
    assert run_id in answer.json["message"]


def test_a_draft_cannot_be_triggered(world: ApiWorld) -> None:
    answer = world.call("POST", f"/api/v2/workflow-definitions/{world.draft()['id']}:trigger")
    assert (answer.status, answer.json["error_code"]) == (409, "FAILED_PRECONDITION")
    assert answer.codes == [("definition_id", "DEFINITION_NOT_PUBLISHED")]


def test_an_input_over_one_megabyte_is_refused_before_a_run_exists(world: ApiWorld) -> None:
    answer = world.call("POST", f"/api/v2/workflow-definitions/{world.published()}:trigger", {"input": "x" * 1_100_000})
    assert (answer.status, answer.json["error_code"]) == (413, "PAYLOAD_TOO_LARGE")
    assert world.call("GET", "/api/workflows/runs").json["data"] == []


def test_sixty_four_bit_integers_survive(world: ApiWorld) -> None:
    run_id = trigger(world, '{"input": {"id": 9007199254740993, "max": 9223372036854775807}}')
    state = world.header(run_id)
    assert world.payloads.load(run_id, state.origin.input) == {"id": 9007199254740993, "max": 9223372036854775807}


@pytest.mark.parametrize("operation", ["pause", "cancel", "terminate"])
def test_controls_are_accepted_and_enqueued(world: ApiWorld, operation: str) -> None:
    run_id = world.triggered()
    body = {"request_id": "op-8f2a-1", "reason": "manual hold"}
    answer = world.call("POST", f"/api/v2/workflow-runs/{run_id}:{operation}", body)
    assert answer.status == 202
    assert (answer.json["status"], answer.json["run_id"]) == ("accepted", run_id)
    assert [intent.kind.value for intent in world.sent()] == ["start", operation]


def test_a_control_needs_a_request_id(world: ApiWorld) -> None:
    answer = world.call("POST", f"/api/v2/workflow-runs/{world.triggered()}:pause")
    assert answer.status == 400
    assert answer.codes == [("request_id", "FIELD_REQUIRED")]


@pytest.mark.parametrize(
    ("operation", "code"), [("pause", "RUN_TERMINAL"), ("cancel", "RUN_TERMINAL"), ("redrive", "NOT_REDRIVABLE")]
)
def test_controls_of_an_ended_run_are_refused(world: ApiWorld, operation: str, code: str) -> None:
    answer = world.call("POST", f"/api/v2/workflow-runs/{world.completed()}:{operation}", {"request_id": "r"})
    assert (answer.status, answer.json["error_code"]) == (409, "FAILED_PRECONDITION")
    assert [found for _, found in answer.codes] == [code]


def test_the_reads_of_the_walkthrough(world: ApiWorld) -> None:
    run_id = world.completed()
    run = world.call("GET", f"/api/workflows/runs/{run_id}").json
    assert run["data"]["summary"]["status"] == "completed"
    snapshot = world.call("GET", f"/api/v2/workflow-runs/{run_id}/snapshot").json
    assert json.loads(snapshot["nodes"]["greet"]["latest_output_json"])["result"] == {"message": "hello"}
    steps = world.call("GET", f"/api/workflows/runs/{run_id}/steps").json["data"]
    assert [step["node"] for step in steps] == ["greet", "pause"]


def test_output_of_run_and_node(world: ApiWorld) -> None:
    run_id = world.completed()
    output = {"result": {"message": "hello"}}
    assert world.call("GET", f"/api/workflows/runs/{run_id}/output").json["data"]["output"] == {"greet": output}
    node = world.call("GET", f"/api/v2/workflow-runs/{run_id}/nodes/greet/output").json
    assert (node["node"], node["output"]) == ("greet", output)


def test_the_input_of_a_run_is_read_as_it_was_sent(world: ApiWorld) -> None:
    run_id = trigger(world, SAMPLE)
    answer = world.call("GET", f"/api/workflows/runs/{run_id}/input")
    assert (answer.status, answer.json["data"]) == (200, {"run_id": run_id, "input": SAMPLE["input"]})


def test_output_before_the_end_is_refused(world: ApiWorld) -> None:
    answer = world.call("GET", f"/api/workflows/runs/{world.triggered()}/output")
    assert [code for _, code in answer.codes] == ["RUN_NOT_FINISHED"]


@pytest.mark.parametrize("view", ["attempts", "audit"])
def test_lists_of_the_debug_view_are_flat(world: ApiWorld, view: str) -> None:
    answer = world.call("GET", f"/api/v2/workflow-runs/{world.triggered()}/{view}", query="limit=10")
    assert (answer.status, answer.json["items"], answer.json["next_cursor"]) == (200, [], None)


def test_events_answer_a_page(world: ApiWorld) -> None:
    answer = world.call("GET", f"/api/workflows/runs/{world.triggered()}/events")
    assert (answer.status, answer.json["data"], answer.json["next_cursor"]) == (200, [], None)


def test_list_runs_by_filters(world: ApiWorld) -> None:
    definition_id = world.published()
    wanted, other = trigger(world, SAMPLE, definition_id), trigger(world, {}, definition_id)
    queries = ["label.conversation=conversation-42", "subject_type=lead&subject_id=lead-123"]
    for query in [*queries, "workflow_type=hello-world&active_only=true&started_after=-1h&subject_type=lead"]:
        found = world.call("GET", "/api/workflows/runs", query=query).json["data"]
        assert [run["run_id"] for run in found] == [wanted], query
    both = world.call("GET", "/api/workflows/runs", query="attr.ductor.correlation.nope=x").json["data"]
    assert both == []
    assert {run["run_id"] for run in world.call("GET", "/api/workflows/runs").json["data"]} == {wanted, other}


@pytest.mark.parametrize("query", ["statuss=running", "status=odd", "started_after=yesterday", "limit=0", "limit=x"])
def test_odd_filters_are_refused(world: ApiWorld, query: str) -> None:
    answer = world.call("GET", "/api/workflows/runs", query=query)
    assert answer.status == 400
    assert answer.codes[0][0] == query.partition("=")[0]
