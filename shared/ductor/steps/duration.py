"""Durations as people write them, to milliseconds: `2s`, `1h30m`, `250ms`, `PT2S`, `P1DT2H`. Knows no calendar."""

from __future__ import annotations

import re
from typing import Final

MAX_DURATION_MS: Final = 366 * 86_400_000
"""The longest wait: 366 days."""

_MAX_TEXT: Final = 64
_UNIT_MS: Final = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_NUMBER: Final = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
_SHORT: Final = re.compile(
    "".join(rf"(?:(?P<{unit}>{_NUMBER}){unit})?" for unit in ("w", "d", "h")) + rf"(?:(?P<m>{_NUMBER})m(?!s))?"
    rf"(?:(?P<s>{_NUMBER})s)?(?:(?P<ms>{_NUMBER})ms)?",
    re.ASCII,
)
_ISO: Final = re.compile(
    rf"P(?:(?P<w>{_NUMBER})W)?(?:(?P<d>{_NUMBER})D)?"
    rf"(?:T(?=[0-9])(?:(?P<h>{_NUMBER})H)?(?:(?P<m>{_NUMBER})M)?(?:(?P<s>{_NUMBER})S)?)?",
    re.ASCII,
)

FORMS: Final = "like 2s, 1h30m, 250ms, PT2S or P1DT2H"
"""The accepted forms, for messages."""


def parse_duration(text: str) -> int | None:
    """Milliseconds, rounded down; None when `text` is not a duration.

    Short form: numbers with the units w d h m s ms, in this order, each at most once. ISO 8601: weeks, days, hours,
    minutes and seconds; years and months are refused because their length varies. No sign, no upper bound: callers
    hold their own limits (`MAX_DURATION_MS`).
    """
    if not text or len(text) > _MAX_TEXT:
        return None
    match = _ISO.fullmatch(text) if text[0] == "P" else _SHORT.fullmatch(text)
    if match is None:
        return None
    parts = {unit: number for unit, number in match.groupdict().items() if number is not None}
    if not parts:
        return None
    return sum(_scaled(number, _UNIT_MS[unit]) for unit, number in parts.items())


def _scaled(number: str, unit_ms: int) -> int:
    """Exact: a float would turn 0.29 s into 289 ms."""
    whole, _, fraction = number.partition(".")
    return int(whole) * unit_ms + (int(fraction) * unit_ms // 10 ** len(fraction) if fraction else 0)
