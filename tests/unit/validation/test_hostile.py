"""Documents that were made to hurt: they are refused like any other, and soon."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.validation.samples import OFFLINE, codes, doc, echo, errors, found

from ductor.validation.document import check_saveable


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"x": value}
    return value


def _deep_list(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


HOSTILE: dict[str, Any] = {
    "args nested 100,000 deep": doc(echo(args=_deep(100_000))),
    "a list nested 100,000 deep as the document": _deep_list(100_000),
    "an input schema nested deep": doc(input_schema=_deep(100_000)),
    "an integer of 5,000 digits": doc(echo(retry_max_attempts=10**5_000)),
    "an integer of 42 digits in args": doc(echo(args={"x": 10**42})),
    "NaN in args": doc(echo(args={"x": float("nan")})),
    "half a surrogate pair": doc(echo("\ud800", title="\udfff"), title="\ud800"),
    "half a surrogate pair as a name": doc() | {"\ud800": 1},
    "names that are no text": {1: 2, None: 3, "steps": [{4: 5}]},
    "200,000 unknown fields": {f"k{index}": 1 for index in range(200_000)},
    "200,000 unknown args": doc({"ref": "w", "type": "wait", "args": {f"k{n}": 1 for n in range(200_000)}}),
    "100,000 tags": doc(tags=["t"] * 100_000),
    "a title of 1 MB": doc(title="x" * 1_000_000),
    "a ref of 1 MB": doc(echo("x" * 1_000_000)),
    "an action of 1 MB": doc(echo(action="x" * 1_000_000)),
    "a type of 1 MB": doc(echo(type="x" * 1_000_000)),
    "a condition of 1 MB": doc(echo(condition="1 + " * 250_000)),
    "a template opened 100,000 times": doc(echo(args={"x": "${{ " * 100_000})),
    "a cron of 1 MB": doc(schedule={"cron": "* " * 500_000}),
    "a time zone of 1 MB": doc(schedule={"cron": "* * * * *", "timezone": "x" * 1_000_000}),
    "a pattern of 1 MB": doc(triggers=[{"patterns": ["a." * 500_000]}]),
    "a schema that doubles at every level": doc(
        input_schema={
            "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {"d40": {}},
            "$ref": "#/$defs/d0",
        }
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.timeout(10)
def test_a_hostile_document_is_refused_in_bounded_size(name: str) -> None:
    violations = found(HOSTILE[name], OFFLINE)
    assert errors(HOSTILE[name], OFFLINE)
    assert len(violations) <= 1_000
    assert len(json.dumps([(item.field, item.code, item.message) for item in violations]).encode()) < 1_000_000
    for item in violations:
        f"{item.field}{item.message}".encode()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_can_be_asked_whether_it_may_be_saved(name: str) -> None:
    assert isinstance(check_saveable(HOSTILE[name]), list)


def test_nesting_within_the_limit_is_fine() -> None:
    assert found(doc(echo(args=_deep(90)))) == []


@pytest.mark.parametrize("value", [9223372036854775807, -9223372036854775808, 1e300, "é", "😀"])
def test_values_that_json_holds_exactly_are_fine(value: Any) -> None:
    assert codes(doc(echo(args={"x": value}))) == set()
