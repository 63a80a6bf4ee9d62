"""Keys, tenants and scopes: who gets in, and that nobody learns of what is not theirs."""

from __future__ import annotations

import pytest
from tests.api.world import ApiWorld

from ductor.api.auth import GatewayIdentity, authorizer_context
from ductor.model.errors import RefusedError

KEYS = "/api/admin/api-keys"

ROUTES = [
    ("GET", "/api/workflow-definitions", "workflow_definition:read"),
    ("POST", "/api/workflow-definitions", "workflow_definition:write"),
    ("GET", "/api/workflow-definitions/{definition}", "workflow_definition:read"),
    ("PATCH", "/api/workflow-definitions/{definition}/draft", "workflow_definition:write"),
    ("DELETE", "/api/workflow-definitions/{definition}/draft", "workflow_definition:write"),
    ("POST", "/api/workflow-definitions/{definition}/publish", "workflow_definition:write"),
    ("POST", "/api/workflow-definitions/{definition}/validate", "workflow_definition:read"),
    ("POST", "/api/workflow-definitions/{definition}/archive", "workflow_definition:write"),
    ("POST", "/api/workflow-definitions/{definition}/duplicate", "workflow_definition:write"),
    ("POST", "/api/v2/workflow-definitions/{definition}:trigger", "workflow:write"),
    ("POST", "/api/v2/workflow-runs/{run}:pause", "workflow_run:write"),
    ("POST", "/api/v2/workflow-runs/{run}:resume", "workflow_run:write"),
    ("POST", "/api/v2/workflow-runs/{run}:cancel", "workflow_run:write"),
    ("POST", "/api/v2/workflow-runs/{run}:terminate", "workflow_run:write"),
    ("POST", "/api/v2/workflow-runs/{run}:redrive", "workflow_run:write"),
    ("GET", "/api/workflows/runs", "workflow:read"),
    ("GET", "/api/workflows/runs/{run}", "workflow:read"),
    ("GET", "/api/workflows/runs/{run}/steps", "workflow:read"),
    ("GET", "/api/workflows/runs/{run}/events", "workflow:read"),
    ("GET", "/api/workflows/runs/{run}/output", "workflow:read"),
    ("GET", "/api/v2/workflow-runs/{run}/snapshot", "workflow:read"),
    ("GET", "/api/v2/workflow-runs/{run}/attempts", "workflow:read"),
    ("GET", "/api/v2/workflow-runs/{run}/audit", "workflow:read"),
    ("GET", "/api/v2/workflow-runs/{run}/nodes/greet/output", "workflow:read"),
    ("GET", KEYS, "admin"),
    ("POST", KEYS, "admin"),
    ("DELETE", KEYS + "/x", "admin"),
    ("GET", "/api/environments", "admin"),
    ("POST", "/api/environments", "admin"),
    ("GET", "/api/environments/default", "admin"),
    ("PATCH", "/api/environments/default", "admin"),
    ("GET", "/api/variables", "admin"),
    ("PUT", "/api/variables/x", "admin"),
    ("DELETE", "/api/variables/x", "admin"),
    ("GET", "/api/connections", "admin"),
    ("POST", "/api/connections", "admin"),
    ("GET", "/api/connections/types", "admin"),
    ("GET", "/api/connections/x", "admin"),
    ("PATCH", "/api/connections/x", "admin"),
    ("DELETE", "/api/connections/x", "admin"),
    ("POST", "/api/connections/x:test", "admin"),
    ("GET", "/api/admin/tenants", "admin"),
    ("POST", "/api/admin/tenants", "admin"),
    ("GET", "/api/admin/tenants/x", "admin"),
    ("PATCH", "/api/admin/tenants/x", "admin"),
    ("POST", "/api/workflow-definitions/{definition}/promote", "workflow_definition:write"),
]
ABOUT_ONE = [(method, path) for method, path, _ in ROUTES if "{" in path]
BODY = {"request_id": "r", "family_slug": "copy", "expected_draft_revision": 1, "name": "key"}
BODY |= {"environment": "prod", "key": "prod", "value": 1, "slug": "x", "type": "stripe", "entitlements": {}}


def body_for(path: str, method: str) -> object:
    """A body that the route would take."""
    fields = {
        ":trigger": [],
        "/duplicate": ["family_slug"],
        "/draft": ["expected_draft_revision"],
        "/publish": [],
        "api-keys": ["name"],
        "/validate": [],
        "/archive": [],
        "/promote": ["environment"],
        "/api/environments": ["key"],
        "/environments/default": [],
        "/variables/x": ["value"],
        "/api/connections": ["slug", "type"],
        "/connections/x": [],
        ":test": [],
        "/api/admin/tenants": ["name"],
        "/admin/tenants/x": ["entitlements"],
    }
    if method not in ("POST", "PATCH", "PUT"):
        return ""
    known = next((names for end, names in fields.items() if path.endswith(end)), ["request_id"])
    return {name: BODY[name] for name in known}


@pytest.mark.parametrize(("method", "path", "scope"), ROUTES)
def test_each_route_asks_for_its_scope(world: ApiWorld, method: str, path: str, scope: str) -> None:
    path = path.format(definition="d", run="r")
    everything_else = ("workflow:read", "workflow:write", "workflow_run:write", "workflow_definition:read")
    scopes = [other for other in (*everything_else, "workflow_definition:write", "admin") if other != scope]
    answer = world.call(method, path, body_for(path, method), headers=world.with_scopes(*scopes))
    assert (answer.status, answer.json["error_code"]) == (403, "PERMISSION_DENIED"), answer.text
    assert answer.codes == [("", "SCOPE_MISSING")]
    assert scope in answer.json["message"]


