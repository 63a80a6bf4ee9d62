"""AI steps: how they ask, which tools they name, and whether what they refer to is there."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.validation.samples import OFFLINE, SERVER, Doc, doc, errors, found

from ductor.model.errors import Severity
from ductor.validation.context import Standing


def call(**args: Any) -> Doc:
    return {"ref": "m", "type": "ai_action", "args": {"model": "x", "prompt": "hi", "max_tokens": 5, **args}}


def agent(**args: Any) -> Doc:
    return {**call(**{"max_turns": 3, **args}), "type": "ai_agent"}


@pytest.mark.parametrize(
    "step",
    [
        call(),
        call(prompt=None, messages=[{"role": "User", "content": "hi"}], system="s", temperature=0.5),
        call(model="${{ VARS.model }}", output_schema={"type": "object"}),
        agent(),
        agent(tools=["core.echo"], budget={"tokens": 10}),
        agent(tools=[{"action": "stripe.charge", "connection_ref": "stripe-live", "description": "Charges."}]),
        agent(tools=[{"action": "stripe.charge", "connection_ref": "stripe", "connection_ref_mode": "environment"}]),
        {**call(), "connection_ref": "${{ VARS.models }}"},
    ],
)
def test_these_can_be_published(step: Doc) -> None:
    variables = {"model": "m", "models": "c"}
    assert errors(doc(step, variables=variables)) == set()


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        (call(messages=[{"role": "user", "content": "hi"}]), ("m.args", "AI_SPEC_INVALID")),
        (call(prompt=None, messages=[]), ("m.args.messages", "AI_SPEC_INVALID")),
        (
            call(prompt=None, messages=[{"role": "system", "content": "x"}]),
            ("m.args.messages[0].role", "AI_SPEC_INVALID"),
        ),
        (call(temperature=3), ("m.args.temperature", "AI_SPEC_INVALID")),
        (call(max_tokens=0), ("m.args.max_tokens", "AI_SPEC_INVALID")),
        (call(tools=["core.echo"]), ("m.args.tools", "AI_SPEC_INVALID")),
        (call(output_schema={"type": "strange"}), ("m.args.output_schema.type", "AI_SPEC_INVALID")),
        (call(output_schema={"$ref": "https://x.test"}), ("m.args.output_schema.$ref", "AI_SPEC_INVALID")),
        (call(prompt="${{ STEPS.b.output }}"), ("m.args.prompt", "CEL_UNKNOWN_STEP")),
        (call(prompt="${{ 1 + }}"), ("m.args.prompt", "CEL_SYNTAX")),
        (agent(max_turns=0), ("m.args.max_turns", "AI_SPEC_INVALID")),
        (agent(budget={"tokens": 0}), ("m.args.budget.tokens", "AI_SPEC_INVALID")),
        (agent(tools=["core.ecko"]), ("m.args.tools[0]", "ACTION_UNKNOWN")),
        (agent(tools=["core.echo", {"action": "core.echo"}]), ("m.args.tools[1]", "AI_SPEC_INVALID")),
        (agent(tools=[{"action": "core.echo", "conection": 1}]), ("m.args.tools[0]", "AI_SPEC_INVALID")),
        (agent(tools=["stripe.charge"]), ("m.args.tools[0].connection_ref", "CONNECTION_UNKNOWN")),
        (
            agent(tools=[{"action": "stripe.charge", "connection_ref": "gone"}]),
            ("m.args.tools[0].connection_ref", "CONNECTION_UNKNOWN"),
        ),
        (
            agent(tools=[{"action": "core.echo", "connection_ref_mode": "direct"}]),
            ("m.args.tools[0].connection_ref", "CONNECTION_REQUIRED"),
        ),
        ({**call(), "connection_ref": "gone"}, ("m.connection_ref", "CONNECTION_UNKNOWN")),
    ],
)
def test_these_cannot(step: Doc, fault: tuple[str, str]) -> None:
    assert fault in errors(doc(step))


def test_a_connection_that_leads_to_no_model_is_told_apart() -> None:
    stripe = msgspec.structs.replace(SERVER, connection_type=lambda mode, ref: "stripe")
    step = {**call(), "connection_ref": "stripe-live"}
    assert [item.field for item in found(doc(step), stripe)] == ["m.connection_ref"]
    openai = msgspec.structs.replace(SERVER, connection_type=lambda mode, ref: "openai")
    assert found(doc(step), openai) == []


def test_offline_nobody_knows_whether_a_tools_connection_exists() -> None:
    (item,) = found(doc(agent(tools=["stripe.charge"])), OFFLINE)
    assert (item.severity, OFFLINE.connection("direct", "stripe")) == (Severity.UNRESOLVED, Standing.UNRESOLVED)
