"""What an outside scheduler must be asked for, so that it calls at every occurrence of a schedule. Calls nobody.

Where calendars cannot say exactly when a schedule fires, it is called oftener; the occurrences themselves come from
`next_after` alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from ductor.model.recurrence import Calendar, Recurrence
from ductor.schedules.cron import Cron, parse_cron
from ductor.schedules.occurrences import offset_minutes
from ductor.schedules.spec import DEFAULT_ZONE, Spec

MINUTE_MS: Final = 60_000
_HOUR: Final = 60
_DAY_HOURS: Final = 24


def recurrence(spec: Spec, now: int) -> Recurrence | None:
    """The calls that a schedule needs from `now` (epoch ms) on; None when it is malformed and never fires."""
    if spec.rate_ms:
        return _bounded(spec, Recurrence((_of_rate(spec),)))
    cron = parse_cron(spec.cron)
    if isinstance(cron, str):
        return None
    if cron.hourly and spec.timezone != DEFAULT_ZONE:
        return _bounded(spec, Recurrence((_every_hour(cron, spec.timezone, now),)))
    return _bounded(spec, Recurrence(tuple(_calendars(cron)), spec.timezone))


def _calendars(cron: Cron) -> Iterator[Calendar]:
    """One per day field: when both are restricted either suffices, which no calendar can say alone."""
    common = {"minutes": _sorted(cron.minutes), "hours": _sorted(cron.hours), "months": _sorted(cron.months)}
    if cron.weekdays is not None:
        yield Calendar(**common, weekdays=_sorted(cron.weekdays))
    if cron.days is not None or cron.weekdays is None:
        yield Calendar(**common, days=_sorted(cron.days))


def _every_hour(cron: Cron, timezone: str, now: int) -> Calendar:
    """A schedule of every hour follows elapsed time, which a calendar of local time would leave out where clocks are

    set back. So it is called in UTC: in the minutes that the zone's clocks show, on any day.
    """
    if cron.minutes is None:
        return Calendar()
    shifts = offset_minutes(timezone, now)
    return Calendar(minutes=_sorted(frozenset((minute - shift) % _HOUR for minute in cron.minutes for shift in shifts)))


def _of_rate(spec: Spec) -> Calendar:
    """The sparsest regular minutes that meet every occurrence; a fraction of a minute is met by the next full one."""
    if spec.rate_ms % MINUTE_MS:
        return Calendar()
    first, every = -(-spec.start_at // MINUTE_MS), spec.rate_ms // MINUTE_MS
    if every % _HOUR:
        step = math.gcd(every, _HOUR)
        return Calendar(minutes=tuple(range(first % step, _HOUR, step)))
    step = math.gcd(every // _HOUR, _DAY_HOURS)
    return Calendar(minutes=(first % _HOUR,), hours=tuple(range(first // _HOUR % step, _DAY_HOURS, step)))


def _bounded(spec: Spec, found: Recurrence) -> Recurrence:
    """With a minute or two to spare on both sides."""
    start = max(0, spec.start_at - MINUTE_MS)
    end = spec.end_at + 2 * MINUTE_MS if spec.end_at else 0
    return Recurrence(found.calendars, found.timezone, start, end)


def _sorted(values: frozenset[int] | None) -> tuple[int, ...]:
    return () if values is None else tuple(sorted(values))
