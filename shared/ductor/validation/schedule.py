"""The rules of a definition's schedule (durable runs: Scheduled workflows). Fires nothing."""

from __future__ import annotations

from typing import Final
from zoneinfo import ZoneInfo

from ductor.model.errors import Severity
from ductor.model.json import JSON
from ductor.schedules.cron import Cron, parse_cron
from ductor.schedules.occurrences import local_times_skipped
from ductor.steps.duration import FORMS, MAX_DURATION_MS, parse_duration
from ductor.steps.wait import parse_instant
from ductor.validation.found import Found

MIN_RATE_MS: Final = 60_000
"""The shortest rate: one minute, the resolution of every scheduler behind it."""

_CRON: Final = "SCHEDULE_CRON_INVALID"
_YEAR: Final = 366
_MAX_MESSAGE: Final = 200


def check_schedule(schedule: dict[str, JSON], now: int, found: Found) -> None:
    """Report what is wrong with the schedule; `now` (epoch ms) is where the year of DST warnings begins."""
    cron = _when(schedule, found)
    zone = _zone(schedule.get("timezone", "UTC"), found)
    _window(schedule, found)
    if isinstance(cron, Cron) and zone is not None:
        gap = next(local_times_skipped(cron, zone, now, _YEAR), None)
        if gap is not None:
            message = (
                f"{gap:%Y-%m-%d %H:%M} does not exist in {zone.key} (clocks go forward): that occurrence is skipped"
            )
            found.fault("schedule.cron", "DST_GAP", message, Severity.WARNING)


def check_scheduled_input(schedule: dict[str, JSON], schema: JSON, found: Found) -> None:
    """Report an input that the definition's own schema, which is sound, would refuse at every occurrence."""
    from ductor.validation.input_schema import InputValidator

    given = schedule.get("input")
    try:
        fault = next(InputValidator(schema).iter_errors({} if given is None else given), None)
    except RecursionError:
        return  # too deep to be judged: it is refused when it fires, and recorded
    if fault is not None:
        message = f"does not fit input_schema, so that no run could start: {fault.message[:_MAX_MESSAGE]}"
        found.fault("schedule.input", "FIELD_INVALID", message)


def _when(schedule: dict[str, JSON], found: Found) -> Cron | None:
    cron, rate = schedule.get("cron"), schedule.get("rate")
    if (cron is None) == (rate is None):
        found.fault("schedule.cron", _CRON, "give exactly one of `cron` and `rate`")
    if isinstance(rate, str):
        interval = parse_duration(rate)
        if interval is None or not MIN_RATE_MS <= interval <= MAX_DURATION_MS:
            found.fault("schedule.rate", _CRON, f"write a duration from 1m to 366d, {FORMS}")
    if not isinstance(cron, str):
        return None
    parsed = parse_cron(cron)
    if isinstance(parsed, str):
        found.fault("schedule.cron", _CRON, parsed)
        return None
    if not parsed.ever_fires():
        found.fault("schedule.cron", _CRON, "never fires: no such day exists in those months; correct the day or month")
        return None
    return parsed


def _zone(name: JSON, found: Found) -> ZoneInfo | None:
    try:
        if isinstance(name, str) and name and len(name) <= 64:
            return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        # ZoneInfo answers bad names with ZoneInfoNotFoundError, paths with ValueError, directories with OSError.
        pass
    found.fault("schedule.timezone", "SCHEDULE_TIMEZONE_INVALID", "name an IANA time zone, for example Europe/Berlin")
    return None


def _window(schedule: dict[str, JSON], found: Found) -> None:
    instants: dict[str, int] = {}
    for name in ("start_at", "end_at"):
        text = schedule.get(name)
        if not isinstance(text, str):
            continue
        instant = parse_instant(text)
        if instant is None:
            found.fault(f"schedule.{name}", "FIELD_INVALID", "write an RFC 3339 instant, like 2030-01-31T09:00:00Z")
        else:
            instants[name] = instant
    if len(instants) == 2 and instants["end_at"] <= instants["start_at"]:
        found.fault("schedule.end_at", "FIELD_INVALID", "must be after start_at")
