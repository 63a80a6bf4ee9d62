"""Next occurrences: leap days, clock changes, both day fields, rates. Instants are written as RFC 3339."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ductor.schedules import Spec, contains, next_after, preview, read_spec
from ductor.schedules.cron import Cron, parse_cron


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def shown(instants: list[int]) -> list[str]:
    return [f"{datetime.fromtimestamp(instant // 1000, UTC):%Y-%m-%dT%H:%MZ}" for instant in instants]


def ahead(cron: str, after: str, count: int = 1, zone: str = "UTC") -> list[str]:
    return shown(preview(Spec(cron=cron, timezone=zone), ms(after), count))


@pytest.mark.parametrize("cron", ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *"])
def test_a_date_that_cannot_exist_never_fires_and_takes_no_time(cron: str) -> None:
    began = time.perf_counter()
    assert next_after(Spec(cron=cron), ms("2026-11-29T00:00Z")) is None
    assert time.perf_counter() - began < 0.1


def test_the_31st_fires_in_the_month_that_has_one() -> None:
    assert ahead("0 0 31 4,5 *", "2027-01-01T00:00Z") == ["2027-05-31T00:00Z"]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("2026-11-29T00:00Z", "2028-02-29T09:00Z"),
        ("2028-02-29T09:00Z", "2032-02-29T09:00Z"),
        ("2096-03-01T00:00Z", "2104-02-29T09:00Z"),
    ],
)
def test_leap_days_are_found_over_the_century(after: str, expected: str) -> None:
    assert ahead("0 9 29 2 *", after) == [expected]


@pytest.mark.parametrize(
    ("zone", "cron", "after", "expected"),
    [
        ("America/New_York", "30 2 * * *", "2027-03-13T07:30Z", "2027-03-15T06:30Z"),
        ("America/New_York", "0 10 * * *", "2027-03-14T05:00Z", "2027-03-14T14:00Z"),
        ("Europe/Berlin", "30 2 * * *", "2027-03-27T01:30Z", "2027-03-29T00:30Z"),
        ("America/Santiago", "0 0 * * *", "2027-09-04T05:00Z", "2027-09-06T03:00Z"),
        ("Australia/Lord_Howe", "15 2 * * *", "2027-10-02T00:00Z", "2027-10-03T15:15Z"),
    ],
)
def test_a_time_that_the_clocks_jump_over_is_skipped(zone: str, cron: str, after: str, expected: str) -> None:
    assert ahead(cron, after, zone=zone) == [expected]


@pytest.mark.parametrize(
    ("zone", "cron", "after", "expected"),
    [
        ("America/New_York", "30 1 * * *", "2027-11-07T00:00Z", ["2027-11-07T05:30Z", "2027-11-08T06:30Z"]),
        ("Europe/Berlin", "30 2 * * *", "2027-10-30T12:00Z", ["2027-10-31T00:30Z", "2027-11-01T01:30Z"]),
    ],
)
def test_a_repeated_time_fires_once(zone: str, cron: str, after: str, expected: list[str]) -> None:
    assert ahead(cron, after, 2, zone) == expected


def test_every_fifteen_minutes_is_elapsed_time_across_a_repeated_hour() -> None:
    instants = preview(Spec(cron="*/15 * * * *", timezone="America/New_York"), ms("2027-11-07T04:50Z"), 16)
    assert shown(instants[:1]) == ["2027-11-07T05:00Z"]
    assert {later - earlier for earlier, later in pairwise(instants)} == {900_000}


def test_every_fifteen_minutes_is_elapsed_time_across_a_gap() -> None:
    instants = preview(Spec(cron="*/15 * * * *", timezone="Europe/Berlin"), ms("2027-03-28T00:00Z"), 12)
    assert {later - earlier for earlier, later in pairwise(instants)} == {900_000}


def test_with_both_day_fields_either_suffices() -> None:
    assert ahead("0 9 13 * 5", "2026-11-30T00:00Z", 6) == [
        "2026-12-04T09:00Z",
        "2026-12-11T09:00Z",
        "2026-12-13T09:00Z",
        "2026-12-18T09:00Z",
        "2026-12-25T09:00Z",
        "2027-01-01T09:00Z",
    ]


def test_a_day_field_that_lists_every_day_allows_every_day() -> None:
    assert len({text[:10] for text in ahead("0 9 13 * MON-SUN", "2026-12-01T00:00Z", 5)}) == 5
    assert ahead("0 9 13 * MON-SUN", "2026-12-01T00:00Z") == ["2026-12-01T09:00Z"]


@pytest.mark.parametrize(
    ("field", "days"),
    [
        ("7", {6}),
        ("0", {6}),
        ("SUN", {6}),
        ("MON-SUN", {0, 1, 2, 3, 4, 5, 6}),
        ("5-7", {4, 5, 6}),
        ("1-5", {0, 1, 2, 3, 4}),
        ("FRI-MON", {4, 5, 6, 0}),
    ],
)
def test_days_of_the_week(field: str, days: set[int]) -> None:
    instants = preview(Spec(cron=f"0 9 * * {field}"), ms("2026-11-30T00:00Z"), 14)
    assert {datetime.fromtimestamp(instant // 1000, UTC).weekday() for instant in instants} == days


def test_a_rate_counts_from_the_epoch_or_from_its_start() -> None:
    assert shown(preview(Spec(rate_ms=300_000), ms("2026-11-29T10:02Z"), 2)) == [
        "2026-11-29T10:05Z",
        "2026-11-29T10:10Z",
    ]
    started = Spec(rate_ms=300_000, start_at=ms("2026-11-29T10:03Z"))
    assert shown(preview(started, ms("2026-01-01T00:00Z"), 2)) == ["2026-11-29T10:03Z", "2026-11-29T10:08Z"]


def test_the_start_counts_and_the_end_does_not() -> None:
    spec = Spec(cron="0 9 * * *", start_at=ms("2026-12-01T09:00Z"), end_at=ms("2026-12-03T09:00Z"))
    assert shown(preview(spec, 0, 10)) == ["2026-12-01T09:00Z", "2026-12-02T09:00Z"]


def test_contains_knows_exactly_the_occurrences() -> None:
    spec = Spec(cron="30 1 * * *", timezone="America/New_York")
    assert contains(spec, ms("2027-11-07T05:30Z"))
    assert not contains(spec, ms("2027-11-07T06:30Z"))


@pytest.mark.parametrize("spec", [Spec(cron="nonsense"), Spec(cron="* * * * *", timezone="No/Where"), Spec()])
def test_what_is_malformed_never_fires(spec: Spec) -> None:
    assert next_after(spec, 0) is None


@pytest.mark.parametrize("instant", [-(10**18), 0, 10**15, 10**18])
def test_any_instant_has_an_answer(instant: int) -> None:
    found = next_after(Spec(cron="0 9 29 2 *"), instant)
    assert found is None or found > instant


def test_the_spec_of_a_document_has_only_what_decides_when() -> None:
    document = {"rate": "5m", "overlap_policy": "skip", "start_at": "2026-11-29T10:03:00Z", "input": {"a": 1}}
    assert read_spec(document) == Spec(rate_ms=300_000, start_at=ms("2026-11-29T10:03Z"))


_ZONES = ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago", "UTC", "Asia/Kolkata"]


@given(
    st.sampled_from(_ZONES),
    st.sampled_from(["*/15 * * * *", "7 * * * *", "30 1,2 * * *", "0 */6 * * *", "15 2 * * SUN"]),
    st.integers(ms("2026-01-01T00:00Z") // 60_000, ms("2028-01-01T00:00Z") // 60_000),
)
def test_it_is_the_first_minute_that_the_cron_wants(zone_name: str, text: str, minute: int) -> None:
    """Against the plain definition: walk every minute until the local time fits, the second pass of a fold aside."""
    cron, zone = parse_cron(text), ZoneInfo(zone_name)
    assert isinstance(cron, Cron)
    found = next_after(Spec(cron=text, timezone=zone_name), minute * 60_000)
    assert found is not None
    wanted = []
    for at in range(minute + 1, min(found // 60_000, minute + 3_000) + 1):
        local = datetime.fromtimestamp(at * 60, zone)
        if cron.fires_at(local) and (cron.hourly or local.fold == 0):
            wanted.append(at * 60_000)
    assert wanted == [found] or (found // 60_000 > minute + 3_000 and not wanted)
