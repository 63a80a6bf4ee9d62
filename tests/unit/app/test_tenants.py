"""Tenants and the first start."""

from __future__ import annotations

from tests.unit.app.world import World

from ductor.app.access import NON_ADMIN_SCOPES, Scope


def test_the_first_start_makes_one_tenant_with_a_key_and_an_admin_key(world: World) -> None:
    first = world.tenants.first_start(world.keys)
    assert first.key is not None
    assert first.admin_key is not None
    caller = world.keys.authenticate(f"Bearer {first.key.plaintext}")
    assert caller.tenant == first.tenant
    assert caller.scopes == NON_ADMIN_SCOPES
    assert caller.roles == {"operator"}
    assert caller.default_environment == "default"
    assert Scope.ADMIN in world.keys.authenticate(f"Bearer {first.admin_key.plaintext}").scopes


def test_a_second_start_finds_the_first_ones_tenant(world: World) -> None:
    first = world.tenants.first_start(world.keys)
    second = world.tenants.first_start(world.keys)
    assert (second.tenant, second.key, second.admin_key) == (first.tenant, None, None)


def test_lost_keys_of_the_first_start_can_be_issued_anew(world: World) -> None:
    first = world.tenants.first_start(world.keys)
    again = world.tenants.first_start(world.keys, reissue=True)
    assert again.key is not None
    assert world.keys.authenticate(f"Bearer {again.key.plaintext}").tenant == first.tenant


def test_every_tenant_has_its_own_redaction_key_for_ever(world: World) -> None:
    other = world.tenants.create("other").id
    assert world.tenants.redaction_key(other) == world.tenants.redaction_key(other)
    assert world.tenants.redaction_key(other) != world.tenants.redaction_key(world.tenant)


def test_every_tenant_has_an_open_default_environment(world: World) -> None:
    environment = world.tenants.environment(world.tenant, "default")
    assert environment is not None
    assert environment.open_to_changes
    assert world.tenants.environment(world.tenant, "production") is None


def test_all_tenants_are_listed(world: World) -> None:
    world.clock.advance(1)
    other = world.tenants.create("other")
    assert [tenant.id for tenant in world.tenants.list()] == [world.tenant, other.id]
