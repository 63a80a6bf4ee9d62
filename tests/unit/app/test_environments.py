"""Environments and variables: who changes them, and what runs and definitions see of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.app.refusal import refused
from tests.unit.app.world import HELLO, World

from ductor.app.admission import TriggerRequest
from ductor.app.entitlements import Entitlements
from ductor.app.environments import EnvironmentChanges
from ductor.model.errors import ErrorCode
from ductor.ports import Conflict, Op


def narrow(world: World, *environments: str) -> Any:
    return msgspec.structs.replace(world.caller, environments_write=frozenset(environments))


def make(world: World, key: str = "prod", **changes: Any) -> None:
    world.admin.environments.create(world.caller, key, EnvironmentChanges(**changes))


def change(world: World, key: str, **changes: Any) -> None:
    world.admin.environments.update(world.caller, key, EnvironmentChanges(**changes))


def variables(world: World, run_id: str) -> Any:
    return world.payloads.load(run_id, world.header(run_id).origin.variables)


def start(world: World, definition_id: str, **fields: Any) -> str:
    return world.triggers.trigger(world.caller, definition_id, TriggerRequest(**fields)).run_id


def test_a_new_environment_is_open(world: World) -> None:
    make(world)
    found = world.admin.environments.get(world.caller, "prod")
    assert found.open_to_changes
    assert [one.key for one in world.admin.environments.list(world.caller)] == ["default", "prod"]


def test_a_key_is_taken_once(world: World) -> None:
    make(world)
    with refused(ErrorCode.ALREADY_EXISTS, "ENVIRONMENT_EXISTS"):
        make(world, title="again")


@pytest.mark.parametrize("key", ["", "Prod", "1a", "a" * 64, "a b", "prod\n"])
def test_odd_keys_are_refused(world: World, key: str) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT, "FIELD_INVALID", field="key"):
        make(world, key)


def test_a_change_keeps_what_it_does_not_name(world: World) -> None:
    make(world, title="Production", connections={"crm": "hubspot_main"})
    change(world, "prod", direct_mutation=False)
    found = world.admin.environments.get(world.caller, "prod")
    assert (found.title, found.connections, found.direct_mutation) == ("Production", {"crm": "hubspot_main"}, False)


def test_two_changes_at_once_both_stay(world: World) -> None:
    make(world)
    write = world.table.write
    raced: list[bool] = []

    def racing(ops: tuple[Op, ...]) -> Conflict | None:
        if not raced:
            raced.append(True)
            world.admin.variables.set(world.caller, "prod", "region", "eu")
        return write(ops)

    world.admin.environments._table = type("Racing", (), {"get": world.table.get, "write": staticmethod(racing)})()
    change(world, "prod", title="Production")
    found = world.admin.environments.get(world.caller, "prod")
    assert (found.title, found.variables) == ("Production", {"region": "eu"})


def test_the_default_environment_stays_on(world: World) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT, "FIELD_INVALID", field="active"):
        change(world, "default", active=False)


def test_only_a_key_with_authority_changes_an_environment(world: World) -> None:
    make(world)
    with refused(ErrorCode.PERMISSION_DENIED, "ENVIRONMENT_NOT_WRITABLE"):
        world.admin.environments.update(narrow(world, "default"), "prod", EnvironmentChanges(title="x"))
    with refused(ErrorCode.PERMISSION_DENIED, "ENVIRONMENT_NOT_WRITABLE"):
        world.admin.variables.set(narrow(world, "default"), "prod", "a", 1)


def test_another_tenants_environment_is_unknown(world: World) -> None:
    make(world)
    with refused(ErrorCode.NOT_FOUND, "ENVIRONMENT_UNKNOWN"):
        world.admin.environments.get(world.stranger(), "prod")


def test_the_plan_limits_environments(world: World) -> None:
    world.admin.entitlements.set(world.tenant, Entitlements(max_environments=2))
    make(world, "one")
    with refused(ErrorCode.PERMISSION_DENIED, "ENTITLEMENT_REQUIRED"):
        make(world, "two")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"active": False}, "ENVIRONMENT_NOT_WRITABLE"),
        ({"mutable": False}, "ENVIRONMENT_NOT_WRITABLE"),
        ({"direct_mutation": False}, "ENVIRONMENT_NOT_WRITABLE"),
        ({"requires_promotion": True}, "ENVIRONMENT_NOT_WRITABLE"),
    ],
)
def test_drafts_are_put_only_into_open_environments(world: World, changes: dict[str, Any], code: str) -> None:
    make(world, **changes)
    with refused(ErrorCode.INVALID_ARGUMENT, code, field="environment"):
        world.definitions.create(world.caller, {**HELLO, "environment": "prod"})


def test_publication_checks_the_environment_again(world: World) -> None:
    make(world)
    draft = world.definitions.create(world.caller, {**HELLO, "environment": "prod"}).definition
    change(world, "prod", requires_promotion=True)
    with refused(ErrorCode.INVALID_ARGUMENT, "ENVIRONMENT_NOT_WRITABLE"):
        world.definitions.publish(world.caller, draft.id)


def test_moving_a_draft_takes_authority_in_both(world: World) -> None:
    make(world)
    draft = world.definitions.create(world.caller, HELLO).definition
    for allowed in ("default", "prod"):
        with refused(ErrorCode.PERMISSION_DENIED, "ENVIRONMENT_NOT_WRITABLE"):
            moved = {"expected_draft_revision": 1, "environment": "prod"}
            world.definitions.edit(narrow(world, allowed), draft.id, moved)
    world.definitions.edit(
        narrow(world, "default", "prod"), draft.id, {"expected_draft_revision": 1, "environment": "prod"}
    )


def test_runs_read_the_environments_variables_over_the_defaults(world: World) -> None:
    document = {**HELLO, "variables": {"region": "us", "plain": 1, "open": {"default": "d", "overridable": True}}}
    definition_id = world.published(document)
    for name, value in (("region", "eu"), ("open", "e"), ("extra", [1])):
        world.admin.variables.set(world.caller, "default", name, value)
    assert variables(world, start(world, definition_id)) == {"region": "eu", "plain": 1, "open": "e", "extra": [1]}
    overridden = start(world, definition_id, variables={"open": "t"})
    assert variables(world, overridden)["open"] == "t"


def test_a_trigger_sets_no_variable_of_the_environment_alone(world: World) -> None:
    world.admin.variables.set(world.caller, "default", "extra", 1)
    with refused(ErrorCode.INVALID_ARGUMENT, "VARIABLE_UNKNOWN"):
        start(world, world.published(), variables={"extra": 2})


def test_variables_are_frozen_at_admission(world: World) -> None:
    world.admin.variables.set(world.caller, "default", "region", "eu")
    run_id = start(world, world.published())
    world.admin.variables.set(world.caller, "default", "region", "us")
    assert variables(world, run_id) == {"region": "eu"}


def test_a_variable_is_removed_once(world: World) -> None:
    world.admin.variables.set(world.caller, "default", "region", "eu")
    world.admin.variables.unset(world.caller, "default", "region")
    assert world.admin.variables.list(world.caller, "default") == ()
    with refused(ErrorCode.NOT_FOUND, "VARIABLE_UNKNOWN"):
        world.admin.variables.unset(world.caller, "default", "region")


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a" * 65])
def test_odd_variable_names_are_refused(world: World, name: str) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT, "FIELD_INVALID", field="name"):
        world.admin.variables.set(world.caller, "default", name, 1)


def test_variables_stay_small(world: World) -> None:
    world.admin.variables.set(world.caller, "default", "a", "x" * 60_000)
    with refused(ErrorCode.INVALID_ARGUMENT, "FIELD_INVALID", field="value"):
        world.admin.variables.set(world.caller, "default", "b", "x" * 6_000)


def test_one_name_of_the_map_is_changed_alone(world: World) -> None:
    make(world, connections={"crm": "a", "pay": "b"})
    change(world, "prod", connections={"crm": None, "chat": "c"})
    assert world.admin.environments.get(world.caller, "prod").connections == {"pay": "b", "chat": "c"}
