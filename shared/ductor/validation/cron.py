"""Cron expressions with five fields: whether one is well formed and can ever fire. Computes no firing times."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from croniter import croniter

_PART: Final = r"(?:\*|[0-9]{1,2}|[A-Za-z]{3})(?:-(?:[0-9]{1,2}|[A-Za-z]{3}))?(?:/[0-9]{1,2})?"
_FIELD: Final = re.compile(rf"{_PART}(?:,{_PART})*", re.ASCII)
_LONGEST_MONTH: Final = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MAX_TEXT: Final = 500
_NAMES: Final = ("minute", "hour", "day of month", "month", "day of week")


class Cron:
    """A parsed expression: the allowed values per field; None stands for every value (`*`)."""

    def __init__(self, fields: list[frozenset[int] | None]) -> None:
        self.minutes, self.hours, self.days, self.months, self.weekdays = fields

    def ever_fires(self) -> bool:
        """Whether any calendar day fits; with both day fields restricted either suffices (POSIX)."""
        if self.days is None or self.weekdays is not None:
            return True
        return any(min(self.days) <= _LONGEST_MONTH[month] for month in self.months or range(1, 13))

    def fires_at(self, local: datetime) -> bool:
        """Whether it fires in this minute of local time."""
        pairs = ((self.minutes, local.minute), (self.hours, local.hour), (self.months, local.month))
        if any(allowed is not None and value not in allowed for allowed, value in pairs):
            return False
        by_day = self.days is not None and local.day in self.days
        by_weekday = self.weekdays is not None and local.isoweekday() % 7 in self.weekdays
        return by_day or by_weekday or (self.days is None and self.weekdays is None)


def parse_cron(text: str) -> Cron | str:
    """The parsed expression, or what is wrong with it. Takes well under a millisecond whatever the text."""
    fields = text.split() if len(text) <= _MAX_TEXT else []
    if len(fields) != len(_NAMES):
        return "must have five fields: minute, hour, day of month, month, day of week; for example 0 9 * * MON-FRI"
    for name, field in zip(_NAMES, fields, strict=True):
        if _FIELD.fullmatch(field) is None:
            return f"the {name} '{field[:40]}' is not made of *, numbers, names, ranges, steps and commas"
    try:
        expanded = croniter.expand(" ".join(fields))[0]
    except (ValueError, KeyError, IndexError) as error:
        return f"is no cron expression: {' '.join(str(error).split())[:200]}"
    return Cron([None if "*" in values else frozenset(map(int, values)) for values in expanded])
