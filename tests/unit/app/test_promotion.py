"""Promotion: the same content in another environment, by the same rules as a publication."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.app.refusal import refused
from tests.unit.app.world import HELLO, World

from ductor.app.admission import TriggerRequest
from ductor.app.connections import ConnectionChanges
from ductor.app.environments import EnvironmentChanges
from ductor.model.enums import DefinitionStatus
from ductor.model.errors import ErrorCode

CALL = {
    "ref": "call",
    "type": "action",
    "action": "core.echo",
    "connection_ref": "crm",
    "connection_ref_mode": "environment",
}


def make(world: World, key: str = "prod", **changes: Any) -> None:
    world.admin.environments.create(world.caller, key, EnvironmentChanges(requires_promotion=True, **changes))


def test_a_version_is_promoted_unchanged(world: World) -> None:
    make(world)
    version = world.published()
    done = world.admin.promotions.promote(world.caller, version, "prod")
    assert (done.published.version, done.published.status) == (2, DefinitionStatus.PUBLISHED)
    assert done.published.document["environment"] == "prod"
    assert {**done.published.document, "environment": "default"} == world.definitions.get(
        world.caller, version
    ).document


def test_runs_of_the_promoted_version_are_runs_of_its_environment(world: World) -> None:
    make(world)
    promoted = world.admin.promotions.promote(world.caller, world.published(), "prod").published.id
    run_id = world.triggers.trigger(world.caller, promoted, TriggerRequest()).run_id
    assert world.header(run_id).origin.environment == "prod"


def test_the_family_knows_the_newest_version_of_each_environment(world: World) -> None:
    make(world)
    version = world.published()
    promoted = world.admin.promotions.promote(world.caller, version, "prod").published.id
    family = world.library.family(world.tenant, "hello_world")[0]
    assert (family.newest_in, family.newest_id, family.max_version) == (
        {"default": version, "prod": promoted},
        promoted,
        2,
    )


def test_only_published_versions_are_promoted(world: World) -> None:
    make(world)
    draft = world.definitions.create(world.caller, HELLO).definition.id
    with refused(ErrorCode.FAILED_PRECONDITION, "DEFINITION_NOT_PUBLISHED"):
        world.admin.promotions.promote(world.caller, draft, "prod")
    version = world.definitions.publish(world.caller, draft).published.id
    world.definitions.archive(world.caller, version)
    with refused(ErrorCode.FAILED_PRECONDITION, "DEFINITION_ARCHIVED"):
        world.admin.promotions.promote(world.caller, version, "prod")


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"mutable": False}, "ENVIRONMENT_NOT_WRITABLE"), ({"active": False}, "ENVIRONMENT_UNKNOWN")],
)
def test_a_closed_environment_takes_no_promotion(world: World, changes: dict[str, Any], code: str) -> None:
    make(world, **changes)
    with refused(ErrorCode.INVALID_ARGUMENT, code, field="environment"):
        world.admin.promotions.promote(world.caller, world.published(), "prod")


def test_an_unknown_environment_is_told(world: World) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT, "ENVIRONMENT_UNKNOWN"):
        world.admin.promotions.promote(world.caller, world.published(), "nowhere")


def test_promotion_takes_authority_over_the_target(world: World) -> None:
    make(world)
    version = world.published()
    narrow = msgspec.structs.replace(world.caller, environments_write=frozenset({"default"}))
    with refused(ErrorCode.PERMISSION_DENIED, "ENVIRONMENT_NOT_WRITABLE"):
        world.admin.promotions.promote(narrow, version, "prod")


def test_another_tenants_version_is_unknown(world: World) -> None:
    with refused(ErrorCode.NOT_FOUND, "DEFINITION_NOT_FOUND"):
        world.admin.promotions.promote(world.stranger(), world.published(), "default")


def test_a_version_is_judged_by_its_target(world: World) -> None:
    make(world)
    changes = ConnectionChanges(secrets={"access_token": "token-1"})
    world.admin.connections.create(world.caller, "hub", "hubspot", changes)
    world.admin.environments.update(world.caller, "default", EnvironmentChanges(connections={"crm": "hub"}))
    version = world.published({"family_slug": "calls", "steps": [CALL]})
    with refused(ErrorCode.INVALID_ARGUMENT, "CONNECTION_UNKNOWN", field="call.connection_ref"):
        world.admin.promotions.promote(world.caller, version, "prod")
    world.admin.environments.update(world.caller, "prod", EnvironmentChanges(connections={"crm": "hub"}))
    world.admin.promotions.promote(world.caller, version, "prod")


def test_a_copy_of_a_promoted_version_goes_where_drafts_are_allowed(world: World) -> None:
    make(world)
    version = world.published()
    draft = world.library.family(world.tenant, "hello_world")[0].draft_id
    world.definitions.delete_draft(world.caller, draft)
    promoted = world.admin.promotions.promote(world.caller, version, "prod").published.id
    copy = world.definitions.duplicate(world.caller, promoted, "copy")
    assert copy.definition.document["environment"] == "default"
