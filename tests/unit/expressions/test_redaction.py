"""What readers of a run see instead of its values."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ductor.expressions import redact

KEY = b"tenant"


def hashed(value: Any, key: bytes = KEY) -> Any:
    return redact(value, "hashed", key)


def test_structure_and_keys_stay_and_every_leaf_is_hidden() -> None:
    shown = hashed({"a": [1, {"b": "secret"}], "c": None, "d": True, "e": [], "f": {}})
    leaves = [shown["a"][0], shown["a"][1]["b"], shown["c"], shown["d"]]
    assert all(re.fullmatch(r"sha256:[0-9a-f]{12}", leaf) for leaf in leaves)
    assert (shown["e"], shown["f"]) == ([], {})


def test_equal_values_look_equal_within_a_tenant_only() -> None:
    assert hashed(["x", "x"])[0] == hashed("x")
    assert hashed("x") != hashed("x", b"other")


def test_types_differ() -> None:
    values = [1, "1", True, "true", None, "null", "", 0, False, 1.5, "1.5", -1]
    assert len({hashed(value) for value in values}) == len(values)


@pytest.mark.parametrize(("a", "b"), [(1, 1.0), (0, -0.0), (10**300, 1e300)])
def test_a_whole_float_looks_like_its_integer(a: Any, b: float) -> None:
    assert (hashed(a) == hashed(b)) is (a == b)


def test_other_policies() -> None:
    value = {"a": 1}
    assert redact(value, "none", KEY) is value
    assert redact(value, "omit", KEY) is None
    with pytest.raises(ValueError, match="unknown redaction policy"):
        redact(value, "plain", KEY)  # type: ignore[arg-type]


def test_text_that_is_not_valid_unicode_is_hidden_too() -> None:
    assert hashed("\ud800").startswith("sha256:")
