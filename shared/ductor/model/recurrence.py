"""How often an outside scheduler must call for a schedule, in nobody's dialect. Data only."""

from __future__ import annotations

import msgspec


class ScheduleKey(msgspec.Struct, frozen=True, order=True):
    """What owns a schedule: the newest version of a family in one environment of a tenant."""

    tenant: str
    family_slug: str
    environment: str


class Calendar(msgspec.Struct, frozen=True):
    """Minutes of local time, all fields together; an empty field means every value. Weekdays: 0 to 6 from Sunday.

    Of `days` and `weekdays` at most one is given.
    """

    minutes: tuple[int, ...] = ()
    hours: tuple[int, ...] = ()
    days: tuple[int, ...] = ()
    months: tuple[int, ...] = ()
    weekdays: tuple[int, ...] = ()


class Recurrence(msgspec.Struct, frozen=True):
    """When to call: at least in the minute of every occurrence, perhaps oftener, never needed outside of the bounds.

    Calling too often or twice is harmless: whoever is called knows the occurrences. `start_at` and `end_at` are epoch
    ms, 0 = no bound.
    """

    calendars: tuple[Calendar, ...]
    timezone: str = "UTC"
    start_at: int = 0
    end_at: int = 0
