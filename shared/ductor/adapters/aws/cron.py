"""Calls for schedules by EventBridge Scheduler: each ends in the schedule queue, with the time that it was due at.

Scheduler calls at least once and anywhere within the minute. It knows neither occurrences nor versions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final

import msgspec
from botocore.exceptions import ClientError

from ductor.adapters.aws import faults
from ductor.adapters.aws.clients import Clients
from ductor.adapters.aws.scheduler import EXISTS, ScheduleTarget
from ductor.model.recurrence import Calendar, Recurrence, ScheduleKey
from ductor.ports import Clock

MAX_CALENDARS: Final = 2
MAX_EXPRESSION: Final = 256
"""Characters that Scheduler takes."""

_DUE: Final = "<aws.scheduler.scheduled-time>"
"""Scheduler puts in its place when the call was due, as 2026-11-29T10:05:00Z."""

_SHORTEST_RANGE: Final = 3


class Call(msgspec.Struct, frozen=True):
    """The body of a message in the schedule queue. `at` is RFC 3339 as Scheduler fills it in."""

    tenant: str
    family_slug: str
    environment: str
    at: str

    @property
    def key(self) -> ScheduleKey:
        return ScheduleKey(self.tenant, self.family_slug, self.environment)

    def until(self, sent_at: int) -> int:
        """When the call was due, epoch ms. Where nobody filled that in (an emulator) it is when it was sent."""
        try:
            return int(datetime.fromisoformat(self.at).timestamp() * 1000)
        except (ValueError, OverflowError):
            return sent_at


class AwsCronSchedules:
    """`ports.CronSchedules`: one schedule of the group per calendar, under names that the key alone decides."""

    def __init__(self, target: ScheduleTarget, clients: Clients, clock: Clock) -> None:
        self._target = target
        self._clients = clients
        self._clock = clock

    def put(self, key: ScheduleKey, recurrence: Recurrence) -> None:
        """Raises UnavailableError; ValueError for more calendars than a cron has day fields."""
        if not 1 <= len(recurrence.calendars) <= MAX_CALENDARS:
            raise ValueError(f"one to {MAX_CALENDARS} calendars, not {len(recurrence.calendars)}")
        with faults.translated():
            for place, calendar in enumerate(recurrence.calendars):
                self._upsert(self._request(key, place, calendar, recurrence))
            for place in range(len(recurrence.calendars), MAX_CALENDARS):
                self._target.delete(self._clients, schedule_name(key, place))

    def remove(self, key: ScheduleKey) -> None:
        """Raises UnavailableError."""
        with faults.translated():
            for place in range(MAX_CALENDARS):
                self._target.delete(self._clients, schedule_name(key, place))

    def _request(self, key: ScheduleKey, place: int, calendar: Calendar, recurrence: Recurrence) -> dict[str, Any]:
        call = Call(key.tenant, key.family_slug, key.environment, _DUE)
        text = msgspec.json.encode(call).decode()
        request = self._target.request(schedule_name(key, place), expression(calendar), recurrence.timezone, text)
        now = self._clock.now_ms()
        # Scheduler refuses bounds in the past; those need no telling.
        if recurrence.start_at > now:
            request["StartDate"] = datetime.fromtimestamp(recurrence.start_at / 1000, UTC)
        if recurrence.end_at > now:
            request["EndDate"] = datetime.fromtimestamp(recurrence.end_at / 1000, UTC)
        return request

    def _upsert(self, request: dict[str, Any]) -> None:
        try:
            self._clients("scheduler").create_schedule(**request)
        except ClientError as error:
            if faults.code_of(error) != EXISTS:
                raise
            self._clients("scheduler").update_schedule(**request)


def schedule_name(key: ScheduleKey, place: int) -> str:
    """At most 64 characters, the same for the same schedule and calendar."""
    text = f"{key.tenant}/{key.family_slug}/{key.environment}"
    return f"cron-{hashlib.sha256(text.encode()).hexdigest()[:48]}-{place}"


def expression(calendar: Calendar) -> str:
    """The calendar in Scheduler's dialect: six fields, days of the week 1 to 7 from Sunday, `?` in one day field.

    What would be too long is called for in every minute of its hours.
    """
    days = "?" if calendar.weekdays else _field(calendar.days)
    weekdays = _field([day + 1 for day in calendar.weekdays]) if calendar.weekdays else "?"
    rest = f"{_field(calendar.hours)} {days} {_field(calendar.months)} {weekdays} *"
    text = f"cron({_field(calendar.minutes)} {rest})"
    return text if len(text) <= MAX_EXPRESSION else f"cron(* {rest})"


def read_call(body: bytes | str) -> Call:
    """The call in a message. Raises msgspec.DecodeError, ValidationError."""
    return msgspec.json.decode(body, type=Call)


def _field(values: Sequence[int]) -> str:
    if not values:
        return "*"
    return ",".join(_spelled(first, last) for first, last in _ranges(sorted(values)))


def _spelled(first: int, last: int) -> str:
    if last - first + 1 >= _SHORTEST_RANGE:
        return f"{first}-{last}"
    return ",".join(map(str, range(first, last + 1)))


def _ranges(values: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Neighbouring values together."""
    first = values[0]
    for value, following in pairwise(values):
        if following != value + 1:
            yield first, value
            first = following
    yield first, values[-1]
