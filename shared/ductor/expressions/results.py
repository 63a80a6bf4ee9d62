"""Turns what the CEL runtime returns into plain JSON. Never lets an error, NaN or a non-JSON value pass as a value."""

from __future__ import annotations

import base64
import datetime
import math
from typing import Final

import msgspec
from cel_expr_python import cel

from ductor.expressions.errors import ExpressionError
from ductor.model.json import JSON

MAX_RESULT_BYTES: Final = 5_000_000
"""The largest result, as JSON. A step's output has the same limit."""

MAX_RESULT_VALUES: Final = 400_000
"""The most scalars, lists and maps in one result; more would take over a second to read back."""

_ERROR_NAMES: Final = frozenset({"ERROR", "UNKNOWN"})
_INT_MIN: Final = -(1 << 63)
_UINT_MAX: Final = (1 << 64) - 1
_encode = msgspec.json.Encoder().encode


def json_of(value: cel.Value, source: str) -> JSON:
    """The JSON form of an evaluated value.

    Timestamps and durations become their CEL strings (nanoseconds kept), bytes base64, unsigned integers plain ones.
    Raises ExpressionError for an error value at any depth, a key that is not a string, NaN, Infinity, an integer
    beyond 64 bits, a type, and a result over `MAX_RESULT_BYTES`.
    """
    try:
        plain = _Reader(source).convert(value)
        if isinstance(plain, str | list | dict) and len(plain) > 0:
            _check_size(plain, source)
    except RecursionError:
        raise ExpressionError("the result is nested too deeply", source) from None
    return plain


def _check_size(plain: JSON, source: str) -> None:
    if isinstance(plain, str) and len(plain) * 6 <= MAX_RESULT_BYTES:
        return
    if len(_encode(plain)) > MAX_RESULT_BYTES:
        raise ExpressionError(f"the result is over {MAX_RESULT_BYTES} bytes", source)


class _Reader:
    """Reads one result, counting what it reads, so that a small result that refers to itself often stays bounded."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._left = MAX_RESULT_VALUES

    def convert(self, value: cel.Value) -> JSON:
        plain = value.value()
        # An error's value is a string like any other: only its type tells.
        if isinstance(plain, str):
            if value.type().name() in _ERROR_NAMES:
                raise ExpressionError(plain.partition(": ")[2] or plain, self._source)
            return plain
        if plain is None or isinstance(plain, bool):
            return plain
        if isinstance(plain, int | float):
            return _number(plain, self._source)
        return self._compound(plain, value)

    def _compound(self, plain: JSON, value: cel.Value) -> JSON:
        if isinstance(plain, list):
            self._count(len(plain) + 1)
            return [self.convert(item) for item in plain]
        if isinstance(plain, dict):
            self._count(len(plain) + 1)
            return {_key(key, self._source): self.convert(item) for key, item in plain.items()}
        if isinstance(plain, bytes | bytearray):
            return base64.b64encode(plain).decode("ascii")
        if isinstance(plain, datetime.datetime | datetime.timedelta):
            return str(value)
        raise ExpressionError(f"a result of type {value.type().name()} has no JSON form", self._source)

    def _count(self, values: int) -> None:
        self._left -= values
        if self._left < 0:
            raise ExpressionError(f"the result has over {MAX_RESULT_VALUES} values", self._source)


def _key(key: JSON, source: str) -> str:
    if isinstance(key, str):
        return key
    raise ExpressionError(f"map keys of a result must be strings, not {key!r}", source)


def _number(number: int | float, source: str) -> int | float:
    if isinstance(number, float):
        if math.isfinite(number):
            return number
        raise ExpressionError(f"the result is {number}, which JSON cannot hold", source)
    if _INT_MIN <= number <= _UINT_MAX:
        return number
    raise ExpressionError("the result is an integer beyond 64 bits", source)


def checked(plain: JSON, source: str) -> JSON:
    """The same guarantees for a value taken from the bindings as it is; containers in them are trusted to be JSON."""
    if isinstance(plain, bool | str | list | dict) or plain is None:
        return plain
    if isinstance(plain, int | float):
        return _number(plain, source)
    raise ExpressionError(f"a value of type {type(plain).__name__} is not JSON", source)
