"""Only what JSON holds exactly leaves an action."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import math
import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ductor.actions.exact import MAX_DEPTH, NotExactError, exact
from ductor.model.json import decode


class Colour(enum.StrEnum):
    RED = "red"


class Plain(enum.Enum):
    ONE = "one"


@dataclasses.dataclass
class Row:
    a: int = 1


class Text(str):
    pass


def nested(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels - 1):
        value = {"in": value}
    return value


def cycle() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = [value]
    return value


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@given(JSON_VALUES)
def test_every_json_value_passes_unchanged(value: Any) -> None:
    plain, data = exact({"v": value}, "output")

    assert repr(plain) == repr({"v": value})
    assert repr(decode(data)) == repr(plain)


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, -(2**63), 9007199254740993, 1e300, 1e-140, 0.1])
def test_numbers_of_64_bits_stay_exact(number: float) -> None:
    plain, data = exact({"n": number}, "output")

    assert plain["n"] == number
    assert decode(data)["n"] == number


def test_digits_in_a_text_are_no_number() -> None:
    value = {"card": "123456789012345678901234567890"}

    assert exact(value, "output")[0] == value


def test_brackets_in_a_text_are_no_nesting() -> None:
    value = {"text": "[{" * 500}

    assert exact(value, "output")[0] == value


def test_tuples_become_lists_and_enums_their_values() -> None:
    plain, data = exact({"t": (1, (2,)), "c": Colour.RED}, "output")

    assert plain == {"t": [1, [2]], "c": "red"}
    assert type(plain["c"]) is str
    assert data == b'{"t":[1,[2]],"c":"red"}'


def test_the_result_shares_nothing_with_the_value() -> None:
    value = {"items": [1]}
    plain, _ = exact(value, "output")
    value["items"].append(2)

    assert plain == {"items": [1]}


@pytest.mark.parametrize(
    ("value", "place", "reason"),
    [
        ({"a": [1.5, math.nan]}, "output.a[1]", "NaN"),
        ({"a": math.inf}, "output.a", "Infinity"),
        ({"a": -math.inf}, "output.a", "Infinity"),
        ({"a": {1: 2}}, "output.a", "keys are strings"),
        ({1: 2, "1": 3}, "output", "keys are strings"),
        ({None: 2}, "output", "keys are strings"),
        ({"a": 2**64}, "output.a", "64 bit"),
        ({"a": -(2**63) - 1}, "output.a", "64 bit"),
        ({"a": 10**42}, "output.a", "64 bit"),
        ({"a": "\ud800"}, "output.a", "surrogate"),
        ({"\udfff": 1}, "output", "surrogate"),
        ({"a": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)}, "output.a", "datetime"),
        ({"a": datetime.timedelta(1)}, "output.a", "timedelta"),
        ({"a": uuid.UUID(int=1)}, "output.a", "UUID"),
        ({"a": decimal.Decimal("1.0")}, "output.a", "Decimal"),
        ({"a": b"x"}, "output.a", "bytes"),
        ({"a": bytearray(b"x")}, "output.a", "bytearray"),
        ({"a": {1, 2}}, "output.a", "set"),
        ({"a": Row()}, "output.a", "Row"),
        ({"a": Plain.ONE}, "output.a", "Plain"),
        ({"a": Text("x")}, "output.a", "Text"),
        ({"a": msgspec.Raw(b"1")}, "output.a", "Raw"),
        ({"a": msgspec.Raw(b"NaN")}, "output.a", "Raw"),
        ({"a": object()}, "output.a", "object"),
        (cycle(), "output", "contains itself"),
        (nested(MAX_DEPTH + 1), "output", "nested deeper"),
        (nested(100_000), "output", "nested deeper"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_place(value: Any, place: str, reason: str) -> None:
    with pytest.raises(NotExactError) as refused:
        exact(value, "output")

    assert str(refused.value).startswith(f"{place}: ")
    assert reason in str(refused.value)


def test_the_deepest_allowed_nesting_passes() -> None:
    assert exact(nested(MAX_DEPTH), "output")[0] == nested(MAX_DEPTH)


def test_a_refusal_never_shows_the_value() -> None:
    with pytest.raises(NotExactError) as refused:
        exact({"a": b"secret-token"}, "output")

    assert "secret-token" not in str(refused.value)
