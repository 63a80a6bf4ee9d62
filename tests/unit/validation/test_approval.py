"""The rules of the guide's "Add a human approval gate", sentence by sentence."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.validation.samples import Doc, doc, echo, edge, errors

AUDIENCE = {"match_mode": "any", "roles": ["operator"]}


def _gate(args: Any = None, *, edge_type: str = "approved", **fields: Any) -> Doc:
    step = {
        "ref": "r",
        "type": "approval",
        "action": "approval",
        "args": {"audience": AUDIENCE} | (args or {}),
        **fields,
    }
    return doc(step, echo("b"), edges=[edge("r", "b", type=edge_type)])


def _found(document: Doc) -> set[tuple[str, str]]:
    return {pair for pair in errors(document) if pair[1].startswith(("APPROVAL", "EDGE"))}


@pytest.mark.parametrize(
    "document",
    [
        _gate(),
        _gate({"timeout_ms": 0}),
        _gate({"timeout_ms": 9223372036854, "on_timeout": "approve"}),
        _gate({"timeout_ms": 600000, "on_timeout": "fail"}),
        _gate({"timeout_ms": 1, "on_timeout": "SKIP"}),
        _gate({"expires_at_cel": ""}),
        _gate({"approver_role": "cfo"}),
        _gate({"audience": {"match_mode": "all", "users": ["ada"]}}),
        _gate(edge_type="rejected"),
        _gate(edge_type="EDGE_TYPE_DONE"),
    ],
)
def test_what_the_guide_allows(document: Doc) -> None:
    assert _found(document) == set()


@pytest.mark.parametrize(
    ("document", "field", "code"),
    [
        (_gate(action=""), "r.action", "APPROVAL_ACTION_INVALID"),
        (_gate(action="approve"), "r.action", "APPROVAL_ACTION_INVALID"),
        (_gate({"action": "approval"}), "r.args.action", "APPROVAL_SPEC_INVALID"),
        (_gate({"audience": None}), "r.args.audience", "APPROVAL_SPEC_INVALID"),
        (_gate({"audience": {"roles": []}}), "r.args.audience", "APPROVAL_SPEC_INVALID"),
        (
            _gate({"audience": {"roles": ["x"], "match_mode": "most"}}),
            "r.args.audience.match_mode",
            "APPROVAL_SPEC_INVALID",
        ),
        (_gate({"timeout_ms": -1}), "r.args.timeout_ms", "APPROVAL_SPEC_INVALID"),
        (_gate({"timeout_ms": 9223372036855}), "r.args.timeout_ms", "APPROVAL_SPEC_INVALID"),
        (_gate({"timeout_ms": 1.0}), "r.args.timeout_ms", "APPROVAL_SPEC_INVALID"),
        (_gate({"timeout_ms": "600000"}), "r.args.timeout_ms", "APPROVAL_SPEC_INVALID"),
        (_gate({"on_timeout": "fail"}), "r.args.on_timeout", "APPROVAL_SPEC_INVALID"),
        (_gate({"timeout_ms": 0, "on_timeout": "skip"}), "r.args.on_timeout", "APPROVAL_SPEC_INVALID"),
        (_gate({"timeout_ms": 5, "on_timeout": "reject"}), "r.args.on_timeout", "APPROVAL_SPEC_INVALID"),
        (_gate({"expires_at_cel": "RUN.now"}), "r.args.expires_at_cel", "APPROVAL_SPEC_INVALID"),
        (_gate(timeout_ms=5), "r.timeout_ms", "APPROVAL_SPEC_INVALID"),
        (_gate(on_error="continue"), "r.on_error", "APPROVAL_SPEC_INVALID"),
        (_gate(edge_type="success"), "edges[0].type", "EDGE_TYPE_INVALID"),
        (_gate(edge_type="error"), "edges[0].type", "EDGE_TYPE_INVALID"),
    ],
)
def test_what_the_guide_refuses(document: Doc, field: str, code: str) -> None:
    assert _found(document) == {(field, code)}
