"""Compares JSON values and says where they differ. `1` and `1.0` are the same number, `true` is none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ductor.model.json import JSON, encode

MAX_DIFFERENCES: Final = 12
_MAX_SHOWN: Final = 400


def differences(expected: JSON, actual: JSON, *, part: bool, at: str = "") -> Iterator[str]:
    """Each place where `actual` is not as `expected`; with `part`, fields that `expected` does not name may be there.

    Lists are compared item by item, as a whole, in both ways.
    """
    if isinstance(expected, dict) and isinstance(actual, dict):
        yield from _of_objects(expected, actual, part=part, at=at)
    elif isinstance(expected, list) and isinstance(actual, list):
        yield from _of_lists(expected, actual, part=part, at=at)
    elif not same(expected, actual):
        yield f"{at or 'the value'}: expected {text(expected)}, was {text(actual)}"


def _of_objects(expected: dict[str, JSON], actual: dict[str, JSON], *, part: bool, at: str) -> Iterator[str]:
    for key, value in expected.items():
        where = f"{at}.{key}" if at else key
        if key not in actual:
            yield f"{where}: expected {text(value)}, is missing"
        else:
            yield from differences(value, actual[key], part=part, at=where)
    if not part:
        for key in actual.keys() - expected.keys():
            yield f"{at}.{key}: is there, was not expected" if at else f"{key}: is there, was not expected"


def _of_lists(expected: list[JSON], actual: list[JSON], *, part: bool, at: str) -> Iterator[str]:
    if len(expected) != len(actual):
        yield f"{at or 'the list'}: expected {len(expected)} items, were {len(actual)}"
    for place, (one, other) in enumerate(zip(expected, actual, strict=False)):
        yield from differences(one, other, part=part, at=f"{at}[{place}]")


def same(one: JSON, other: JSON) -> bool:
    """Whether two values are equal as JSON."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def text(value: JSON) -> str:
    """A value in one line, cut where it becomes long."""
    shown = value if isinstance(value, str) and value.isidentifier() else encode(value).decode()
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}…"
