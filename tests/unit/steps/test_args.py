"""Args of the types that run: which fields each operation and form takes, and how faults are told."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.steps.test_registry import Alone

from ductor.model.definition import Step
from ductor.model.enums import StepType
from ductor.steps.registry import STEP_SPECS


def _faults(step_type: StepType, args: Any) -> set[str]:
    step = Step(ref="s", type=step_type, args=args)
    return {
        violation.field.removeprefix("s.args").removeprefix(".")
        for violation in STEP_SPECS[step_type].validate(step, Alone())
    }


ITEMS = {"input_expr": "TRIGGER.payload.items"}

GOOD_FLOWS: list[dict[str, Any]] = [
    {"operation": "project", "project": {"a": "1"}},
    {"operation": "project", "input_expr": "TRIGGER", "project": {"a": "INPUT.x"}},
    {"operation": "filter", "where": "ITEM.x > 1", **ITEMS},
    {"operation": "map", "each": "ITEM.x", **ITEMS},
    {"operation": "map", "project": {"x": "ITEM.x"}, **ITEMS},
    {"operation": "merge", "inputs": ["TRIGGER", "VARS"]},
    {"operation": "merge", "inputs": ["INPUT.a", "VARS"], "input_expr": "TRIGGER", "deep": True},
    {"operation": "merge", **ITEMS},
    {"operation": "flatten", **ITEMS},
    {"operation": "flatten", "depth": 10, **ITEMS},
    {"operation": "group", "by": "ITEM.k", **ITEMS},
    {"operation": "group", "by": "ITEM.k", "aggregate": {"n": {"op": "count"}}, **ITEMS},
    {"operation": "sort", **ITEMS},
    {"operation": "sort", "by": "ITEM.k", "order": "DESC", **ITEMS},
    {"operation": "aggregate", "aggregate": {"total": {"op": "sum", "expr": "ITEM.x"}}, **ITEMS},
    {
        "operation": "aggregate",
        "aggregate": {"all": {"op": "collect"}, "n": {"op": "count", "expr": "ITEM.ok"}},
        **ITEMS,
    },
]

BAD_FLOWS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"operation"}),
    ({"operation": "project"}, {"project"}),
    ({"operation": "project", "project": {}}, {"project"}),
    ({"operation": "project", "project": {"a": 1}}, {"project.a"}),
    ({"operation": "project", "project": {"a": "1"}, "where": "true"}, {"where"}),
    ({"operation": "filter", **ITEMS}, {"where"}),
    ({"operation": "filter", "where": "true"}, {"input_expr"}),
    ({"operation": "filter", "where": "", **ITEMS}, {"where"}),
    ({"operation": "map", **ITEMS}, {"each"}),
    ({"operation": "map", "each": "1", "project": {"a": "1"}, **ITEMS}, {"each"}),
    ({"operation": "merge"}, {"inputs"}),
    ({"operation": "merge", "inputs": []}, {"inputs"}),
    ({"operation": "merge", "inputs": ["1", 2]}, {"inputs[1]"}),
    ({"operation": "flatten", "depth": 0, **ITEMS}, {"depth"}),
    ({"operation": "flatten", "depth": 11, **ITEMS}, {"depth"}),
    ({"operation": "flatten", "depth": True, **ITEMS}, {"depth"}),
    ({"operation": "group", **ITEMS}, {"by"}),
    ({"operation": "group", "by": "1", "aggregate": {"key": {"op": "count"}}, **ITEMS}, {"aggregate.key"}),
    ({"operation": "sort", "order": "up", **ITEMS}, {"order"}),
    ({"operation": "aggregate", **ITEMS}, {"aggregate"}),
    ({"operation": "aggregate", "aggregate": {"x": {"op": "sum"}}, **ITEMS}, {"aggregate.x.expr"}),
    (
        {"operation": "aggregate", "aggregate": {"x": {"op": "median", "expr": "1"}, "y": {"oop": 1}}, **ITEMS},
        {"aggregate.x.op", "aggregate.y.oop", "aggregate.y.op"},
    ),
]


@pytest.mark.parametrize("args", GOOD_FLOWS)
def test_every_dataflow_operation_takes_its_own_fields(args: dict[str, Any]) -> None:
    assert _faults(StepType.DATAFLOW, args) == set()
    assert STEP_SPECS[StepType.DATAFLOW].parse(args).operation == args["operation"]


@pytest.mark.parametrize(("args", "fields"), BAD_FLOWS)
def test_dataflow_fields_that_do_not_fit_are_named(args: dict[str, Any], fields: set[str]) -> None:
    assert _faults(StepType.DATAFLOW, args) == fields


@pytest.mark.parametrize(
    "args",
    [
        {"duration": "2s"},
        {"duration": "PT0S"},
        {"until": "2030-01-31T09:00:00Z"},
        {"until": "2030-01-31t09:00:00.123456+05:30"},
        {"duration_expr": "TRIGGER.payload.delay"},
        {"until_expr": "TRIGGER.payload.at"},
    ],
)
def test_waits_take_exactly_one_form(args: dict[str, Any]) -> None:
    assert _faults(StepType.WAIT, args) == set()


@pytest.mark.parametrize(
    ("args", "fields"),
    [
        ({}, {""}),
        ({"duration": "1s", "until": "2030-01-31T09:00:00Z"}, {""}),
        ({"duration": "soon"}, {"duration"}),
        ({"duration": 5}, {"duration"}),
        ({"duration": "367d"}, {"duration"}),
        ({"until": "2030-01-31"}, {"until"}),
        ({"until": "2030-01-31T09:00:00"}, {"until"}),
        ({"until": "2030-02-31T09:00:00Z"}, {"until"}),
        ({"until": "2030-W05-1T09:00:00Z"}, {"until"}),
        ({"until_expr": ""}, {"until_expr"}),
        ({"seconds": 5}, {"seconds"}),
    ],
)
def test_waits_that_do_not_fit_are_named(args: dict[str, Any], fields: set[str]) -> None:
    assert _faults(StepType.WAIT, args) == fields


def test_a_templated_duration_is_led_to_the_expression_field() -> None:
    step = Step(ref="s", type=StepType.WAIT, args={"duration": "${{ VARS.delay }}"})
    assert "duration_expr" in next(STEP_SPECS[StepType.WAIT].validate(step, Alone())).message


def test_a_misspelt_arg_names_the_nearest_one() -> None:
    step = Step(ref="s", type=StepType.WAIT, args={"durration": "1s"})
    assert "'duration'" in next(STEP_SPECS[StepType.WAIT].validate(step, Alone())).message
