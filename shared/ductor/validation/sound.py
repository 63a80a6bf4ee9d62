"""Whether a value is plain JSON at all: no matter how deep, large or odd it is, looking at it is safe."""

from __future__ import annotations

import math
from typing import Final

from ductor.model.errors import Violation
from ductor.model.json import JSON
from ductor.steps.reading import clipped, joined

MAX_DEPTH: Final = 100
"""How deep objects and lists may nest."""

MAX_VALUES: Final = 1_000_000
"""How many values a document may hold, repeats through YAML aliases included."""

_MIN_INT: Final = -(1 << 63)
_MAX_INT: Final = (1 << 63) - 1
_MAX_FAULTS: Final = 20


def unsound(raw: JSON) -> list[Violation]:
    """What keeps `raw` from being stored and read back exactly. Empty for plain JSON within the limits."""
    faults: dict[str, Violation] = {}
    stack: list[tuple[JSON, str, int]] = [(raw, "", 0)]
    message: str | None
    seen = 0
    while stack and len(faults) < _MAX_FAULTS:
        value, path, depth = stack.pop()
        seen += 1
        if seen > MAX_VALUES:
            message = f"holds more than {MAX_VALUES} values; split the definition"
            return [Violation("", "FIELD_INVALID", message)]
        if isinstance(value, dict | list):
            if depth >= MAX_DEPTH:
                faults[path] = Violation(path, "FIELD_INVALID", f"nests deeper than {MAX_DEPTH} levels; flatten it")
                continue
            _push(value, path, depth, stack, faults)
        elif (message := _leaf(value)) is not None:
            faults[path] = Violation(path, "FIELD_INVALID", message)
    return list(faults.values())


def _push(
    value: JSON,
    path: str,
    depth: int,
    stack: list[tuple[JSON, str, int]],
    faults: dict[str, Violation],
) -> None:
    """Children one level below. Paths stop growing after three levels: they are for people, not for machines."""
    if isinstance(value, list):
        stack.extend((item, f"{path}[{index}]" if depth < 3 else path, depth + 1) for index, item in enumerate(value))
        return
    for name, item in value.items():
        if not isinstance(name, str) or _leaf(name) is not None:
            at = path or "definition"
            faults[at] = Violation(at, "FIELD_INVALID", "has a field name that is not text; quote or rename it")
        else:
            below = joined(path, clipped(name))
            stack.append((item, below if depth < 3 else path, depth + 1))


def _leaf(value: JSON) -> str | None:
    if isinstance(value, str):
        return None if value.isascii() or _encodes(value) else "holds half of a surrogate pair; write proper Unicode"
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        return None if _MIN_INT <= value <= _MAX_INT else "does not fit 64 bits; write it as a string"
    if isinstance(value, float):
        return None if math.isfinite(value) else "NaN and Infinity are no JSON numbers; use a string or null"
    return f"is no JSON value ({type(value).__name__}); write it as a string"


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
