"""API keys and callers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.app.world import World

from ductor.app.access import ROLE_SCOPES, Scope, require, require_tenant
from ductor.app.keys import CACHE_MS, LAST_USED_STEP_MS, Keys
from ductor.model.errors import ErrorCode, RefusedError
from ductor.ports import Item, Put


def code_of(error: pytest.ExceptionInfo[RefusedError]) -> str:
    return error.value.violations[0].code


def test_an_issued_key_names_its_tenant_scopes_and_roles(world: World) -> None:
    issued = world.keys.issue(world.tenant, "ci", [Scope.WORKFLOW_READ], ["operator", "finance"])
    caller = world.keys.authenticate(f"Bearer {issued.plaintext}")
    assert (caller.tenant, caller.key_id) == (world.tenant, issued.id)
    assert caller.roles == {"operator", "finance"}
    assert caller.scopes == ROLE_SCOPES["operator"]


def test_the_secret_is_not_stored(world: World) -> None:
    issued = world.keys.issue(world.tenant, "ci", ["workflow:read"])
    secret = issued.plaintext.split("_", 2)[2]
    item = world.table.get(f"K#{issued.id}", "KEY")
    assert item is not None
    assert secret.encode() not in item.body


@pytest.mark.parametrize(
    ("header", "code"),
    [
        (None, "KEY_MISSING"),
        ("", "KEY_MISSING"),
        ("Bearer ", "KEY_INVALID"),
        ("Basic abc", "KEY_INVALID"),
        ("Bearer dk_", "KEY_INVALID"),
        ("Bearer dk_abc_", "KEY_INVALID"),
        ("Bearer dk_abc_def", "KEY_INVALID"),
        ("Bearer dk_äöü_def", "KEY_INVALID"),
        ("Bearer dk_abc_" + "x" * 100_000, "KEY_INVALID"),
        ("Bearer dk_abc_\ud800", "KEY_INVALID"),
    ],
)
def test_what_is_no_key_is_unauthenticated(world: World, header: str | None, code: str) -> None:
    with pytest.raises(RefusedError) as error:
        world.keys.authenticate(header)
    assert error.value.error_code is ErrorCode.UNAUTHENTICATED
    assert code_of(error) == code


def test_a_wrong_secret_is_refused_also_while_the_right_one_is_remembered(world: World) -> None:
    issued = world.keys.issue(world.tenant, "ci", ["workflow:read"])
    world.keys.authenticate(f"Bearer {issued.plaintext}")
    with pytest.raises(RefusedError):
        world.keys.authenticate(f"Bearer {issued.plaintext}x")


def test_a_revoked_key_is_refused_at_once_here_and_within_a_minute_elsewhere(world: World) -> None:
    elsewhere = Keys(world.table, world.clock, world.ids)
    issued = world.keys.issue(world.tenant, "ci", ["workflow:read"])
    header = f"Bearer {issued.plaintext}"
    world.keys.authenticate(header)
    elsewhere.authenticate(header)
    world.keys.revoke(world.tenant, issued.id)
    with pytest.raises(RefusedError) as error:
        world.keys.authenticate(header)
    assert code_of(error) == "KEY_REVOKED"
    assert elsewhere.authenticate(header).key_id == issued.id
    world.clock.advance(CACHE_MS)
    with pytest.raises(RefusedError):
        elsewhere.authenticate(header)


def test_a_key_ends_when_it_expires_also_while_it_is_remembered(world: World) -> None:
    issued = world.keys.issue(world.tenant, "ci", ["workflow:read"], expires_at=world.clock.now_ms() + 5_000)
    header = f"Bearer {issued.plaintext}"
    assert world.keys.authenticate(header).key_id == issued.id
    world.clock.advance(5_000)
    with pytest.raises(RefusedError) as error:
        world.keys.authenticate(header)
    assert code_of(error) == "KEY_EXPIRED"


def test_another_tenants_key_cannot_be_revoked_and_reads_as_unknown(world: World) -> None:
    issued = world.keys.issue(world.tenant, "ci", ["workflow:read"])
    other = world.tenants.create("other").id
    for tenant, key_id in ((other, issued.id), (other, "unknown")):
        with pytest.raises(RefusedError) as error:
            world.keys.revoke(tenant, key_id)
        assert (error.value.error_code, code_of(error)) == (ErrorCode.NOT_FOUND, "KEY_NOT_FOUND")


def test_a_verified_key_costs_no_read(world: World) -> None:
    issued = world.keys.issue(world.tenant, "ci", ["workflow:read"])
    world.keys.authenticate(f"Bearer {issued.plaintext}")
    stored = world.table.get(f"K#{issued.id}", "KEY")
    assert stored is not None
    world.table.write([Put(Item(pk=stored.pk, sk=stored.sk, body=b"not even JSON"))])
    assert world.keys.authenticate(f"Bearer {issued.plaintext}").key_id == issued.id


def test_last_used_moves_by_the_hour(world: World) -> None:
    keys = Keys(world.table, world.clock, world.ids, cache_ms=0)
    issued = keys.issue(world.tenant, "ci", ["workflow:read"])
    first = world.clock.now_ms()
    keys.authenticate(f"Bearer {issued.plaintext}")
    world.clock.advance(LAST_USED_STEP_MS - 1)
    keys.authenticate(f"Bearer {issued.plaintext}")
    (info,) = [key for key in keys.list(world.tenant) if key.id == issued.id]
    assert info.last_used_at == first
    world.clock.advance(1)
    keys.authenticate(f"Bearer {issued.plaintext}")
    (info,) = [key for key in keys.list(world.tenant) if key.id == issued.id]
    assert info.last_used_at == first + LAST_USED_STEP_MS


def test_a_list_has_only_the_tenants_own_keys(world: World) -> None:
    other = world.tenants.create("other").id
    mine = [world.keys.issue(other, name, ["workflow:read"]) for name in ("a", "b")]
    assert [key.id for key in world.keys.list(other)] == [key.id for key in mine]


def test_a_missing_scope_is_named(world: World) -> None:
    issued = world.keys.issue(world.tenant, "viewer", roles=["viewer"])
    caller = world.keys.authenticate(f"bearer {issued.plaintext}")
    require(caller, Scope.WORKFLOW_READ)
    with pytest.raises(RefusedError) as error:
        require(caller, Scope.RUN_WRITE)
    assert (error.value.error_code, code_of(error)) == (ErrorCode.PERMISSION_DENIED, "SCOPE_MISSING")
    assert "workflow_run:write" in error.value.message


def test_the_tenant_header_must_be_the_keys_own(world: World) -> None:
    require_tenant(world.caller, world.tenant)
    with pytest.raises(RefusedError) as error:
        require_tenant(world.caller, None)
    assert (error.value.error_code, code_of(error)) == (ErrorCode.INVALID_ARGUMENT, "TENANT_REQUIRED")
    with pytest.raises(RefusedError) as error:
        require_tenant(world.caller, "other")
    assert (error.value.error_code, code_of(error)) == (ErrorCode.PERMISSION_DENIED, "TENANT_MISMATCH")


@pytest.mark.parametrize(
    ("more", "field", "code"),
    [
        ({}, "scopes", "FIELD_REQUIRED"),
        ({"roles": ["finance"]}, "scopes", "FIELD_REQUIRED"),
        ({"roles": ["viewer"], "expires_at": 1}, "expires_at", "FIELD_INVALID"),
    ],
)
def test_a_key_that_nobody_could_use_is_not_issued(world: World, more: dict[str, Any], field: str, code: str) -> None:
    before = world.keys.list(world.tenant)
    with pytest.raises(RefusedError) as error:
        world.keys.issue(world.tenant, "ci", **more)
    assert [(fault.field, fault.code) for fault in error.value.violations] == [(field, code)]
    assert world.keys.list(world.tenant) == before
