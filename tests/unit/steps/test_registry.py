"""The registry: every type is there with its edges, and its functions never raise on bad args."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.validation.samples import Actions

from ductor.model.definition import Edge, Step
from ductor.model.enums import EdgeType, StepType
from ductor.steps.reading import ArgsInvalidError
from ductor.steps.registry import STEP_SPECS

EDGES = {
    StepType.ACTION: "success error timeout done default",
    StepType.DATAFLOW: "success error timeout done default",
    StepType.CONDITION: "true false error done",
    StepType.WAIT: "success error done default",
    StepType.WAIT_EVENT: "success timeout error done",
    StepType.EVENT_SET: "success timeout error done",
    StepType.DIGEST: "success error done",
    StepType.APPROVAL: "approved rejected done",
    StepType.SCATTER: "success error done",
    StepType.GATHER: "success error done",
    StepType.RACE: "success error done",
    StepType.SUBWORKFLOW: "success error timeout done default",
    StepType.AI_ACTION: "success error timeout done default",
    StepType.AI_AGENT: "success error timeout done default",
    StepType.BRIDGE: "success error timeout done default",
}

WORDS = st.sampled_from(
    [
        "operation",
        "input_expr",
        "project",
        "filter",
        "map",
        "where",
        "each",
        "by",
        "order",
        "aggregate",
        "op",
        "expr",
        "sum",
        "inputs",
        "duration",
        "until",
        "audience",
        "roles",
        "timeout_ms",
        "on_timeout",
        "policy",
        "quorum",
        "items_expr",
        "messages",
        "prompt",
        "requirements",
        "event_name",
    ]
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


class Alone:
    """A definition with one step."""

    catalog = Actions()

    def incoming(self, ref: str) -> list[Edge]:
        del ref
        return []

    outgoing = incoming

    def type_of(self, ref: str) -> StepType | None:
        del ref
        return None


@pytest.mark.parametrize("step_type", list(StepType))
def test_every_type_has_the_edges_of_the_table(step_type: StepType) -> None:
    assert STEP_SPECS[step_type].type is step_type
    assert STEP_SPECS[step_type].edges == {EdgeType(name) for name in EDGES[step_type].split()}


@given(st.sampled_from(list(StepType)), JSON_VALUES)
def test_no_args_make_a_rule_raise(step_type: StepType, args: Any) -> None:
    spec = STEP_SPECS[step_type]
    step = Step(ref="s", type=step_type, args=args)
    for violation in spec.validate(step, Alone()):
        assert violation.field.startswith("s.")
        assert violation.message
    for expression in spec.expressions(step):
        assert expression.path.startswith("args")


@given(st.sampled_from(list(StepType)), JSON_VALUES)
def test_args_parse_or_say_why_not(step_type: StepType, args: Any) -> None:
    try:
        parsed = STEP_SPECS[step_type].parse(args)
    except ArgsInvalidError as error:
        parsed = error.problems
    assert parsed is not None
    assert parsed != ()
