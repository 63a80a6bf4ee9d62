"""The instants at which a schedule fires. Pure: the same spec and instant give the same answer, now and in ten years.

Local times that clocks jump over are skipped; repeated ones fire once. A schedule of every hour (`*/15 * * * *`)
follows elapsed time instead: it fires in both passes of a repeated hour.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from ductor.schedules.cron import Cron, parse_cron
from ductor.schedules.spec import Spec

MAX_PREVIEW: Final = 1_000
"""Occurrences that one preview gives at most."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_MS: Final = 220_898_664_000_000
"""The year 8970: beyond it nothing is looked for, so that no date arithmetic can overflow."""

_DAY: Final = timedelta(days=1)
_MINUTE: Final = timedelta(minutes=1)
_WEEKS: Final = 54
_MAX_SKIPPED: Final = 2_000
"""Local minutes that one gap can hold (a day, when a zone crosses the date line), and some."""


def next_after(spec: Spec, instant: int) -> int | None:
    """The first occurrence strictly after `instant` (epoch ms); None when there is none any more.

    A cron that is malformed, or a zone that nobody knows, never fires. Takes about a millisecond.
    """
    after = max(instant, spec.start_at - 1)
    found = _next_by_rate(spec, after) if spec.rate_ms else _next_by_cron(spec, after)
    if found is None or found > _LATEST_MS or (spec.end_at and found >= spec.end_at):
        return None
    return found


def preview(spec: Spec, after: int, count: int) -> list[int]:
    """The next `count` (at most `MAX_PREVIEW`) occurrences after an instant, oldest first; all in epoch ms."""
    found: list[int] = []
    at: int | None = after
    while at is not None and len(found) < min(count, MAX_PREVIEW):
        at = next_after(spec, at)
        if at is not None:
            found.append(at)
    return found


def contains(spec: Spec, instant: int) -> bool:
    """Whether the schedule fires at exactly this instant (epoch ms)."""
    return next_after(spec, instant - 1) == instant


def local_times_skipped(cron: Cron, zone: ZoneInfo, start: int, days: int) -> Iterator[datetime]:
    """Local minutes within `days` of `start` (epoch ms) that the cron wants and the zone's clocks jump over."""
    moment = _moment(min(max(start, 0), _LATEST_MS))
    for _ in range(days):
        after = moment + _DAY
        jump = _offset(zone, after) - _offset(zone, moment)
        if jump > timedelta() and not (cron.hourly and jump % timedelta(hours=1) == timedelta()):
            change = _change(zone, moment, after)
            first = _wall(zone, change) - jump
            minutes = (first + place * _MINUTE for place in range(jump // _MINUTE))
            yield from filter(cron.fires_at, minutes)
        moment = after


def offset_minutes(timezone: str, start: int) -> frozenset[int]:
    """The offsets from UTC that the zone has in the year after `start` (epoch ms), as minutes past the full hour."""
    zone = _zone(timezone)
    if zone is None:
        return frozenset({0})
    moment = _moment(min(max(start, 0), _LATEST_MS))
    weeks = (moment + timedelta(weeks=week) for week in range(_WEEKS))
    return frozenset(int(_offset(zone, week).total_seconds()) // 60 % 60 for week in weeks)


def _next_by_rate(spec: Spec, after: int) -> int | None:
    return spec.start_at + ((after - spec.start_at) // spec.rate_ms + 1) * spec.rate_ms


def _next_by_cron(spec: Spec, after: int) -> int | None:
    cron, zone = parse_cron(spec.cron), _zone(spec.timezone)
    if isinstance(cron, str) or zone is None or after >= _LATEST_MS:
        return None
    moment = _moment(max(after, 0))
    found = _first(cron, zone, _wall(zone, moment), moment)
    if cron.hourly and (change := _change_ahead(zone, moment)) is not None:
        # A repeated hour lies ahead or around: what fires first after the change may come before what the clock face
        # of this side says.
        across = _first(cron, zone, _wall(zone, change) - _MINUTE, moment)
        found = min(filter(None, (found, across)), default=None)
    return None if found is None else (found - _EPOCH) // timedelta(milliseconds=1)


def _first(cron: Cron, zone: ZoneInfo, wall: datetime, after: datetime) -> datetime | None:
    """The first instant after `after` among those of the local times after `wall`."""
    for _ in range(_MAX_SKIPPED):
        local = cron.next_local(wall)
        if local is None:
            return None
        wall = local
        instants = [instant for instant in _instants(local, zone, twice=cron.hourly) if instant > after]
        if instants:
            return min(instants)
    return None


def _instants(local: datetime, zone: ZoneInfo, *, twice: bool) -> Iterator[datetime]:
    """The instants that show this local time: none in a gap; of the two in a repeated hour the first, or both."""
    for fold in (0, 1) if twice else (0,):
        instant = local.replace(tzinfo=zone, fold=fold).astimezone(UTC)
        if _wall(zone, instant) == local:
            yield instant


def _change_ahead(zone: ZoneInfo, moment: datetime) -> datetime | None:
    """The first instant under other clocks, when clocks change within a day."""
    after = moment + _DAY
    return None if _offset(zone, moment) == _offset(zone, after) else _change(zone, moment, after)


def _change(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """The first second whose offset is not that of `before`; `after` has another one."""
    low, high = 0, int((after - before).total_seconds())
    start, offset = before.replace(microsecond=0), _offset(zone, before)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(zone, start + timedelta(seconds=middle)) == offset:
            low = middle
        else:
            high = middle
    return start + timedelta(seconds=high)


def _moment(instant: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=instant)


def _wall(zone: ZoneInfo, moment: datetime) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def _offset(zone: ZoneInfo, moment: datetime) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()


@lru_cache(maxsize=512)
def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        # ZoneInfo answers bad names with ZoneInfoNotFoundError, paths with ValueError, directories with OSError.
        return None
