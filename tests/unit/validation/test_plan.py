"""What a plan and the type of a connection allow, each with a near miss."""

from __future__ import annotations

import msgspec
from tests.unit.validation.samples import OFFLINE, SERVER, codes, doc, echo, errors

from ductor.model.enums import StepType
from ductor.validation.context import Standing

WAIT = {"ref": "w", "type": "wait", "args": {"duration": "2s"}}
CHARGE = {"ref": "a", "type": "action", "action": "stripe.charge", "connection_ref": "stripe-live"}


def test_a_step_type_that_the_plan_does_not_allow() -> None:
    plan = msgspec.structs.replace(SERVER, step_types=frozenset({StepType.ACTION}))
    assert errors(doc(echo(), WAIT), plan) == {("w.type", "ENTITLEMENT_REQUIRED")}
    assert codes(doc(echo()), plan) == set()


def test_more_steps_than_the_plan_allows() -> None:
    plan = msgspec.structs.replace(SERVER, max_steps=2)
    assert errors(doc(echo("a"), echo("b"), echo("c")), plan) == {("steps", "ENTITLEMENT_REQUIRED")}
    assert codes(doc(echo("a"), echo("b")), plan) == set()


def test_a_plan_without_step_types_allows_none() -> None:
    plan = msgspec.structs.replace(SERVER, step_types=frozenset())
    assert errors(doc(echo()), plan) == {("a.type", "ENTITLEMENT_REQUIRED")}


def test_offline_no_plan_is_known() -> None:
    assert codes(doc(echo(), WAIT), OFFLINE) == set()


def test_a_connection_of_another_type() -> None:
    for kind, expected in (("hubspot", {("a.connection_ref", "CONNECTION_UNKNOWN")}), ("stripe", set()), ("", set())):
        context = msgspec.structs.replace(SERVER, connection_type=lambda mode, ref, kind=kind: kind)
        assert errors(doc(CHARGE), context) == expected


def test_the_type_of_a_connection_nobody_knows_is_not_asked() -> None:
    def never(mode: str, ref: str) -> str:
        raise AssertionError(ref)

    context = msgspec.structs.replace(SERVER, connection=lambda mode, ref: Standing.UNKNOWN, connection_type=never)
    assert errors(doc(CHARGE), context) == {("a.connection_ref", "CONNECTION_UNKNOWN")}


def test_compensation_and_hooks_need_their_connections_too() -> None:
    undo = {"on_failure": [{"action": "stripe.charge", "args": {"amount": 1}}]}
    hooks = {"on_failed": {"action": "stripe.charge", "args": {"amount": 1}}}
    expected = {
        ("a.compensation.on_failure[0].connection_ref", "CONNECTION_REQUIRED"),
        ("hooks.on_failed.connection_ref", "CONNECTION_REQUIRED"),
    }
    assert errors(doc(echo(compensation=undo), hooks=hooks)) == expected
    undo["on_failure"][0]["connection_ref"] = "stripe-live"
    hooks["on_failed"]["connection_ref"] = "${{ VARS.c }}"
    assert errors(doc(echo(compensation=undo), hooks=hooks)) == set()
