"""The strict reader refuses what cannot be stored exactly, and says where it stands."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ductor.api.json_reader import MAX_BODY_BYTES, read_json, read_object
from ductor.model.errors import ErrorCode, RefusedError


def refusal(data: bytes) -> tuple[ErrorCode, str, str]:
    with pytest.raises(RefusedError) as caught:
        read_object(data)
    (violation,) = caught.value.violations
    return caught.value.error_code, violation.code, violation.field


@pytest.mark.parametrize(
    ("data", "code", "field"),
    [
        (b'{"input": {"x": NaN}}', "JSON_INVALID", "input.x"),
        (b'{"input": [1, Infinity]}', "JSON_INVALID", "input[1]"),
        (b'{"a": -Infinity}', "JSON_INVALID", "a"),
        (b'{"a": 1e400}', "NUMBER_OUT_OF_RANGE", "a"),
        (b'{"a": -1.5E999}', "NUMBER_OUT_OF_RANGE", "a"),
        (b'{"a": 1e-400}', "NUMBER_OUT_OF_RANGE", "a"),
        (b'{"a": 123456789012345678901234567890123456789012}', "NUMBER_OUT_OF_RANGE", "a"),
        (b'{"a": 9223372036854775808}', "NUMBER_OUT_OF_RANGE", "a"),
        (b'{"a": ' + b"9" * 100_000 + b"}", "NUMBER_OUT_OF_RANGE", "a"),
        (b'{"a": 1, "a": 1}', "KEY_DUPLICATE", "a"),
        (b'{"b": [{"a": 1, "a": 2}]}', "KEY_DUPLICATE", "b[0].a"),
        (rb'{"a": "\ud800"}', "TEXT_INVALID", "a"),
        (rb'{"a": {"\udfff": 1}}', "TEXT_INVALID", "a"),
        (b'{"a": "\xff"}', "TEXT_INVALID", "body"),
        (b'{"a": "\xed\xa0\x80"}', "TEXT_INVALID", "body"),
        (b"\xff\xfe{\x00}\x00", "TEXT_INVALID", "body"),
        (b"[" * 100_000 + b"]" * 100_000, "NESTING_TOO_DEEP", "body"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "NESTING_TOO_DEEP", "body"),
        (b'{"a":' * 202 + b"1" + b"}" * 202, "NESTING_TOO_DEEP", "body"),
        (b"{", "JSON_INVALID", "body"),
        (b'{"a": 1} trailing', "JSON_INVALID", "body"),
        (b"\xef\xbb\xbf{}", "JSON_INVALID", "body"),
        (b'{"a": "\n"}', "JSON_INVALID", "body"),
        (b"[1]", "FIELD_INVALID", "body"),
        (b"null", "FIELD_INVALID", "body"),
    ],
)
def test_refuses_with_code_and_field(data: bytes, code: str, field: str) -> None:
    assert refusal(data) == (ErrorCode.INVALID_ARGUMENT, code, field)


def test_refuses_more_than_six_megabytes() -> None:
    assert refusal(b" " * (MAX_BODY_BYTES + 1))[0] is ErrorCode.PAYLOAD_TOO_LARGE


def test_an_empty_body_is_an_empty_object() -> None:
    assert read_object(b"") == {}
    assert read_object(b" \r\n") == {}


@pytest.mark.parametrize(
    "number", ["9223372036854775807", "-9223372036854775808", "0.1", "1e-140", "1e300", "0e0", "-0.0"]
)
def test_keeps_numbers_exact(number: str) -> None:
    assert read_json(f"[{number}]".encode()) == json.loads(f"[{number}]")


def test_keeps_whole_surrogate_pairs() -> None:
    assert read_json(rb'"\ud83d\ude00"') == "\N{GRINNING FACE}"


def test_allows_depth_up_to_the_cap() -> None:
    assert read_json(b"[" * 200 + b"]" * 200) == json.loads("[" * 200 + "]" * 200)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_reads_back_every_json_value(value: object) -> None:
    assert read_json(json.dumps(value).encode()) == value


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_a_refusal(data: bytes) -> None:
    with contextlib.suppress(RefusedError):
        read_json(data)
