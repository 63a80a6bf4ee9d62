"""Accepts only values that JSON holds exactly, and encodes them once. Never rounds, renames or guesses."""

from __future__ import annotations

import math
import re
from enum import Enum
from typing import Final

import msgspec

from ductor.model.json import JSON, decode, encode

MAX_DEPTH: Final = 256
"""Deepest nesting of objects and lists, the outermost counted. A request is at most 200 deep: it can be wrapped."""

_INT_MIN: Final = -(1 << 63)
_INT_MAX: Final = (1 << 64) - 1
# No integer of fewer digits is beyond 64 bits. Digits inside a text are found too, and only cost a closer look.
_long_number: Final = re.compile(rb"[0-9]{19}").search


class NotExactError(ValueError):
    """The value has no exact JSON form. The text names the place and the reason, never the value."""


def exact(value: object, name: str) -> tuple[JSON, bytes]:
    """`value` as plain JSON of its own (nothing shared with `value`) and its encoding. `name` starts each path.

    Tuples become lists, enums that are strings or integers their values. Raises NotExactError for NaN, Infinity, keys
    that are not strings, integers beyond 64 bits, cycles, nesting over `MAX_DEPTH`, lone surrogates, any other type.
    """
    try:
        data = encode(value)
        # A text may hold brackets too: then the closer look below decides.
        if data.count(b"{") + data.count(b"[") <= MAX_DEPTH:
            plain = decode(data)
            # The encoder writes NaN as null, dates as text and so on; whatever it changed no longer equals itself.
            if plain == value and _long_number(data) is None:
                return plain, data
    except (TypeError, ValueError, ArithmeticError, RecursionError, msgspec.MsgspecError) as refused:
        raise NotExactError(_fault(value, name) or f"{name}: {refused}") from None
    return _looked_at(value, data, name)


def holds_non_finite(value: object) -> bool:
    """Whether NaN or Infinity stands anywhere in `value`, which must not contain itself."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, float):
            if not math.isfinite(item):
                return True
        elif isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list | tuple | set | frozenset):
            pending.extend(item)
    return False


def _looked_at(value: object, data: bytes, name: str) -> tuple[JSON, bytes]:
    """The slow path: nothing is refused only because the quick comparison was in doubt."""
    found = _fault(value, name)
    if found is not None:
        raise NotExactError(found)
    return decode(data), data


def _fault(value: object, name: str) -> str | None:
    """The first fault in reading order. Iterative, and cut off at `MAX_DEPTH`, so a cycle ends too."""
    pending: list[tuple[object, str, int]] = [(value, name, 1)]
    while pending:
        item, path, depth = pending.pop()
        if isinstance(item, dict | list | tuple):
            if depth > MAX_DEPTH:
                return f"{name}: nested deeper than {MAX_DEPTH} levels, or contains itself"
            if isinstance(item, dict):
                reason = next(filter(None, map(_key_fault, item)), None)
                if reason is not None:
                    return f"{path}: {reason}"
                inner = [(child, f"{path}.{key}"[:500], depth + 1) for key, child in item.items()]
            else:
                inner = [(child, f"{path}[{index}]"[:500], depth + 1) for index, child in enumerate(item)]
            pending.extend(reversed(inner))
            continue
        reason = _scalar_fault(item)
        if reason is not None:
            return f"{path}: {reason}"
    return None


def _key_fault(key: object) -> str | None:
    if not isinstance(key, str):
        return f"a key is {_a(key)}; keys are strings"
    return "a key holds a lone surrogate" if _has_surrogate(key) else None


def _scalar_fault(item: object) -> str | None:
    if item is None or isinstance(item, bool):
        return None
    if isinstance(item, str):
        return "the text holds a lone surrogate" if _has_surrogate(item) else _subclass_fault(item, str)
    if isinstance(item, int):
        fits = _INT_MIN <= item <= _INT_MAX
        return _subclass_fault(item, int) if fits else "the integer does not fit into 64 bits; write it as a string"
    if isinstance(item, float):
        return _subclass_fault(item, float) if math.isfinite(item) else "NaN and Infinity have no JSON form"
    return f"{_a(item)} has no exact JSON form; convert it first"


def _subclass_fault(item: object, base: type) -> str | None:
    if type(item) is base or isinstance(item, Enum):
        return None
    return f"{_a(item)} has no exact JSON form; convert it to {base.__name__} first"


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _a(item: object) -> str:
    return f"a value of type {type(item).__name__}"
