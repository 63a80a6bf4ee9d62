"""What each dataflow operation gives, and how it fails on an input that does not fit."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.unit.engine.runs import Run

from ductor.model.json import JSON

ROWS = [
    {"name": "b", "n": 2, "tags": ["x"]},
    {"name": "a", "n": 5, "tags": []},
    {"name": "c", "n": 2, "tags": ["x", "y"]},
]


def shaped(payload: JSON, **args: Any) -> Run:
    """A run of one dataflow step over TRIGGER.payload."""
    args.setdefault("input_expr", "TRIGGER.payload")
    return Run({"steps": [{"ref": "d", "type": "dataflow", "args": args}], "edges": []}, payload)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"operation": "project", "project": {"k": "INPUT[0].n + 1", "t": '"x"'}}, {"k": 3, "t": "x"}),
        ({"operation": "filter", "where": "ITEM.n > 2 || INDEX == 2"}, [ROWS[1], ROWS[2]]),
        ({"operation": "map", "each": "ITEM.n * 10"}, [20, 50, 20]),
        (
            {"operation": "map", "project": {"i": "INDEX", "n": "ITEM.name"}},
            [{"i": i, "n": r["name"]} for i, r in enumerate(ROWS)],
        ),
        ({"operation": "sort", "by": "ITEM.n"}, [ROWS[0], ROWS[2], ROWS[1]]),
        ({"operation": "sort", "by": "ITEM.name", "order": "desc"}, [ROWS[2], ROWS[0], ROWS[1]]),
        (
            {"operation": "group", "by": "ITEM.n"},
            [{"key": 2, "items": [ROWS[0], ROWS[2]]}, {"key": 5, "items": [ROWS[1]]}],
        ),
        (
            {"operation": "group", "by": "ITEM.n", "aggregate": {"count": {"op": "count"}}},
            [{"key": 2, "count": 2}, {"key": 5, "count": 1}],
        ),
        (
            {
                "operation": "aggregate",
                "aggregate": {
                    "sum": {"op": "sum", "expr": "ITEM.n"},
                    "avg": {"op": "avg", "expr": "ITEM.n"},
                    "low": {"op": "min", "expr": "ITEM.name"},
                    "high": {"op": "max", "expr": "ITEM.n"},
                    "twos": {"op": "count", "expr": "ITEM.n == 2"},
                    "first": {"op": "first", "expr": "ITEM.name"},
                    "last": {"op": "last", "expr": "ITEM.name"},
                    "all": {"op": "collect", "expr": "ITEM.n"},
                },
            },
            {"sum": 9, "avg": 3.0, "low": "a", "high": 5, "twos": 2, "first": "b", "last": "c", "all": [2, 5, 2]},
        ),
    ],
)
def test_an_operation_over_rows(args: dict[str, Any], expected: JSON) -> None:
    run = shaped(ROWS, **args)
    assert run.output("d") == {"result": expected}


def test_merge_of_objects_and_of_lists() -> None:
    deep = shaped([{"a": {"x": 1, "y": 1}}, {"a": {"y": 2}}], operation="merge", deep=True)
    flat = shaped([{"a": {"x": 1}}, {"a": {"y": 2}}], operation="merge")
    lists = shaped(None, operation="merge", inputs=["[1, 2]", "[3]"])
    assert deep.output("d") == {"result": {"a": {"x": 1, "y": 2}}}
    assert flat.output("d") == {"result": {"a": {"y": 2}}}
    assert lists.output("d") == {"result": [1, 2, 3]}


def test_flatten_goes_as_deep_as_asked() -> None:
    nested = [1, [2, [3, [4]]]]
    assert shaped(nested, operation="flatten").output("d") == {"result": [1, 2, [3, [4]]]}
    assert shaped(nested, operation="flatten", depth=3).output("d") == {"result": [1, 2, 3, 4]}


def test_a_key_of_true_is_not_a_key_of_one() -> None:
    run = shaped([True, 1, 1.0, "1"], operation="group", by="ITEM")
    assert [len(group["items"]) for group in run.output("d")["result"]] == [1, 2, 1]


def test_nothing_aggregates_to_nothing() -> None:
    run = shaped(
        [], operation="aggregate", aggregate={"s": {"op": "sum", "expr": "ITEM"}, "a": {"op": "avg", "expr": "ITEM"}}
    )
    assert run.output("d") == {"result": {"s": 0, "a": None}}


@pytest.mark.parametrize(
    ("payload", "args"),
    [
        ({"not": "a list"}, {"operation": "filter", "where": "true"}),
        ("text", {"operation": "flatten"}),
        (None, {"operation": "map", "each": "ITEM"}),
        ([1, "a"], {"operation": "sort"}),
        ([1, True], {"operation": "sort"}),
        ([{}, []], {"operation": "merge"}),
        ([{"a": 1}], {"operation": "group", "by": "ITEM"}),
        (["a"], {"operation": "aggregate", "aggregate": {"s": {"op": "sum", "expr": "ITEM"}}}),
        (
            [2**63 - 1, 2**63 - 1, 2**63 - 1],
            {"operation": "aggregate", "aggregate": {"s": {"op": "sum", "expr": "ITEM"}}},
        ),
        ([[1]] * 100_001, {"operation": "flatten"}),
    ],
)
def test_an_input_that_does_not_fit_fails_the_step(payload: JSON, args: dict[str, Any]) -> None:
    run = shaped(payload, **args)
    assert run.error("d") == "DATAFLOW_FAILED"
    assert run.state.error is not None


def test_an_expression_that_errs_on_one_element_fails_the_step() -> None:
    run = shaped([{"a": 1}, {}], operation="map", each="ITEM.a")
    assert run.error("d") == "EXPRESSION_ERROR"


def test_numbers_pass_through_exactly() -> None:
    numbers = {"id": 9007199254740993, "f": 0.1, "e": 1e-140, "h": 1e300, "t": True, "max": 2**63 - 1}
    run = shaped(numbers, operation="project", project={name: f"INPUT.{name}" for name in numbers})
    assert run.output("d") == {"result": numbers}
    assert isinstance(run.output("d")["result"]["t"], bool)


def test_thousands_of_expensive_evaluations_are_refused_before_they_take_a_second() -> None:
    rows = [{"v": list(range(300))} for _ in range(500)]
    began = time.perf_counter()
    run = shaped(rows, operation="map", each="ITEM.v.filter(x, ITEM.v.exists(y, y == x)).size()")
    assert run.error("d") == "EXPRESSION_ERROR"
    assert time.perf_counter() - began < 2
