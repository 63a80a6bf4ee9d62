"""What stands before a run: the environment, the live release, the plan. Nothing of it is remembered."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.app.refusal import refused
from tests.unit.app.world import HELLO, World

from ductor.app.admission import TriggerRequest
from ductor.app.entitlements import Entitlements
from ductor.app.environments import EnvironmentChanges
from ductor.app.gate import Gate
from ductor.model.enums import StepType
from ductor.model.errors import ErrorCode

LIVE = "prod-us-east-1-wave-1"


@pytest.fixture
def pinned(world: World) -> str:
    """The id of a version in an environment that requires its live release."""
    changes = EnvironmentChanges(require_release=True, live_deployment=LIVE)
    world.admin.environments.create(world.caller, "prod", changes)
    return world.published({**HELLO, "environment": "prod"})


def start(world: World, definition_id: str, release: str = "", **fields: Any) -> Any:
    request = TriggerRequest(external_deployment_id=release, **fields)
    return world.triggers.trigger(world.caller, definition_id, request)


def release(world: World, live: str) -> None:
    world.admin.environments.update(world.caller, "prod", EnvironmentChanges(live_deployment=live))


def test_the_live_release_starts_runs(world: World, pinned: str) -> None:
    run = start(world, pinned, LIVE)
    assert world.header(run.run_id).origin.external_deployment_id == LIVE


@pytest.mark.parametrize("named", ["", "prod-us-east-1-wave-0", LIVE.upper(), LIVE + " "])
def test_another_release_or_none_is_refused(world: World, pinned: str, named: str) -> None:
    with refused(ErrorCode.FAILED_PRECONDITION, "RELEASE_MISMATCH", field="external_deployment_id"):
        start(world, pinned, named)
    assert world.sent() == []


def test_a_switch_of_the_release_counts_at_once(world: World, pinned: str) -> None:
    release(world, "wave-2")
    with refused(ErrorCode.FAILED_PRECONDITION, "RELEASE_MISMATCH"):
        start(world, pinned, LIVE)
    start(world, pinned, "wave-2")


def test_a_switch_between_the_look_and_the_admission_wins(
    world: World, pinned: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(world.table)
    admit = gate.admit

    def slow(*args: Any) -> Any:
        entry = admit(*args)
        release(world, "wave-2")
        return entry

    monkeypatch.setattr(gate, "admit", slow)
    world.triggers._gate = gate
    with refused(ErrorCode.FAILED_PRECONDITION, "RELEASE_MISMATCH"):
        start(world, pinned, LIVE)
    assert world.sent() == []


def test_a_change_that_keeps_the_release_does_not_lose_the_trigger(
    world: World, pinned: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(world.table)
    admit, changed = gate.admit, list[Any]()

    def slow(*args: Any) -> Any:
        entry = admit(*args)
        if not changed:
            changed.append(world.admin.variables.set(world.caller, "prod", "a", 1))
        return entry

    monkeypatch.setattr(gate, "admit", slow)
    world.triggers._gate = gate
    run = start(world, pinned, LIVE, idempotency_key="once")
    assert world.payloads.load(run.run_id, world.header(run.run_id).origin.variables) == {"a": 1}
    assert start(world, pinned, LIVE, idempotency_key="once").run_id == run.run_id


def test_a_repeat_gets_its_run_whatever_is_live_now(world: World, pinned: str) -> None:
    first = start(world, pinned, LIVE, idempotency_key="k")
    release(world, "wave-2")
    assert start(world, pinned, LIVE, idempotency_key="k").run_id == first.run_id


def test_without_a_policy_any_release_is_recorded(world: World) -> None:
    run = start(world, world.published(), "anything")
    assert world.header(run.run_id).origin.external_deployment_id == "anything"


def test_a_policy_needs_a_live_release(world: World) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT, "FIELD_REQUIRED", field="release.external_deployment_id"):
        world.admin.environments.update(world.caller, "default", EnvironmentChanges(require_release=True))


def test_an_inactive_environment_starts_nothing(world: World, pinned: str) -> None:
    world.admin.environments.update(world.caller, "prod", EnvironmentChanges(active=False))
    with refused(ErrorCode.FAILED_PRECONDITION, "ENVIRONMENT_INACTIVE"):
        start(world, pinned, LIVE)


def test_a_key_starts_runs_only_where_it_has_authority(world: World, pinned: str) -> None:
    narrow = msgspec.structs.replace(world.caller, environments_write=frozenset({"default"}))
    with refused(ErrorCode.PERMISSION_DENIED, "ENVIRONMENT_NOT_WRITABLE"):
        world.triggers.trigger(narrow, pinned, TriggerRequest(external_deployment_id=LIVE))


def test_a_version_that_the_plan_no_longer_allows_starts_nothing(world: World) -> None:
    definition_id = world.published()
    world.admin.entitlements.set(world.tenant, Entitlements(step_types=frozenset({StepType.DATAFLOW})))
    with refused(ErrorCode.PERMISSION_DENIED, "ENTITLEMENT_REQUIRED"):
        start(world, definition_id)
    world.admin.entitlements.set(world.tenant, Entitlements(max_steps=1))
    with refused(ErrorCode.PERMISSION_DENIED, "ENTITLEMENT_REQUIRED"):
        start(world, definition_id)


def test_what_the_plan_does_not_allow_is_not_published(world: World) -> None:
    wanted = Entitlements(plan="small", step_types=frozenset({StepType.DATAFLOW}), max_steps=1)
    world.admin.entitlements.set(world.tenant, wanted)
    draft = world.definitions.create(world.caller, HELLO)
    told = {(one.field, one.code) for one in draft.warnings}
    assert told == {("steps", "ENTITLEMENT_REQUIRED"), ("pause.type", "ENTITLEMENT_REQUIRED")}
    with refused(ErrorCode.INVALID_ARGUMENT, "ENTITLEMENT_REQUIRED", "ENTITLEMENT_REQUIRED"):
        world.definitions.publish(world.caller, draft.definition.id)


def test_another_tenants_plan_is_its_own(world: World) -> None:
    world.admin.entitlements.set(world.tenant, Entitlements(max_steps=1))
    assert world.definitions.create(world.stranger(), HELLO).warnings == ()


@pytest.mark.parametrize("wanted", [{"max_steps": -1}, {"max_steps": 501}, {"max_api_keys": -1}, {"plan": "x" * 101}])
def test_odd_plans_are_refused(world: World, wanted: dict[str, Any]) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT, "FIELD_INVALID"):
        world.admin.entitlements.set(world.tenant, Entitlements(**wanted))
