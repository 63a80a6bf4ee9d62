"""Three answers to when a schedule fires must be one: the preview, what is really fired, and the plain definition.

And an outside scheduler that follows `recurrence` calls in the minute of every occurrence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.schedules.desk import Desk, ms
from tests.unit.schedules.timetables import FIXED, ZONES, expressions

from ductor.app.schedule_rows import Schedule, reaching
from ductor.model.recurrence import Calendar, Recurrence, ScheduleKey
from ductor.schedules import Spec, preview, recurrence
from ductor.schedules.cron import Cron, parse_cron

DAY_MS = 86_400_000
MINUTE_MS = 60_000
BEGIN = ms("2026-11-29T00:00:00Z")
TWO_YEARS = BEGIN + 731 * DAY_MS
AROUND = (
    ("2026-12-01T00:00:00Z", 3),
    ("2027-02-27T00:00:00Z", 3),
    ("2027-03-12T00:00:00Z", 3),
    ("2027-03-26T12:00:00Z", 3),
    ("2027-04-03T00:00:00Z", 2),
    ("2027-09-04T00:00:00Z", 2),
    ("2027-10-02T00:00:00Z", 2),
    ("2027-10-30T00:00:00Z", 2),
    ("2027-11-06T00:00:00Z", 2),
)
"""Days around clock changes, and plain ones: (begin, how many days)."""


def fired(spec: Spec, until: int) -> list[int]:
    """What the real thing fires: the row's own way from occurrence to occurrence, without what surrounds it."""
    schedule = reaching(Schedule(key=ScheduleKey("t", "f", "e"), definition_id="d", spec=spec, reached=BEGIN), 0)
    found = []
    while schedule.next_at and schedule.next_at < until:
        found.append(schedule.next_at)
        schedule = reaching(schedule, schedule.next_at)
    return found


def previewed(spec: Spec, until: int) -> list[int]:
    """The same time, page after page."""
    found: list[int] = []
    after = BEGIN
    while True:
        page = preview(spec, after, 1_000)
        found += [instant for instant in page if instant < until]
        if len(page) < 1_000 or page[-1] >= until:
            return found
        after = page[-1]


@lru_cache(maxsize=300)
def minutes_of(zone_name: str, start: int, days: int) -> list[tuple[int, datetime]]:
    """Every minute of some days: the instant, and what the zone's clocks show."""
    zone = ZoneInfo(zone_name)
    seconds = range(start // 1000, (start + days * DAY_MS) // 1000, 60)
    return [(at * 1000, datetime.fromtimestamp(at, zone)) for at in seconds]


def by_definition(text: str, zone_name: str, start: int, days: int) -> list[int]:
    """Walk every minute: those whose local time the cron wants, the second pass of a repeated hour aside."""
    cron = parse_cron(text)
    assert isinstance(cron, Cron)
    minutes = minutes_of(zone_name, start, days)
    return [at for at, local in minutes if cron.fires_at(local) and (cron.hourly or local.fold == 0)]


def walked(text: str, zone: str) -> Iterator[tuple[list[int], list[int]]]:
    """Around every clock change: what the definition says, and the preview."""
    for begin, days in AROUND:
        start = ms(begin)
        wanted = by_definition(text, zone, start, days)
        ahead = preview(Spec(cron=text, timezone=zone), start - 1, len(wanted) + 1)
        yield wanted, [instant for instant in ahead if instant < start + days * DAY_MS]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("zone", ZONES)
def test_over_two_years_the_preview_is_what_fires(zone: str) -> None:
    for text in expressions(200):
        spec = Spec(cron=text, timezone=zone)
        assert previewed(spec, TWO_YEARS) == fired(spec, TWO_YEARS), text


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("zone", ZONES)
def test_around_clock_changes_it_is_what_the_definition_says(zone: str) -> None:
    for text in expressions(200):
        for wanted, ahead in walked(text, zone):
            assert ahead == wanted, text


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "America/Santiago"])
def test_expressions_that_have_broken_schedulers_fire_as_defined(zone: str) -> None:
    for text in ("30 2 * * *", "15 2 * * SUN", "0 0 * * *", "*/15 * * * *", "0 9 13 * 5"):
        for wanted, ahead in walked(text, zone):
            assert ahead == wanted, text


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
@pytest.mark.parametrize("text", ["30 1 * * *", "0 9 13 * 5", "0 22-2 * * FRI-MON", "0 */7 * * *"])
def test_a_year_of_previews_is_a_year_of_firing(text: str, zone: str) -> None:
    spec, until = Spec(cron=text, timezone=zone), BEGIN + 366 * DAY_MS
    assert previewed(spec, until) == fired(spec, until)


def test_the_whole_machine_fires_what_was_previewed_across_a_repeated_hour() -> None:
    desk = Desk("2027-10-30T23:30:30Z")
    schedule = {"cron": "*/30 * * * *", "timezone": "Europe/Berlin", "overlap_policy": "allow_all"}
    desk.publish(schedule)
    wanted = desk.scheduling.schedules.preview(desk.caller, "hello_world", count=8)
    desk.pass_time(4 * 3_600_000, step=600_000)
    assert [run.origin.scheduled_at for run in desk.started()] == list(wanted)
    assert len(wanted) == 8


