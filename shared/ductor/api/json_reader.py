"""Strict reading of request bodies: what JSON leaves open (NaN, huge numbers, repeated keys, depth) is refused here.

Nothing past this door has to expect a value that cannot be stored, compared or written out again.
"""

from __future__ import annotations

import json
import re
from typing import Final

from ductor.model.errors import ErrorCode, RefusedError, refuse
from ductor.model.json import JSON

MAX_BODY_BYTES: Final = 6 * 1024 * 1024
"""Largest request body. Lambda takes no more."""

MAX_DEPTH: Final = 200
"""Deepest nesting of objects and arrays in a request body."""

BODY: Final = "body"
_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1
_INT64_DIGITS: Final = 20
_SURROGATE_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class _Fault:
    """Stands in the parsed value where something was refused, so that its path can be told."""

    __slots__ = ("code", "message")

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = message


class _Hooks:
    """The callbacks of one parse. `faulty` is set when a `_Fault` stands somewhere in the result."""

    __slots__ = ("faulty",)

    def __init__(self) -> None:
        self.faulty = False

    def fault(self, code: str, message: str) -> _Fault:
        self.faulty = True
        return _Fault(code, message)

    def integer(self, text: str) -> int | _Fault:
        if len(text) <= _INT64_DIGITS:
            value = int(text)
            if _INT64_MIN <= value <= _INT64_MAX:
                return value
        return self.fault("NUMBER_OUT_OF_RANGE", "integers must fit into 64 bits; send a larger one as a string")

    def real(self, text: str) -> float | _Fault:
        value = float(text)
        if value - value != 0.0:
            return self.fault("NUMBER_OUT_OF_RANGE", "this number is too large for a 64-bit float")
        if value == 0.0 and text.lower().partition("e")[0].strip("-0."):
            return self.fault("NUMBER_OUT_OF_RANGE", "this number is too small for a 64-bit float")
        return value

    def constant(self, text: str) -> _Fault:
        return self.fault("JSON_INVALID", f"{text} is not JSON; use a string or null")

    def members(self, pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
        found = dict(pairs)
        if len(found) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    found[key] = self.fault("KEY_DUPLICATE", "this key appears twice in one object; keep one of them")
                seen.add(key)
        return found


def read_json(data: bytes, called: str = "the body") -> JSON:
    """The value of a request body, or of what `called` says it is; an empty one is `{}`.

    Raises RefusedError: PAYLOAD_TOO_LARGE over `MAX_BODY_BYTES`; else INVALID_ARGUMENT with one of `TEXT_INVALID`,
    `JSON_INVALID`, `NUMBER_OUT_OF_RANGE`, `KEY_DUPLICATE`, `NESTING_TOO_DEEP` and the path of the offending value.
    """
    if len(data) > MAX_BODY_BYTES:
        raise too_large()
    if not data.strip():
        return {}
    hooks = _Hooks()
    value = _parse(data, hooks, called)
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH:
        _check_depth(value)
    if hooks.faulty or _SURROGATE_ESCAPE.search(data):
        _refuse_first_fault(value)
    return value


def read_object(data: bytes) -> dict[str, JSON]:
    """Like `read_json`, for bodies that must be an object."""
    value = read_json(data)
    if not isinstance(value, dict):
        raise _invalid("FIELD_INVALID", "the body must be a JSON object", BODY)
    return value


def too_large() -> RefusedError:
    """The refusal of a body over `MAX_BODY_BYTES`."""
    message = f"at most {MAX_BODY_BYTES} bytes of JSON are taken"
    return refuse(ErrorCode.PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE", message, BODY)


def _parse(data: bytes, hooks: _Hooks, called: str) -> JSON:
    try:
        return json.loads(
            data.decode("utf-8"),
            parse_int=hooks.integer,
            parse_float=hooks.real,
            parse_constant=hooks.constant,
            object_pairs_hook=hooks.members,
        )
    except UnicodeDecodeError as error:
        raise _invalid("TEXT_INVALID", f"{called} is not UTF-8 (byte {error.start})", BODY) from None
    except json.JSONDecodeError as error:
        message = f"{called} is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        raise _invalid("JSON_INVALID", message, BODY) from None
    except RecursionError:
        raise _too_deep() from None


def _check_depth(value: JSON) -> None:
    """Level by level, so that no depth can exhaust the stack."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        below: list[JSON] = []
        for container in level:
            children = container.values() if isinstance(container, dict) else container
            below += [child for child in children if type(child) in {dict, list}]
        if not below:
            return
        level = below
    raise _too_deep()


def _refuse_first_fault(value: JSON) -> None:
    """Raise for the first fault or lone surrogate in reading order. Iterative, so no depth matters."""
    stack: list[tuple[str, JSON]] = [("", value)]
    while stack:
        path, found = stack.pop()
        if isinstance(found, _Fault):
            raise _invalid(found.code, found.message, path or BODY)
        if isinstance(found, str) and _SURROGATE.search(found):
            raise _invalid("TEXT_INVALID", "this text holds half of a surrogate pair", path or BODY)
        if isinstance(found, list):
            stack += [(f"{path}[{index}]", child) for index, child in enumerate(found)][::-1]
        elif isinstance(found, dict):
            if any(_SURROGATE.search(key) for key in found):
                raise _invalid("TEXT_INVALID", "a key in here holds half of a surrogate pair", path or BODY)
            stack += [(f"{path}.{key}" if path else key, child) for key, child in found.items()][::-1]


def _too_deep() -> RefusedError:
    return _invalid("NESTING_TOO_DEEP", f"objects and arrays may be nested {MAX_DEPTH} deep", BODY)


def _invalid(code: str, message: str, field: str) -> RefusedError:
    return refuse(ErrorCode.INVALID_ARGUMENT, code, message, field)
