"""Cron expressions with five fields: whether one is well formed, can ever fire, and fires in a minute of local time.

Knows no time zone. With both day fields restricted either suffices (POSIX); `7` is Sunday; ranges may wrap.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Final

from croniter import croniter

_PART: Final = r"(?:\*|[0-9]{1,2}|[A-Za-z]{3})(?:-(?:[0-9]{1,2}|[A-Za-z]{3}))?(?:/[0-9]{1,2})?"
_FIELD: Final = re.compile(rf"{_PART}(?:,{_PART})*", re.ASCII)
_LONGEST_MONTH: Final = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MAX_TEXT: Final = 500
_NAMES: Final = ("minute", "hour", "day of month", "month", "day of week")
_DAY, _WEEKDAY = 2, 4
_LAST_YEAR: Final = 9_999
_MINUTE: Final = timedelta(minutes=1)
_DAY_LONG: Final = timedelta(days=1)
_MIDNIGHT: Final = (0, 0)


class Cron:
    """A parsed expression: the allowed values per field; None stands for every value (`*`)."""

    def __init__(self, fields: list[frozenset[int] | None]) -> None:
        self.minutes, self.hours, self.days, self.months, self.weekdays = fields
        self._hours, self._minutes = sorted(self.hours or range(24)), sorted(self.minutes or range(60))

    @property
    def hourly(self) -> bool:
        """Whether every hour is allowed: such a schedule follows elapsed time when clocks change."""
        return self.hours is None

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
        return self._fits(local)

    def next_local(self, wall: datetime) -> datetime | None:
        """The first minute after a naive local time; None when there is none before the year 9999."""
        if not self.ever_fires():
            return None
        moment = wall.replace(second=0, microsecond=0) + _MINUTE
        day, earliest = moment.date(), (moment.hour, moment.minute)
        while day.year < _LAST_YEAR:
            if self.months is not None and day.month not in self.months:
                day, earliest = _next_month(day), _MIDNIGHT
                continue
            found = self._time_from(*earliest) if self._fits(day) else None
            if found is not None:
                return datetime.combine(day, found)
            day, earliest = day + _DAY_LONG, _MIDNIGHT
        return None

    def _time_from(self, hour: int, minute: int) -> time | None:
        """The first time of a day at or after this one."""
        place = bisect_left(self._hours, hour)
        if self._hours[place : place + 1] == [hour]:
            later = bisect_left(self._minutes, minute)
            if later < len(self._minutes):
                return time(hour, self._minutes[later])
            place += 1
        return time(self._hours[place], self._minutes[0]) if place < len(self._hours) else None

    def _fits(self, day: date) -> bool:
        """Whether it fires on this day of an allowed month; with both day fields restricted either suffices (POSIX)."""
        by_day = self.days is not None and day.day in self.days
        by_weekday = self.weekdays is not None and day.isoweekday() % 7 in self.weekdays
        return by_day or by_weekday or (self.days is None and self.weekdays is None)


@lru_cache(maxsize=512)
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
    return Cron(_days_together(fields, [None if "*" in values else frozenset(map(int, values)) for values in expanded]))


def _days_together(fields: list[str], values: list[frozenset[int] | None]) -> list[frozenset[int] | None]:
    """A day field that lists every day (`MON-SUN`) is restricted by name, and with 'either suffices' allows any day."""
    for place in (_DAY, _WEEKDAY):
        if values[place] is None and not fields[place].startswith("*"):
            values[_DAY] = values[_WEEKDAY] = None
    return values


def _next_month(day: date) -> date:
    """The first day of the month after."""
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)