def called(wanted: Recurrence, at: int) -> bool:
    """Whether an outside scheduler that follows the calendars calls in this minute (epoch ms)."""
    local = datetime.fromtimestamp(at // 1000, ZoneInfo(wanted.timezone))
    return any(_shows(calendar, local) for calendar in wanted.calendars)


def _shows(calendar: Calendar, local: datetime) -> bool:
    pairs = (
        (calendar.minutes, local.minute),
        (calendar.hours, local.hour),
        (calendar.days, local.day),
        (calendar.months, local.month),
        (calendar.weekdays, local.isoweekday() % 7),
    )
    return all(not allowed or value in allowed for allowed, value in pairs)


def minute_of(instant: int) -> int:
    """The full minute at or after an instant."""
    return -(-instant // MINUTE_MS) * MINUTE_MS


def check_calls(zone: str, texts: Iterable[str]) -> None:
    for text in texts:
        spec = Spec(cron=text, timezone=zone)
        wanted = recurrence(spec, BEGIN)
        assert wanted is not None
        for begin, _ in AROUND:
            for instant in preview(spec, ms(begin), 10):
                assert called(wanted, instant), (text, begin)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu"])
def test_an_outside_scheduler_calls_at_every_occurrence(zone: str) -> None:
    check_calls(zone, FIXED)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("zone", ZONES)
def test_an_outside_scheduler_calls_for_every_timetable(zone: str) -> None:
    check_calls(zone, expressions(200))


@given(st.integers(60_000, 400 * 3_600_000), st.integers(0, 2**41), st.integers(BEGIN, TWO_YEARS))
def test_it_calls_at_every_occurrence_of_a_rate_too(rate_ms: int, start_at: int, after: int) -> None:
    spec = Spec(rate_ms=rate_ms, start_at=start_at)
    wanted = recurrence(spec, after)
    assert wanted is not None
    for instant in preview(spec, after, 5):
        assert called(wanted, minute_of(instant))


@pytest.mark.parametrize(
    ("rate", "minutes", "hours"),
    [
        (5, tuple(range(0, 60, 5)), ()),
        (45, (0, 15, 30, 45), ()),
        (60, (0,), ()),
        (7, (), ()),
        (360, (0,), (0, 6, 12, 18)),
        (1440, (0,), (0,)),
        (3 * 1440, (0,), (0,)),
    ],
)
def test_a_rate_is_called_for_no_oftener_than_it_needs(
    rate: int, minutes: tuple[int, ...], hours: tuple[int, ...]
) -> None:
    wanted = recurrence(Spec(rate_ms=rate * MINUTE_MS), BEGIN)
    assert wanted is not None
    (calendar,) = wanted.calendars
    assert (calendar.minutes or tuple(range(60)), calendar.hours or tuple(range(24))) == (
        minutes or tuple(range(60)),
        hours or tuple(range(24)),
    )


@pytest.mark.parametrize(
    ("text", "weekdays"),
    [
        ("0 12 * * 0", (0,)),
        ("0 12 * * 7", (0,)),
        ("0 12 * * 6", (6,)),
        ("0 12 * * 0,1,4,5,6", (0, 1, 4, 5, 6)),
        ("0 12 * * 5-7", (0, 5, 6)),
        ("0 12 * * */2", (0, 2, 4, 6)),
    ],
)
def test_days_of_the_week_are_spelled_out(text: str, weekdays: tuple[int, ...]) -> None:
    wanted = recurrence(Spec(cron=text), BEGIN)
    assert wanted == Recurrence((Calendar(minutes=(0,), hours=(12,), weekdays=weekdays),))


def test_two_day_fields_become_two_calendars() -> None:
    wanted = recurrence(Spec(cron="0 9 1 * 1", timezone="Europe/Berlin"), BEGIN)
    common = {"minutes": (0,), "hours": (9,)}
    assert wanted == Recurrence((Calendar(**common, weekdays=(1,)), Calendar(**common, days=(1,))), "Europe/Berlin")


def test_a_schedule_that_fires_every_hour_is_called_for_through_both_passes_of_a_repeated_hour() -> None:
    wanted = recurrence(Spec(cron="10 * * * *", timezone="Asia/Kathmandu"), BEGIN)
    assert wanted == Recurrence((Calendar(minutes=(25,)),))


def test_what_is_malformed_is_called_for_by_nobody() -> None:
    assert recurrence(Spec(cron="nonsense"), BEGIN) is None


def test_bounds_have_time_to_spare() -> None:
    spec = Spec(cron="0 9 * * *", start_at=BEGIN + DAY_MS, end_at=BEGIN + 2 * DAY_MS)
    wanted = recurrence(spec, BEGIN)
    assert wanted is not None
    assert wanted.start_at < spec.start_at
    assert wanted.end_at > spec.end_at
