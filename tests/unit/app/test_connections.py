"""Connections: what is stored where, who sees what, and what a step gets in the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.actions.web import Web
from tests.unit.app.refusal import refused
from tests.unit.app.world import World

from ductor.actions.errors import ActionError
from ductor.app.connection_rows import ConnectionRow
from ductor.app.connections import ConnectionChanges
from ductor.app.entitlements import Entitlements
from ductor.app.environments import EnvironmentChanges
from ductor.model.attempt import AttemptTask
from ductor.model.errors import ErrorCode
from ductor.model.payload import NULL
from ductor.ports import SecretLostError

KEY = "sk_live_abcdef"


def create(world: World, slug: str = "main", kind: str = "stripe", **changes: Any) -> ConnectionRow:
    given = {"secrets": {"api_key": KEY}, **changes}
    return world.admin.connections.create(world.caller, slug, kind, ConnectionChanges(**given))


def update(world: World, ref: str = "main", **changes: Any) -> ConnectionRow:
    return world.admin.connections.update(world.caller, ref, ConnectionChanges(**changes))


def task(world: World, ref: str, mode: str = "direct", environment: str = "default") -> AttemptTask:
    return AttemptTask(
        run_id="r",
        tenant=world.tenant,
        node="n",
        attempt=1,
        generation=1,
        action="a",
        input=NULL,
        connection_ref=ref,
        connection_ref_mode=mode,
        environment=environment,
    )


def resolved(world: World, ref: str, mode: str = "direct", environment: str = "default") -> str:
    """The secret that a step with this reference gets."""
    found = world.admin.connecting.resolve(task(world, ref, mode, environment))
    assert found is not None
    return found.secret("api_key").reveal()


def unknown(world: World, ref: str, mode: str = "direct", environment: str = "default") -> bool:
    with pytest.raises(ActionError) as raised:
        world.admin.connecting.resolve(task(world, ref, mode, environment))
    return raised.value.code == "CONNECTION_UNKNOWN" and not raised.value.retryable


def test_the_secret_stands_in_no_row(world: World) -> None:
    made = create(world, settings={"account": "acct_1"})
    page = world.table.query(f"C#{world.tenant}")
    assert len(page.items) == 2
    assert all(KEY.encode() not in item.body for item in page.items)
    assert list(world.secrets.texts.values()) == [KEY]
    assert set(made.secrets) == {"api_key"}


def test_a_step_finds_it_by_slug_and_by_id(world: World) -> None:
    made = create(world)
    assert resolved(world, "main") == resolved(world, made.id) == KEY


def test_a_step_finds_it_by_the_name_that_its_environment_maps(world: World) -> None:
    create(world)
    create(world, "test_one", secrets={"api_key": "sk_test_123"})
    world.admin.environments.create(world.caller, "test", EnvironmentChanges(connections={"stripe": "test_one"}))
    world.admin.environments.update(world.caller, "default", EnvironmentChanges(connections={"stripe": "main"}))
    assert resolved(world, "stripe", "environment") == KEY
    assert resolved(world, "stripe", "environment", "test") == "sk_test_123"
    assert unknown(world, "main", "environment")


def test_a_step_without_a_reference_gets_none(world: World) -> None:
    assert world.admin.connecting.resolve(task(world, "")) is None


@pytest.mark.parametrize("ref", ["other", "x" * 201, "mäin", "main\n", " main"])
def test_what_is_not_there_is_unknown(world: World, ref: str) -> None:
    create(world)
    assert unknown(world, ref)


def test_a_reference_that_is_no_name_is_not_repeated(world: World) -> None:
    with pytest.raises(ActionError) as raised:
        world.admin.connecting.resolve(task(world, "ada@example.com"))
    assert "ada" not in raised.value.message


def test_another_tenants_connection_is_unknown(world: World) -> None:
    made = create(world)
    stranger = world.stranger()
    for ref in ("main", made.id):
        with refused(ErrorCode.NOT_FOUND, "CONNECTION_UNKNOWN"):
            world.admin.connections.get(stranger, ref)
    assert world.admin.connecting.find(stranger.tenant, "default", "direct", made.id) is None


def test_an_inactive_connection_is_unknown_to_steps(world: World) -> None:
    create(world)
    update(world, active=False)
    assert unknown(world, "main")
    update(world, active=True)
    assert resolved(world, "main") == KEY


def test_a_connection_serves_only_its_environments(world: World) -> None:
    create(world, environments=("prod",))
    assert unknown(world, "main")
    assert resolved(world, "main", environment="prod") == KEY


def test_a_new_secret_replaces_the_old_one_everywhere(world: World) -> None:
    create(world)
    update(world, secrets={"api_key": "sk_live_second"})
    assert resolved(world, "main") == "sk_live_second"
    assert list(world.secrets.texts.values()) == ["sk_live_second"]


def test_a_step_that_reads_while_the_secret_is_replaced_gets_the_new_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(world)
    get, raced = world.secrets.get, list[str]()

    def racing(name: str) -> str | None:
        if not raced:
            raced.append(name)
            update(world, secrets={"api_key": "sk_live_second"})
        return get(name)

    monkeypatch.setattr(world.secrets, "get", racing)
    assert resolved(world, "main") == "sk_live_second"


def test_a_change_keeps_what_it_does_not_name(world: World) -> None:
    create(world, settings={"account": "acct_1"}, title="Main")
    update(world, title="Other")
    update(world, settings={"account": None})
    found = world.admin.connections.get(world.caller, "main")
    assert (found.title, found.settings, resolved(world, "main")) == ("Other", {}, KEY)


def test_another_base_url_takes_the_secrets_anew(world: World) -> None:
    create(world)
    with refused(ErrorCode.INVALID_ARGUMENT, "FIELD_REQUIRED", field="secrets.api_key"):
        update(world, settings={"base_url": "https://evil.test"})
    update(world, settings={"base_url": "https://proxy.test"}, secrets={"api_key": "sk_live_second"})
    assert resolved(world, "main") == "sk_live_second"


def test_deleting_removes_the_secret(world: World) -> None:
    made = create(world)
    world.admin.connections.delete(world.caller, made.id)
    assert world.secrets.texts == {}
    assert world.table.query(f"C#{world.tenant}").items == ()
    assert unknown(world, "main")


def test_a_slug_is_taken_once_and_the_loser_leaves_nothing(world: World) -> None:
    create(world)
    with refused(ErrorCode.ALREADY_EXISTS, "CONNECTION_EXISTS"):
        create(world, secrets={"api_key": "sk_live_second"})
    assert list(world.secrets.texts.values()) == [KEY]


@pytest.mark.parametrize("slug", ["", "Main", "1a", "a" * 64, "a b", "abcdef01-2345-6789-abcd-ef0123456789", "types"])
def test_odd_slugs_are_refused(world: World, slug: str) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT, "FIELD_INVALID", field="slug"):
        create(world, slug)


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"secrets": None}, "FIELD_REQUIRED", "secrets.api_key"),
        ({"secrets": {"api_key": None}}, "FIELD_REQUIRED", "secrets.api_key"),
        ({"secrets": {"api_key": "short"}}, "FIELD_INVALID", "secrets.api_key"),
        ({"secrets": {"api_key": "x" * 4_001}}, "FIELD_INVALID", "secrets.api_key"),
        ({"secrets": {"api_key": KEY, "token": "123456"}}, "FIELD_UNKNOWN", "secrets.token"),
        ({"settings": {"acount": "x"}}, "FIELD_INVALID", "settings.acount"),
        ({"settings": {"base_url": "ftp://x"}}, "FIELD_INVALID", "settings.base_url"),
        ({"settings": {"base_url": "https://user:pw@x"}}, "FIELD_INVALID", "settings.base_url"),
        ({"settings": {"base_url": "https://x:99999"}}, "FIELD_INVALID", "settings.base_url"),
        ({"environments": ()}, "FIELD_INVALID", "environments"),
        ({"title": "x" * 201}, "FIELD_INVALID", "title"),
    ],
)
def test_what_does_not_fit_is_refused(world: World, changes: Mapping[str, Any], code: str, field: str) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT, code, field=field) as found:
        create(world, **changes)
    assert KEY not in str(found[0].violations)
    assert world.secrets.texts == {}


def test_a_type_needs_to_exist(world: World) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT, "FIELD_INVALID", field="type"):
        create(world, kind="strype")


def test_a_custom_connection_takes_any_names(world: World) -> None:
    create(world, kind="custom", settings={"region": {"deep": 1}}, secrets={"client_secret": "123456"})
    found = world.admin.connecting.resolve(task(world, "main"))
    assert found is not None
    assert (found.settings, found.secret("client_secret").reveal()) == ({"region": {"deep": 1}}, "123456")


def test_an_account_of_aws_is_a_role_or_a_key(world: World) -> None:
    role = {"role_arn": "arn:aws:iam::123456789012:role/partner", "region": "eu-west-1"}
    assert create(world, "partner", kind="aws", settings=role, secrets={}).settings == role
    key = {"access_key_id": "AKIAIOSFODNN7EXAMPLE"}
    assert create(world, "keys", kind="aws", settings=key, secrets={"secret_access_key": "wJalrXUtnFEMI"}).secrets
    for wrong in ({"role_arn": "partner"}, {"access_key_id": "secret/text"}, {"base_url": "https://x.test"}):
        with refused(ErrorCode.INVALID_ARGUMENT, "FIELD_INVALID", field=f"settings.{next(iter(wrong))}"):
            create(world, "odd", kind="aws", settings=wrong, secrets={})


def test_the_plan_limits_connections(world: World) -> None:
    world.admin.entitlements.set(world.tenant, Entitlements(max_connections=1))
    create(world)
    with refused(ErrorCode.PERMISSION_DENIED, "ENTITLEMENT_REQUIRED"):
        create(world, "second")


def test_only_administrators_see_connections(world: World) -> None:
    narrow = world.keys.authenticate(f"Bearer {world.keys.issue(world.tenant, 'k', roles=['author']).plaintext}")
    with refused(ErrorCode.PERMISSION_DENIED, "SCOPE_MISSING"):
        world.admin.connections.list(narrow)


def test_secrets_that_cannot_be_opened_are_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    create(world)

    def lost(*args: str) -> str:
        raise SecretLostError("secrets.key is gone")

    monkeypatch.setattr(world.secrets, "get", lost)
    monkeypatch.setattr(world.secrets, "put", lost)
    with pytest.raises(ActionError) as raised:
        world.admin.connecting.resolve(task(world, "main"))
    assert (raised.value.code, raised.value.retryable) == ("CONNECTION_UNREADABLE", False)
    with refused(ErrorCode.FAILED_PRECONDITION, "SECRETS_LOCKED"):
        create(world, "second")


def test_secrets_that_are_gone_are_told(world: World) -> None:
    create(world)
    world.secrets.texts.clear()
    with pytest.raises(ActionError) as raised:
        world.admin.connecting.resolve(task(world, "main"))
    assert raised.value.code == "CONNECTION_UNREADABLE"
    update(world, secrets={"api_key": "sk_live_second"})
    assert resolved(world, "main") == "sk_live_second"


def test_the_test_call_says_whether_the_secret_works(world: World) -> None:
    with Web() as web:
        create(world, settings={"base_url": f"http://127.0.0.1:{web.port}"})
        web.on("/v1/balance", 200, b"{}")
        assert world.admin.connecting.test(world.caller, "main").ok
        assert web.seen[0].headers["authorization"] == f"Bearer {KEY}"
        web.on("/v1/balance", 401, b'{"error": {"message": "Invalid API Key"}}', content_type="application/json")
        failed = world.admin.connecting.test(world.caller, "main")
        assert (failed.ok, failed.code, failed.message) == (False, "HTTP_401", "Stripe answered 401: Invalid API Key")


def test_a_type_without_a_test_says_so(world: World) -> None:
    create(world, kind="custom", secrets={})
    with refused(ErrorCode.FAILED_PRECONDITION, "CONNECTION_TEST_UNSUPPORTED"):
        world.admin.connecting.test(world.caller, "main")


@pytest.mark.parametrize(
    ("step", "codes"),
    [
        ({"connection_ref": "main"}, set()),
        ({"connection_ref": "${{ VARS.c }}"}, set()),
        ({"connection_ref": "stripe", "connection_ref_mode": "environment"}, set()),
        ({"connection_ref": "nobody"}, {"CONNECTION_UNKNOWN"}),
        ({"connection_ref": "main", "connection_ref_mode": "environment"}, {"CONNECTION_UNKNOWN"}),
        ({"connection_ref": "only_prod"}, {"CONNECTION_UNKNOWN"}),
    ],
)
def test_a_definition_is_checked_against_real_connections(world: World, step: dict[str, Any], codes: set[str]) -> None:
    create(world)
    create(world, "only_prod", environments=("prod",))
    world.admin.environments.update(world.caller, "default", EnvironmentChanges(connections={"stripe": "main"}))
    call = {"ref": "call", "type": "action", "action": "core.echo", **step}
    saved = world.definitions.create(world.caller, {"family_slug": "calls", "steps": [call]})
    assert {warning.code for warning in saved.warnings} == codes
