"""Whatever a client sends, the answer has our shape and never blames the server."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.api.test_access import ROUTES, body_for
from tests.api.world import ApiWorld, Reply

BODIES = [(method, path) for method, path, _ in ROUTES if method in ("POST", "PATCH")]
TRIGGER = "/api/v2/workflow-definitions/{definition}:trigger"


class Existing:
    """A world with one draft, one version and one run, shared by many examples."""

    def __init__(self) -> None:
        self.world = ApiWorld()
        self.run = self.world.triggered()
        self.definition = self.world.header(self.run).origin.definition_id
        self.draft = self.world.call("GET", "/api/workflow-definitions", query="status=draft").json["data"][0]["id"]

    def path(self, path: str) -> str:
        published = path.endswith((":trigger", "/archive"))
        return path.format(definition=self.definition if published else self.draft, run=self.run)


@pytest.fixture(scope="module")
def existing() -> Existing:
    return Existing()


def assert_refusal(answer: Reply) -> None:
    assert 400 <= answer.status < 500, answer.text
    body = answer.json
    assert set(body) == {"error_code", "message", "errors", "metadata"}
    assert body["errors"]
    assert all(item["code"] for item in body["errors"])


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ('{"input": NaN}', "JSON_INVALID", "input"),
        ('{"input": -Infinity}', "JSON_INVALID", "input"),
        ('{"input": 1e400}', "NUMBER_OUT_OF_RANGE", "input"),
        ('{"input": {"big": 123456789012345678901234567890123456789012}}', "NUMBER_OUT_OF_RANGE", "input.big"),
        ('{"input": {"a": 1, "a": 2}}', "KEY_DUPLICATE", "input.a"),
        ('{"input": "\\ud800"}', "TEXT_INVALID", "input"),
        ('{"input": "\ud800"}', "TEXT_INVALID", "body"),
        ('{"input": ' + "[" * 100_000 + "]" * 100_000 + "}", "NESTING_TOO_DEEP", "body"),
        ("[]", "FIELD_INVALID", "body"),
        ('"text"', "FIELD_INVALID", "body"),
        ("{", "JSON_INVALID", "body"),
    ],
)
@pytest.mark.parametrize(("method", "path"), BODIES)
def test_bad_json_is_refused_on_every_route(
    existing: Existing, method: str, path: str, body: str, code: str, field: str
) -> None:
    answer = existing.world.call(method, existing.path(path), body)
    assert answer.status == 400
    assert answer.codes == [(field, code)]


@pytest.mark.parametrize(("method", "path"), BODIES)
def test_ten_megabytes_are_too_large_on_every_route(existing: Existing, method: str, path: str) -> None:
    answer = existing.world.call(method, existing.path(path), '{"input": "' + "x" * 10_000_000 + '"}')
    assert (answer.status, answer.json["error_code"]) == (413, "PAYLOAD_TOO_LARGE")
    assert answer.codes == [("body", "PAYLOAD_TOO_LARGE")]


WRONG: list[Any] = [None, True, 7, 1.5, "text", [], ["x"], {}, {"x": 1}, "\x00", "x" * 10_000, -1, 2**63 - 1]
FIELDS = {
    TRIGGER: (
        "input",
        "subject_type",
        "subject_id",
        "idempotency_key",
        "correlation_labels",
        "variables",
        "external_deployment_id",
        "wait_for_checkpoint",
        "checkpoint_timeout_seconds",
    ),
    "/api/v2/workflow-runs/{run}:pause": ("request_id", "reason"),
    "/api/workflow-definitions/{definition}/publish": ("expected_draft_revision",),
    "/api/workflow-definitions/{definition}/duplicate": ("family_slug",),
    "/api/workflow-definitions": (
        "family_slug",
        "environment",
        "title",
        "description",
        "tags",
        "steps",
        "edges",
        "variables",
        "input_schema",
        "output",
        "triggers",
        "checkpoints",
        "schedule",
        "run_timeout_ms",
        "hooks",
        "concurrency",
    ),
    "/api/admin/api-keys": (
        "name",
        "scopes",
        "roles",
        "environments_read",
        "environments_write",
        "default_environment",
        "expires_at",
    ),
}


@pytest.mark.parametrize(("path", "field"), [(path, field) for path, fields in FIELDS.items() for field in fields])
def test_a_wrong_type_in_any_field_is_never_our_fault(existing: Existing, path: str, field: str) -> None:
    base = body_for(path, "POST")
    assert isinstance(base, dict)
    for value in WRONG:
        answer = existing.world.call("POST", existing.path(path), {**base, field: value})
        assert answer.status < 500, (value, answer.text)
        if answer.status >= 400:
            assert_refusal(answer)


def test_all_wrong_fields_are_named_at_once(existing: Existing) -> None:
    body = {"subject_type": 1, "correlation_labels": [{"key": "a"}, {"id": 2, "key": "b"}], "inputt": {}}
    answer = existing.world.call("POST", existing.path(TRIGGER), body)
    assert set(answer.codes) == {
        ("subject_type", "FIELD_INVALID"),
        ("correlation_labels[0].id", "FIELD_REQUIRED"),
        ("correlation_labels[1].id", "FIELD_INVALID"),
        ("inputt", "FIELD_UNKNOWN"),
    }
    assert "did you mean input?" in answer.text


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text()
    | st.sampled_from(["a", "draft"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text() | st.sampled_from(["ref", "type", "args", "add_step", "key", "id"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)
names = st.sampled_from(sorted({name for fields in FIELDS.values() for name in fields} | {"operations", "odd"}))


@pytest.mark.parametrize(("method", "path"), BODIES)
@given(body=values | st.dictionaries(names, values, max_size=5))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_json_is_never_our_fault(existing: Existing, method: str, path: str, body: Any) -> None:
    known = body_for(path, method)
    assert isinstance(known, dict)
    merged = {**known, **body} if isinstance(body, dict) else body
    answer = existing.world.call(method, existing.path(path), json.dumps(merged))
    assert answer.status < 500, answer.text
    if answer.status >= 400:
        assert_refusal(answer)


@given(
    method=st.sampled_from(["GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS", "BREW"]),
    path=st.text(max_size=30) | st.sampled_from([path for _, path, _ in ROUTES]),
    ident=st.text(max_size=80),
    query=st.text(max_size=40),
)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_paths_are_never_our_fault(existing: Existing, method: str, path: str, ident: str, query: str) -> None:
    at = "/" + path.replace("{definition}", ident).replace("{run}", ident).lstrip("/")
    answer = existing.world.call(method, at, query=query)
    assert answer.status < 500, answer.text


@pytest.mark.parametrize("path", [path for method, path, _ in ROUTES if method == "GET" and "{run}" in path])
@pytest.mark.parametrize("ident", ["\x00", "é", "x" * 5_000, "..", "%2F", "' OR 1=1", "R#x", "\ud800"])
def test_odd_ids_are_not_found(existing: Existing, path: str, ident: str) -> None:
    answer = existing.world.call("GET", path.format(run=ident))
    assert answer.status == 404
    assert_refusal(answer)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/api/nothing"),
        ("POST", "/api/v2/workflow-runs/r:explode"),
        ("POST", "/api/v2/workflow-events:explode"),
        ("POST", "/api/workflow-definitions/x:trigger"),
        ("GET", "/api/workflows/runs/"),
    ],
)
def test_a_route_that_is_not_there(world: ApiWorld, method: str, path: str) -> None:
    answer = world.call(method, path, {} if method == "POST" else "")
    assert answer.status == 404
    assert answer.codes == [("path", "ROUTE_UNKNOWN")]


def test_another_method_names_the_allowed_ones(world: ApiWorld) -> None:
    answer = world.call("PUT", "/api/workflow-definitions", {})
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, POST"
    assert answer.codes == [("method", "METHOD_NOT_ALLOWED")]


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "application/xml"])
def test_another_media_type_is_refused(world: ApiWorld, content_type: str) -> None:
    answer = world.call("POST", "/api/workflow-definitions", {}, headers={"content-type": content_type})
    assert answer.status == 415
    assert answer.codes == [("Content-Type", "MEDIA_TYPE_UNSUPPORTED")]


@pytest.mark.parametrize("content_type", ["application/json", "Application/JSON; charset=utf-8", "application/x+json"])
def test_json_media_types_are_taken(world: ApiWorld, content_type: str) -> None:
    body = {"family_slug": "a"}
    assert world.call("POST", "/api/workflow-definitions", body, headers={"content-type": content_type}).status == 201


def test_a_base64_body_is_read(world: ApiWorld) -> None:
    event = world.event("POST", "/api/workflow-definitions")
    event |= {"body": base64.b64encode(b'{"family_slug": "a"}').decode(), "isBase64Encoded": True}
    assert world.handler(event, None)["statusCode"] == 201
    event["body"] = "\x00"
    assert world.handler(event, None)["statusCode"] == 400


def test_a_null_byte_travels_through_a_trigger(world: ApiWorld) -> None:
    path = TRIGGER.format(definition=world.published())
    assert world.call("POST", path, {"input": "\x00", "idempotency_key": "\x00"}).status == 202


@pytest.mark.parametrize(("method", "path"), [(method, path) for method, path, _ in ROUTES])
def test_a_parameter_that_no_route_reads_is_refused_on_every_route(existing: Existing, method: str, path: str) -> None:
    answer = existing.world.call(method, existing.path(path), "", query="idempotency_key=k-1")
    assert (answer.status, answer.codes[0]) == (400, ("idempotency_key", "FIELD_UNKNOWN"))
