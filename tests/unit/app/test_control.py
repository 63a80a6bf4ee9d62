"""Operators' controls."""

from __future__ import annotations

import msgspec
import pytest
from tests.unit.app.refusal import refused
from tests.unit.app.world import World

from ductor.app.admission import TriggerRequest
from ductor.app.control import Accepted, operation_hash
from ductor.app.headers import HEAD, mark_stalled, request_sk, run_pk
from ductor.app.requests import outcome_put
from ductor.model.enums import RunStatus
from ductor.model.errors import ErrorCode
from ductor.model.intent import IntentKind
from ductor.model.transition import OperatorAudited
from ductor.ports import Put

TERMINAL = [status for status in RunStatus if status.terminal]
ACTIVE = [status for status in RunStatus if not status.terminal]


@pytest.fixture
def run_id(world: World) -> str:
    run_id = world.triggers.trigger(world.caller, world.published(), TriggerRequest()).run_id
    world.sent()
    return run_id


def become(world: World, run_id: str, status: RunStatus) -> None:
    state = world.header(run_id)
    state.status = status
    world.store(state)


def answer(world: World, run_id: str, request_id: str, operation: str) -> None:
    """What the coordinator stores with the commit that applied a request."""
    audited = OperatorAudited(
        intent_id="i",
        operation=operation,
        outcome="applied",
        request_id=request_id,
        request_hash=operation_hash(operation, "", None),
    )
    world.table.write([outcome_put(run_id, audited, world.clock.now_ms())])


def stall(world: World, run_id: str, body: bytes | None = None) -> None:
    item = world.table.get(run_pk(run_id), HEAD)
    assert item is not None
    marked = mark_stalled(item, world.clock.now_ms())
    world.table.write([Put(msgspec.structs.replace(marked, body=body) if body else marked)])


@pytest.mark.parametrize("operation", ["pause", "resume", "cancel", "terminate"])
def test_a_control_is_an_intent_with_actor_and_reason(world: World, run_id: str, operation: str) -> None:
    accepted = world.controls.send(world.caller, run_id, operation, "op-1", "manual hold")
    assert accepted == Accepted(run_id)
    (intent,) = world.sent()
    assert (intent.kind, intent.run_id, intent.actor) == (IntentKind(operation), run_id, world.caller.key_id)
    assert (intent.request_id, intent.reason, intent.at) == ("op-1", "manual hold", world.clock.now_ms())
    assert world.header(run_id).version == 1


def test_repeats_before_the_answer_are_sent_again_with_fresh_ids(world: World, run_id: str) -> None:
    for _ in range(3):
        world.controls.send(world.caller, run_id, "pause", "op-1")
    sent = world.sent()
    assert len({intent.id for intent in sent}) == 3
    assert len({intent.request_hash for intent in sent}) == 1


def test_a_repeat_is_accepted_and_does_nothing_also_after_the_end(world: World, run_id: str) -> None:
    answer(world, run_id, "op-1", "cancel")
    become(world, run_id, RunStatus.CANCELLED)
    assert world.controls.send(world.caller, run_id, "cancel", "op-1", "another reason") == Accepted(run_id)
    assert world.sent() == []


def test_a_request_id_stands_for_one_operation(world: World, run_id: str) -> None:
    answer(world, run_id, "op-1", "pause")
    with refused(ErrorCode.FAILED_PRECONDITION, "REQUEST_ID_REUSED"):
        world.controls.send(world.caller, run_id, "resume", "op-1")


@pytest.mark.parametrize("operation", ["pause", "resume", "cancel", "terminate"])
@pytest.mark.parametrize("status", TERMINAL)
def test_an_ended_run_takes_no_control(world: World, run_id: str, operation: str, status: RunStatus) -> None:
    become(world, run_id, status)
    with refused(ErrorCode.FAILED_PRECONDITION, "RUN_TERMINAL"):
        world.controls.send(world.caller, run_id, operation, "op-1")
    assert world.sent() == []


@pytest.mark.parametrize("status", RunStatus)
def test_redrive_is_for_failed_and_timed_out_runs(world: World, run_id: str, status: RunStatus) -> None:
    become(world, run_id, status)
    if status in (RunStatus.FAILED, RunStatus.TIMED_OUT):
        world.controls.send(world.caller, run_id, "redrive", "op-1")
        assert [intent.kind for intent in world.sent()] == [IntentKind.REDRIVE]
    else:
        with refused(ErrorCode.FAILED_PRECONDITION, "NOT_REDRIVABLE"):
            world.controls.send(world.caller, run_id, "redrive", "op-1")


@pytest.mark.parametrize("operation", ["redrive", "terminate"])
@pytest.mark.parametrize("body", [None, b"unreadable", b"{}"])
def test_a_stalled_run_is_redriven_and_terminated_unread(
    world: World, run_id: str, operation: str, body: bytes | None
) -> None:
    stall(world, run_id, body)
    world.controls.send(world.caller, run_id, operation, "op-1")
    assert len(world.sent()) == 1


def test_another_tenants_run_answers_like_an_unknown_one(world: World, run_id: str) -> None:
    answers = []
    for asked in (run_id, "no-such-run", "", "x" * 5_000, "\ud800", "a#b"):
        with refused(ErrorCode.NOT_FOUND, "RUN_NOT_FOUND") as found:
            world.controls.send(world.stranger(), asked, "cancel", "op-1")
        answers.append((found[0].message, found[0].violations))
    assert len(set(answers)) == 1


def test_a_control_needs_its_scope(world: World, run_id: str) -> None:
    viewer = world.new_caller(world.tenant, scopes=frozenset({"workflow:read"}))
    with refused(ErrorCode.PERMISSION_DENIED, "SCOPE_MISSING"):
        world.controls.send(viewer, run_id, "cancel", "op-1")


@pytest.mark.parametrize(
    ("operation", "request_id", "reason", "code"),
    [
        ("explode", "op-1", "", "OPERATION_UNKNOWN"),
        ("pause", "", "", "REQUEST_ID_INVALID"),
        ("pause", "x" * 129, "", "REQUEST_ID_INVALID"),
        ("pause", "op-1", "x" * 2_001, "FIELD_INVALID"),
    ],
)
def test_odd_requests_are_refused(
    world: World, run_id: str, operation: str, request_id: str, reason: str, code: str
) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT, code):
        world.controls.send(world.caller, run_id, operation, request_id, reason)


@pytest.mark.parametrize("request_id", ["🙂" * 128, "a b#c/d", "op:1"])
def test_any_text_is_a_request_id(world: World, run_id: str, request_id: str) -> None:
    world.controls.send(world.caller, run_id, "pause", request_id)
    answer(world, run_id, request_id, "pause")
    assert world.table.get(run_pk(run_id), request_sk(request_id))
    world.sent()
    world.controls.send(world.caller, run_id, "pause", request_id)
    assert world.sent() == []


@pytest.mark.parametrize("status", ACTIVE)
def test_any_active_run_can_be_cancelled(world: World, run_id: str, status: RunStatus) -> None:
    become(world, run_id, status)
    world.controls.send(world.caller, run_id, "cancel", "op-1")
    assert len(world.sent()) == 1
