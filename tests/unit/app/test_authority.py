"""Keys that are bound to environments: what they see, change and steer, and what is hidden from them."""

from __future__ import annotations

import msgspec
import pytest
from tests.unit.app.refusal import refused
from tests.unit.app.world import HELLO, World

from ductor.app.access import Caller
from ductor.app.admission import TriggerRequest
from ductor.app.environments import EnvironmentChanges
from ductor.app.listing import DefinitionFilter
from ductor.app.run_filter import RunFilter
from ductor.model.errors import ErrorCode


@pytest.fixture
def prod(world: World) -> tuple[str, str]:
    """A version in the environment `prod`, and a run of it."""
    world.admin.environments.create(world.caller, "prod", EnvironmentChanges())
    definition_id = world.published({**HELLO, "family_slug": "in_prod", "environment": "prod"})
    return definition_id, world.triggers.trigger(world.caller, definition_id, TriggerRequest()).run_id


def bound(world: World, *, read: str, write: str) -> Caller:
    return msgspec.structs.replace(
        world.caller, environments_read=frozenset({read}), environments_write=frozenset({write})
    )


def test_what_a_key_may_not_read_does_not_exist_for_it(world: World, prod: tuple[str, str]) -> None:
    caller = bound(world, read="default", write="default")
    with refused(ErrorCode.NOT_FOUND, "DEFINITION_NOT_FOUND"):
        world.definitions.get(caller, prod[0])
    with refused(ErrorCode.NOT_FOUND, "DEFINITION_NOT_FOUND"):
        world.definitions.validate(caller, prod[0])
    with refused(ErrorCode.NOT_FOUND, "DEFINITION_NOT_FOUND"):
        world.definitions.duplicate(caller, prod[0], "copy")
    with refused(ErrorCode.NOT_FOUND, "RUN_NOT_FOUND"):
        world.runs.summary(caller, prod[1])
    with refused(ErrorCode.NOT_FOUND, "RUN_NOT_FOUND"):
        world.runs.snapshot(caller, prod[1])
    assert world.definitions.list(caller, DefinitionFilter(), None, None).items == ()
    assert world.runs.list_runs(caller, RunFilter(), None, None).items == ()


def test_what_a_key_may_read_it_sees(world: World, prod: tuple[str, str]) -> None:
    for caller in (bound(world, read="prod", write="default"), bound(world, read="default", write="prod")):
        assert world.definitions.get(caller, prod[0]).id == prod[0]
        assert world.runs.summary(caller, prod[1]).run_id == prod[1]
        assert len(world.definitions.list(caller, DefinitionFilter(), None, None).items) == 2
        assert len(world.runs.list_runs(caller, RunFilter(), None, None).items) == 1


def test_a_key_changes_nothing_where_it_only_reads(world: World, prod: tuple[str, str]) -> None:
    caller = bound(world, read="prod", write="default")
    draft = world.library.family(world.tenant, "in_prod")[0].draft_id
    with refused(ErrorCode.PERMISSION_DENIED, "ENVIRONMENT_NOT_WRITABLE"):
        world.definitions.archive(caller, prod[0])
    with refused(ErrorCode.PERMISSION_DENIED, "ENVIRONMENT_NOT_WRITABLE"):
        world.definitions.delete_draft(caller, draft)
    with refused(ErrorCode.PERMISSION_DENIED, "ENVIRONMENT_NOT_WRITABLE"):
        world.controls.send(caller, prod[1], "cancel", "r1")
    world.controls.send(bound(world, read="prod", write="prod"), prod[1], "cancel", "r1")
