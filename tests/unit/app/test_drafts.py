"""Graph operations on a draft document."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.app.refusal import refused

from ductor.app.drafts import edited
from ductor.model.errors import ErrorCode, RefusedError

GRAPH: dict[str, Any] = {
    "family_slug": "f",
    "title": "reads STEPS.a",
    "steps": [
        {"ref": "a", "type": "action", "action": "core.echo"},
        {"ref": "ab", "type": "action", "action": "core.echo"},
        {
            "ref": "b",
            "type": "action",
            "action": "core.echo",
            "condition": "STEPS.a.output.ok && STEPS.ab.output.ok",
            "args": {"x": ["${{ STEPS['a'].output }}", {"y": '${{ STEPS[ "a" ].status }}'}], "z": "a"},
        },
    ],
    "edges": [
        {"source_ref": "a", "target_ref": "b"},
        {"source_ref": "a", "target_ref": "ab", "type": "error"},
        {"source_ref": "ab", "target_ref": "b", "type": "success"},
        {"source_ref": "ab", "target_ref": "b", "type": "error"},
    ],
    "checkpoints": [{"name": "a", "step_ref": "a", "output": "${{ STEPS.a.output }}"}],
}


def operate(*operations: dict[str, Any]) -> dict[str, Any]:
    before = copy.deepcopy(GRAPH)
    result = edited(GRAPH, {"expected_draft_revision": 1, "operations": list(operations)})
    assert before == GRAPH
    return result


def ends(document: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(edge["source_ref"], edge["target_ref"], edge.get("type", "success")) for edge in document["edges"]]


def test_fields_are_set_and_null_removes_them() -> None:
    result = edited(GRAPH, {"expected_draft_revision": 1, "title": None, "tags": ["x"]})
    assert "title" not in result
    assert result["tags"] == ["x"]
    assert "expected_draft_revision" not in result


def test_operations_apply_in_order() -> None:
    result = operate(
        {"add_step": {"ref": "c", "type": "wait"}},
        {"add_edge": {"source_ref": "b", "target_ref": "c"}},
        {"update_step": {"ref": "c", "args": {"duration": "1s"}}},
        {"rename_step": {"ref": "c", "new_ref": "d"}},
    )
    assert result["steps"][-1] == {"ref": "d", "type": "wait", "args": {"duration": "1s"}}
    assert ends(result)[-1] == ("b", "d", "success")


def test_updating_a_step_changes_the_named_fields_and_null_removes() -> None:
    result = operate({"update_step": {"id": "b", "condition": None, "title": "B"}})
    assert result["steps"][2].keys() == {"ref", "type", "action", "args", "title"}


def test_removing_a_step_removes_its_edges() -> None:
    assert ends(operate({"remove_step": {"ref": "ab"}})) == [("a", "b", "success")]


def test_renaming_a_step_takes_edges_checkpoints_and_expressions_along() -> None:
    result = operate({"rename_step": {"ref": "a", "new_ref": "first-one"}})
    step = result["steps"][2]
    assert step["condition"] == 'STEPS["first-one"].output.ok && STEPS.ab.output.ok'
    assert step["args"] == {
        "x": ['${{ STEPS["first-one"].output }}', {"y": '${{ STEPS["first-one"].status }}'}],
        "z": "a",
    }
    assert ends(result)[0] == ("first-one", "b", "success")
    assert result["checkpoints"] == [
        {"name": "a", "step_ref": "first-one", "output": '${{ STEPS["first-one"].output }}'}
    ]
    assert result["title"] == "reads STEPS.a"


def test_a_renamed_step_is_followed_in_expressions_only() -> None:
    document = {
        "output": {"title": "${{ STEPS.a.output.x }}", "text": "STEPS.a"},
        "steps": [
            {"ref": "a", "type": "wait"},
            {"ref": "c", "type": "dataflow", "args": {"project": {"name": "STEPS.a.output", "type": "'a' in STEPS"}}},
            {"ref": "d", "type": "action", "args": {"target_ref": "a", "text": "see STEPS.a, $${{ STEPS.a }}"}},
            {"ref": "e", "type": "STEP_TYPE_ACTION", "args": {"title": "to ${{ STEPS.a.output.n }} of STEPS.a"}},
        ],
    }
    result = edited(document, {"operations": [{"rename_step": {"ref": "a", "new_ref": "z"}}]})
    assert result["output"] == {"title": "${{ STEPS.z.output.x }}", "text": "STEPS.a"}
    args = [step.get("args") for step in result["steps"]]
    assert args[1] == {"project": {"name": "STEPS.z.output", "type": '"z" in STEPS'}}
    assert args[2] == {"target_ref": "a", "text": "see STEPS.a, $${{ STEPS.a }}"}
    assert args[3] == {"title": "to ${{ STEPS.z.output.n }} of STEPS.a"}


def test_an_edge_is_found_by_its_ends_and_when_needed_by_its_type() -> None:
    one = operate(
        {"update_edge": {"source_ref": "a", "target_ref": "b", "type": "EDGE_TYPE_DONE", "condition": "true"}}
    )
    assert one["edges"][0] == {"source_ref": "a", "target_ref": "b", "type": "EDGE_TYPE_DONE", "condition": "true"}
    several = {"source_ref": "ab", "target_ref": "b", "type": "EDGE_TYPE_ERROR"}
    assert ends(operate({"update_edge": {**several, "new_type": "timeout"}}))[3] == ("ab", "b", "timeout")
    assert ends(operate({"remove_edge": several})) == ends(GRAPH)[:3]
    assert ends(operate({"remove_edge": {"source_ref": "a", "target_ref": "ab"}})) == [
        ends(GRAPH)[n] for n in (0, 2, 3)
    ]


def test_lists_and_objects_are_set_whole() -> None:
    result = operate(
        {"set_triggers": [{"patterns": ["x"]}]},
        {"set_schedule": {"cron": "0 9 * * *"}},
        {"set_variables": {"v": 1}},
        {"set_checkpoints": None},
    )
    assert (result["triggers"], result["variables"]) == ([{"patterns": ["x"]}], {"v": 1})
    assert result["schedule"] == {"cron": "0 9 * * *"}
    assert "checkpoints" not in result


@pytest.mark.parametrize(
    ("operation", "code", "field"),
    [
        ({"add_step": {"ref": "a"}}, "STEP_REF_DUPLICATE", "operations[0].add_step.ref"),
        ({"add_step": {}}, "FIELD_REQUIRED", "operations[0].add_step.ref"),
        ({"add_step": "a"}, "OPERATION_INVALID", "operations[0].add_step"),
        ({"update_step": {"ref": "nobody"}}, "STEP_UNKNOWN", "operations[0].update_step.ref"),
        ({"remove_step": {"ref": "nobody"}}, "STEP_UNKNOWN", "operations[0].remove_step.ref"),
        ({"rename_step": {"ref": "a"}}, "FIELD_REQUIRED", "operations[0].rename_step.new_ref"),
        ({"rename_step": {"ref": "a", "new_ref": "b"}}, "STEP_REF_DUPLICATE", "operations[0].rename_step.new_ref"),
        ({"add_edge": {"source_ref": "a"}}, "FIELD_REQUIRED", "operations[0].add_edge.target_ref"),
        ({"update_edge": {"source_ref": "b", "target_ref": "a"}}, "EDGE_UNKNOWN", "operations[0].update_edge"),
        ({"remove_edge": {"source_ref": "ab", "target_ref": "b"}}, "EDGE_AMBIGUOUS", "operations[0].remove_edge.type"),
        ({"set_triggers": {}}, "OPERATION_INVALID", "operations[0].set_triggers"),
        ({"explode": {}}, "OPERATION_UNKNOWN", "operations[0].explode"),
        ({}, "OPERATION_INVALID", "operations[0]"),
        ([], "OPERATION_INVALID", "operations[0]"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_place(operation: Any, code: str, field: str) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT, code, field=field):
        operate(operation)


@pytest.mark.parametrize("operations", ["x", {}, 5, [{}] * 6_001])
def test_operations_are_a_list_of_bounded_length(operations: Any) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT, "FIELD_INVALID", field="operations"):
        edited(GRAPH, {"operations": operations})


NAMES = st.sampled_from(
    ["a", "b", "ab", "ref", "id", "new_ref", "source_ref", "target_ref", "type", "new_type", "steps"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | NAMES
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)
OPERATIONS = st.dictionaries(
    st.sampled_from(
        [
            "add_step",
            "update_step",
            "rename_step",
            "remove_step",
            "add_edge",
            "update_edge",
            "remove_edge",
            "set_triggers",
        ]
    ),
    VALUES,
    min_size=1,
    max_size=1,
)


@settings(max_examples=300, deadline=None)
@given(st.lists(OPERATIONS, max_size=4), st.dictionaries(st.sampled_from(["steps", "edges", "title"]), VALUES))
def test_any_edit_is_made_or_refused(operations: list[Any], fields: dict[str, Any]) -> None:
    before = copy.deepcopy(GRAPH)
    with suppress(RefusedError):
        edited(GRAPH, {**fields, "operations": operations})
    assert before == GRAPH
