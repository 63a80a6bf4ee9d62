"""Scatters, gathers and races as a whole: closed bodies, one gather each, branches that can lose, ITEM where it is."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tests.unit.validation.samples import Doc, codes, doc, echo, edge, found

GATHER: Doc = {"ref": "g", "type": "gather"}


def scatter(ref: str = "s", **args: Any) -> Doc:
    return {"ref": ref, "type": "scatter", "args": {"items_expr": "[1]", **args}}


def nest(*steps: Doc, edges: list[Doc] | None = None, **fields: Any) -> Doc:
    """s -> a -> g, and whatever comes on top."""
    own = [edge("s", "a"), edge("a", "g")]
    return doc(scatter(), echo(), GATHER, *steps, edges=[*own, *(edges or [])], **fields)


def test_a_closed_body_is_sound() -> None:
    assert codes(nest(echo("b"), edges=[edge("g", "b")])) == set()


def test_a_failed_scatter_may_be_handled_outside() -> None:
    assert codes(nest(echo("rescue"), edges=[edge("s", "rescue", type="error")])) == set()


@pytest.mark.parametrize(
    ("document", "field", "code"),
    [
        (doc(scatter(), echo(), edges=[edge("s", "a")]), "s", "SCATTER_SPEC_INVALID"),
        (doc(scatter(), GATHER, edges=[edge("s", "g")]), "s", "SCATTER_SPEC_INVALID"),
        (nest(echo("b"), edges=[edge("b", "a")]), "a", "SCATTER_SPEC_INVALID"),
        (nest(echo("b"), edges=[edge("a", "b"), edge("g", "b")]), "b", "SCATTER_SPEC_INVALID"),
        (nest({"ref": "h", "type": "gather"}, edges=[edge("a", "h")]), "h", "GATHER_SPEC_INVALID"),
        (nest(echo("b"), edges=[edge("b", "g")]), "g", "GATHER_SPEC_INVALID"),
    ],
    ids=["no gather", "empty body", "edge in", "edge out", "two gathers", "a branch beside the body"],
)
def test_a_body_has_no_edge_but_through_its_two_ends(document: Doc, field: str, code: str) -> None:
    assert (field, code) in {(fault.field, fault.code) for fault in found(document)}


def test_scatters_nest_four_deep_and_no_deeper() -> None:
    def deep(levels: int) -> Doc:
        outer = [scatter(f"s{level}") for level in range(levels)]
        inner = [{"ref": f"g{level}", "type": "gather"} for level in reversed(range(levels))]
        steps = [*outer, echo(), *inner]
        refs = [step["ref"] for step in steps]
        return doc(*steps, edges=[edge(one, two) for one, two in pairwise(refs)])

    assert codes(deep(4)) == set()
    assert "SCATTER_SPEC_INVALID" in codes(deep(5))


def test_a_digest_merges_whole_runs_and_stands_in_no_body() -> None:
    gathering = {"ref": "d", "type": "digest", "args": {"digest_key": "k", "window": "1m"}}
    inside = doc(scatter(), gathering, GATHER, edges=[edge("s", "d"), edge("d", "g")])
    before = doc(gathering, scatter(), echo(), GATHER, edges=[edge("d", "s"), edge("s", "a"), edge("a", "g")])

    assert {(fault.field, fault.code) for fault in found(inside)} == {("d", "DIGEST_SPEC_INVALID")}
    assert codes(before) == set()


@pytest.mark.parametrize("policy", [{"policy": "any"}, {"policy": "quorum", "quorum": 1}])
def test_a_policy_and_a_tolerance_exclude_each_other(policy: Doc) -> None:
    document = doc(
        scatter(tolerated_failures=1), echo(), {**GATHER, "args": policy}, edges=[edge("s", "a"), edge("a", "g")]
    )
    assert ("g.args.policy", "GATHER_SPEC_INVALID") in {(fault.field, fault.code) for fault in found(document)}


@pytest.mark.parametrize("join", [{"type": "race"}, {"type": "gather", "args": {"policy": "any"}}])
def test_a_branch_that_leads_elsewhere_cannot_lose(join: Doc) -> None:
    document = doc(
        echo(), echo("b"), echo("c"), {"ref": "r", **join}, edges=[edge("a", "r"), edge("b", "r"), edge("a", "c")]
    )
    code = "RACE_SPEC_INVALID" if join["type"] == "race" else "GATHER_SPEC_INVALID"
    assert [(fault.field, fault.code) for fault in found(document)] == [("r", code)]


def test_item_is_known_in_the_body_only() -> None:
    assert codes(nest(echo("b", args={"v": "${{ ITEM }}"}), edges=[edge("g", "b")])) == {"CEL_UNKNOWN_ROOT"}
    inside = nest()
    inside["steps"][1]["args"] = {"v": "${{ [ITEM, INDEX] }}"}
    inside["edges"][0]["condition"] = "INDEX > 0"
    assert codes(inside) == set()


def test_steps_of_a_body_are_read_through_its_gather() -> None:
    outside = nest(echo("b", args={"v": "${{ STEPS.a.output }}"}), edges=[edge("g", "b")])
    assert codes(outside) == {"CEL_STEP_NOT_UPSTREAM"}
    within = nest()
    within["steps"][2] = {**GATHER, "args": {"output_expr": "STEPS.a.output"}}
    assert codes(within) == set()


def test_an_inner_body_reads_the_scopes_around_it() -> None:
    steps = [scatter(), scatter("t"), echo(args={"v": "${{ STEPS.s.item }}"}), GATHER, {"ref": "h", "type": "gather"}]
    edges = [edge("s", "t"), edge("t", "a"), edge("a", "g"), edge("g", "h")]
    assert codes(doc(*steps, edges=edges)) == set()