@pytest.mark.parametrize(("method", "path"), ABOUT_ONE)
def test_another_tenants_id_answers_like_an_unknown_one(world: ApiWorld, method: str, path: str) -> None:
    run_id = world.completed()
    definition_id = world.header(run_id).origin.definition_id
    stranger = world.as_stranger()
    theirs = path.format(definition=definition_id, run=run_id)
    nobodys = path.format(definition=definition_id[:-4] + "beef", run=run_id[:-4] + "beef")
    first, second = (world.call(method, at, body_for(path, method), headers=stranger) for at in (theirs, nobodys))
    assert first.status == second.status == 404
    for answer in (first.json, second.json):
        del answer["metadata"]["trace_id"]
    assert {**first.json, "metadata": 0} == {**second.json, "metadata": 0}


def test_another_tenants_runs_and_definitions_are_not_listed(world: ApiWorld) -> None:
    world.completed()
    stranger = world.as_stranger()
    assert world.call("GET", "/api/workflows/runs", headers=stranger).json["data"] == []
    assert world.call("GET", "/api/workflow-definitions", headers=stranger).json["data"] == []


@pytest.mark.parametrize(
    ("header", "code"),
    [
        (None, "KEY_MISSING"),
        ("Bearer dk_x_y", "KEY_INVALID"),
        ("Basic dk", "KEY_INVALID"),
        ("Bearer \udcff", "KEY_INVALID"),
    ],
)
def test_a_request_without_a_good_key_is_refused(world: ApiWorld, header: str | None, code: str) -> None:
    answer = world.call("GET", "/api/workflows/runs", headers={"authorization": header})
    assert (answer.status, answer.json["error_code"]) == (401, "UNAUTHENTICATED")
    assert answer.codes == [("Authorization", code)]
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_the_tenant_header_is_required(world: ApiWorld) -> None:
    answer = world.call("GET", "/api/workflows/runs", headers={"x-tenant-id": None})
    assert answer.status == 400
    assert answer.codes == [("X-Tenant-ID", "TENANT_REQUIRED")]


def test_another_tenant_in_the_header_is_refused(world: ApiWorld) -> None:
    answer = world.call("GET", "/api/workflows/runs", headers={"x-tenant-id": world.tenants.create("other").id})
    assert answer.status == 403
    assert answer.codes == [("X-Tenant-ID", "TENANT_MISMATCH")]


def test_a_key_is_issued_listed_and_revoked(world: ApiWorld) -> None:
    issued = world.call("POST", KEYS, {"name": "ci", "scopes": ["workflow:read"], "roles": ["viewer"]})
    assert issued.status == 201
    headers: dict[str, str | None] = {"authorization": f"Bearer {issued.json['data']['key']}"}
    assert world.call("GET", "/api/workflows/runs", headers=headers).status == 200
    listed = world.call("GET", KEYS).json["data"]
    assert [entry["name"] for entry in listed if entry["id"] == issued.json["data"]["id"]] == ["ci"]
    assert "key" not in listed[0]
    revoked = world.call("DELETE", f"{KEYS}/{issued.json['data']['id']}")
    assert revoked.json["data"]["revoked_at"]
    assert world.call("GET", "/api/workflows/runs", headers=headers).codes == [("Authorization", "KEY_REVOKED")]


def test_a_key_expires(world: ApiWorld) -> None:
    issued = world.call("POST", KEYS, {"name": "x", "roles": ["viewer"], "expires_at": "2026-01-01T00:00:10Z"})
    headers: dict[str, str | None] = {"authorization": f"Bearer {issued.json['data']['key']}"}
    assert world.call("GET", "/api/workflows/runs", headers=headers).status == 200
    world.clock.advance(10_000)
    assert world.call("GET", "/api/workflows/runs", headers=headers).codes == [("Authorization", "KEY_EXPIRED")]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "x", "scopes": ["workflow:all"]}, "scopes[0]"),
        ({"name": ""}, "name"),
        ({"name": "x", "expires_at": "2026-01-01T00:00:10"}, "expires_at"),
        ({"name": "x", "expires_at": "soon"}, "expires_at"),
    ],
)
def test_odd_keys_are_refused(world: ApiWorld, body: object, field: str) -> None:
    answer = world.call("POST", KEYS, body)
    assert answer.status == 400
    assert answer.codes == [(field, "FIELD_INVALID")]


def test_the_gateway_passes_on_the_caller(world: ApiWorld) -> None:
    context = authorizer_context(world.keys, world.event("GET", "/"))
    event = {"requestContext": {"authorizer": {"lambda": context}}}
    assert GatewayIdentity()(event).tenant == world.tenant


def test_the_gateway_passes_on_the_refusal(world: ApiWorld) -> None:
    event = world.event("GET", "/", headers={"authorization": "Bearer dk_x_y"})
    context = authorizer_context(world.keys, event)
    with pytest.raises(RefusedError) as caught:
        GatewayIdentity()({"requestContext": {"authorizer": {"lambda": context}}})
    assert caught.value.violations[0].code == "KEY_INVALID"


def test_behind_the_gateway_a_missing_context_is_no_caller() -> None:
    with pytest.raises(RefusedError):
        GatewayIdentity()({"requestContext": {}, "headers": {"authorization": "Bearer dk_x_y"}})
