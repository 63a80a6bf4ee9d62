"""What an author may leave out of a call, and what publication writes in its place."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.validation.samples import OFFLINE, SERVER, doc, echo

from ductor.validation.completion import completed
from ductor.validation.context import Context, Standing

CURRENCY = "${{ TRIGGER.payload.currency }}"


def charge(**more: Any) -> dict[str, Any]:
    return {"ref": "a", "type": "action", "action": "stripe.charge", **more}


def with_stripe(standing: Standing, kind: str = "stripe") -> Context:
    return msgspec.structs.replace(
        SERVER, connection=lambda mode, ref: standing, connection_type=lambda mode, ref: kind
    )


def step(made: dict[str, Any]) -> dict[str, Any]:
    first: dict[str, Any] = made["steps"][0]
    return first


def test_a_call_gets_its_connection_and_its_args() -> None:
    made = step(completed(doc(charge(args={"amount": 1})), with_stripe(Standing.KNOWN)))
    assert (made["connection_ref"], made["args"]) == ("stripe", {"amount": 1, "currency": CURRENCY})


def test_what_the_author_gave_stays() -> None:
    given = charge(connection_ref="stripe-live", args={"currency": None})
    assert step(completed(doc(given), with_stripe(Standing.KNOWN))) == given


@pytest.mark.parametrize(
    "context", [with_stripe(Standing.UNKNOWN), with_stripe(Standing.KNOWN, "hubspot")], ids=["absent", "another type"]
)
def test_no_connection_is_made_up(context: Context) -> None:
    assert "connection_ref" not in step(completed(doc(charge()), context))


def test_offline_the_server_decides_whether_it_exists() -> None:
    assert step(completed(doc(charge()), OFFLINE))["connection_ref"] == "stripe"


def test_targets_and_hooks_are_calls_too() -> None:
    call = {"action": "stripe.charge", "args": {"amount": 1}}
    document = doc(echo(compensation={"on_failure": [call], "finally": [call]}), hooks={"on_failed": call})
    made = completed(document, with_stripe(Standing.KNOWN))
    full = {"action": "stripe.charge", "args": {"amount": 1, "currency": CURRENCY}, "connection_ref": "stripe"}
    assert step(made)["compensation"] == {"on_failure": [full], "finally": [full]}
    assert made["hooks"] == {"on_failed": full}


def test_the_document_itself_is_not_changed() -> None:
    document = doc(charge())
    completed(document, with_stripe(Standing.KNOWN))
    assert document == doc(charge())


@pytest.mark.parametrize(
    "odd", [{}, {"steps": "x"}, {"steps": [1, {"action": ["x"]}]}, {"hooks": [1]}, {"steps": [charge(args=3)]}]
)
def test_a_broken_document_passes_through(odd: dict[str, Any]) -> None:
    assert completed(odd, SERVER) == odd
