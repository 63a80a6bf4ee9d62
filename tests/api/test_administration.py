"""Environments, connections, variables, tenants and promotion over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.world import ApiWorld
from tests.unit.app.world import HELLO

KEY = "sk_live_abcdef"
STRIPE = {"slug": "main", "type": "stripe", "secrets": {"api_key": KEY}}
DEFINITIONS = "/api/workflow-definitions"


def operator(world: ApiWorld) -> dict[str, str | None]:
    """Headers of an administrator of the first tenant."""
    first = world.tenants.first_start(world.keys, reissue=True)
    assert first.admin_key is not None
    return {"authorization": f"Bearer {first.admin_key.plaintext}", "x-tenant-id": first.tenant}


def test_a_connection_is_made_and_shown_without_its_secret(world: ApiWorld) -> None:
    made = world.call("POST", "/api/connections", STRIPE)
    assert made.status == 201
    detail = made.json["data"]
    assert (detail["slug"], detail["secrets"], detail["environments"]) == ("main", ["api_key"], ["*"])
    at = f"/api/connections/{detail['id']}"
    answers = [
        made,
        world.call("GET", "/api/connections"),
        world.call("GET", at),
        world.call("PATCH", at, {"secrets": {"api_key": KEY + "2"}, "title": "Main"}),
        world.call("DELETE", at),
    ]
    assert all(KEY not in answer.text and answer.status < 300 for answer in answers)
    assert world.call("GET", at).status == 404


@pytest.mark.parametrize(
    "body",
    [
        {**STRIPE, "secrets": {"api_key": KEY, "token": KEY}},
        {**STRIPE, "secrets": {"api_key": [KEY]}},
        {**STRIPE, "secrets": {"api_key": {"x": KEY}}},
        {**STRIPE, "secrets": KEY},
        {**STRIPE, "slug": 1},
        {**STRIPE, "nope": 1},
        {"slug": "main"},
        {**STRIPE, "settings": {"base_url": 5}},
        {**STRIPE, "settings": {"base_url": "https://x/{args.y}"}},
    ],
)
def test_a_refusal_never_repeats_a_secret(world: ApiWorld, body: Any) -> None:
    answer = world.call("POST", "/api/connections", body)
    assert answer.status == 400
    assert KEY not in answer.text


def test_the_test_call_answers_with_its_result(world: ApiWorld) -> None:
    body = {**STRIPE, "settings": {"base_url": "http://127.0.0.1:1"}}
    world.call("POST", "/api/connections", body)
    answer = world.call("POST", "/api/connections/main:test")
    assert (answer.status, answer.json["data"]["ok"], answer.json["data"]["code"]) == (
        200,
        False,
        "HTTP_CONNECT_FAILED",
    )


def test_the_types_say_what_they_take(world: ApiWorld) -> None:
    found = {one["type"]: one for one in world.call("GET", "/api/connections/types").json["data"]}
    assert [one["name"] for one in found["stripe"]["secrets"]] == ["api_key"]
    assert "stripe.invoices.create" in found["stripe"]["actions"]
    assert {one["name"]: one["required"] for one in found["http"]["settings"]} == {"base_url": True}


def test_an_environment_is_made_changed_and_listed(world: ApiWorld) -> None:
    body = {"key": "prod", "require_promotion": True, "release": {"required": True, "external_deployment_id": "w1"}}
    made = world.call("POST", "/api/environments", body)
    assert made.status == 201
    assert made.json["data"]["release"] == {"required": True, "external_deployment_id": "w1"}
    changed = world.call("PATCH", "/api/environments/prod", {"release": {"external_deployment_id": "w2"}, "title": "P"})
    assert changed.json["data"]["release"] == {"required": True, "external_deployment_id": "w2"}
    assert changed.json["data"]["require_promotion"]
    keys = [one["key"] for one in world.call("GET", "/api/environments").json["data"]]
    assert keys == ["default", "prod"]


def test_a_release_is_read_from_the_body_only(world: ApiWorld) -> None:
    policy = {"release": {"required": True, "external_deployment_id": "wave-1"}}
    assert world.call("PATCH", "/api/environments/default", policy).status == 200
    at = f"/api/v2/workflow-definitions/{world.published()}:trigger"
    refused = world.call("POST", at, {}, headers={"x-external-deployment-id": "wave-1"})
    assert (refused.status, refused.json["error_code"]) == (409, "FAILED_PRECONDITION")
    assert refused.codes == [("external_deployment_id", "RELEASE_MISMATCH")]
    assert world.call("POST", at, {"external_deployment_id": "wave-1"}).status == 202


def test_variables_are_set_listed_and_removed(world: ApiWorld) -> None:
    value = {"deep": [1, 2.5, None, "x"]}
    done = world.call("PUT", "/api/variables/limits", {"environment": "default", "value": value})
    assert done.json["data"] == {"environment": "default", "name": "limits", "value": value}
    assert world.call("GET", "/api/variables", query="environment=default").json["data"] == [done.json["data"]]
    assert world.call("DELETE", "/api/variables/limits", query="environment=default").status == 200
    assert world.call("GET", "/api/variables").json["data"] == []


def test_a_version_is_promoted(world: ApiWorld) -> None:
    world.call("POST", "/api/environments", {"key": "prod", "require_promotion": True})
    refused = world.call("POST", DEFINITIONS, {**HELLO, "environment": "prod"})
    assert refused.codes == [("environment", "ENVIRONMENT_NOT_WRITABLE")]
    version = world.published()
    done = world.call("POST", f"{DEFINITIONS}/{version}/promote", {"environment": "prod"})
    assert (done.status, done.json["source"]["id"]) == (200, version)
    published = done.json["published"]
    assert (published["environment"], published["version"], published["status"]) == (
        "prod",
        2,
        "DEFINITION_STATUS_PUBLISHED",
    )


def test_the_operator_makes_tenants_and_their_first_key(world: ApiWorld) -> None:
    headers = operator(world)
    body = {"name": "Acme", "entitlements": {"plan": "small", "step_types": ["STEP_TYPE_DATAFLOW"], "max_api_keys": 1}}
    made = world.call("POST", "/api/admin/tenants", body, headers=headers)
    assert made.status == 201
    tenant = made.json["data"]
    theirs = {"authorization": f"Bearer {tenant['admin_key']}", "x-tenant-id": tenant["id"]}
    own = world.call("GET", "/api/admin/tenants", headers=theirs).json["data"]
    assert [one["id"] for one in own] == [tenant["id"]]
    assert own[0]["entitlements"]["step_types"] == ["STEP_TYPE_DATAFLOW"]
    draft = world.call("POST", DEFINITIONS, HELLO, headers=theirs)
    assert {item["code"] for item in draft.json["warnings"]} == {"ENTITLEMENT_REQUIRED"}
    second = world.call("POST", "/api/admin/api-keys", {"name": "second"}, headers=theirs)
    assert (second.status, second.codes) == (403, [("", "ENTITLEMENT_REQUIRED")])


def test_a_plan_is_changed_by_the_operator_only(world: ApiWorld) -> None:
    headers, at = operator(world), f"/api/admin/tenants/{world.tenant}"
    changes = {"entitlements": {"max_steps": 1}}
    assert world.call("PATCH", at, changes).codes == [("", "OPERATOR_REQUIRED")]
    assert world.call("POST", "/api/admin/tenants", {"name": "x"}).codes == [("", "OPERATOR_REQUIRED")]
    assert world.call("PATCH", at, changes, headers=headers).json["data"]["entitlements"]["max_steps"] == 1
    odd = world.call("PATCH", at, {"entitlements": {"step_types": ["loop"]}}, headers=headers)
    assert odd.codes == [("entitlements.step_types", "FIELD_INVALID")]


def test_another_tenants_id_answers_like_an_unknown_one(world: ApiWorld) -> None:
    operator(world)
    other = world.tenants.create("other").id
    unknown = other[:-4] + "beef"
    answers = [world.call("GET", f"/api/admin/tenants/{one}") for one in (other, unknown)]
    assert {answer.status for answer in answers} == {404}
    assert answers[0].json["errors"] == answers[1].json["errors"]


def test_nobody_gives_authority_that_they_do_not_have(world: ApiWorld) -> None:
    world.call("POST", "/api/environments", {"key": "prod"})
    body = {"name": "narrow", "roles": ["admin"], "environments_write": ["default"]}
    key = world.call("POST", "/api/admin/api-keys", body).json["data"]["key"]
    narrow: dict[str, str | None] = {"authorization": f"Bearer {key}"}
    for wider in (["*"], ["default", "prod"]):
        answer = world.call("POST", "/api/admin/api-keys", {**body, "environments_write": wider}, headers=narrow)
        assert (answer.status, answer.codes) == (403, [("environments_write", "ENVIRONMENT_NOT_WRITABLE")])
    assert world.call("POST", "/api/admin/api-keys", body, headers=narrow).status == 201


def test_a_key_needs_an_environment_that_is_there(world: ApiWorld) -> None:
    answer = world.call("POST", "/api/admin/api-keys", {"name": "k", "default_environment": "nowhere"})
    assert answer.codes == [("default_environment", "ENVIRONMENT_UNKNOWN")]


@pytest.mark.parametrize("reference", ["x:test:test", "%00", "ä", "a" * 300, "..", "I#x"])
def test_odd_references_are_unknown(world: ApiWorld, reference: str) -> None:
    for path in (f"/api/connections/{reference}", f"/api/environments/{reference}", f"/api/admin/tenants/{reference}"):
        assert world.call("GET", path).status == 404


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        ({"type": "stripe"}, "secrets.api_key", "this type needs it: "),
        (
            {"type": "http", "settings": {"base_url": "https://a.example.com", "nope": 1}},
            "settings.nope",
            "is not a setting of this type",
        ),
    ],
)
def test_what_is_wrong_with_a_connection_is_said_of_its_type(
    world: ApiWorld, body: dict[str, Any], field: str, said: str
) -> None:
    answer = world.call("POST", "/api/connections", {"slug": "odd", **body})
    told = {item["field"]: item["message"] for item in answer.json["errors"]}
    assert answer.status == 400
    assert told[field].startswith(said)
