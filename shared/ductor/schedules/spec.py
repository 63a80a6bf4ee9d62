"""The part of a definition's schedule that decides when it fires. Says nothing about what happens then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ductor.model.json import JSON
from ductor.steps.duration import parse_duration
from ductor.steps.wait import parse_instant

DEFAULT_ZONE: Final = "UTC"


class Spec(msgspec.Struct, frozen=True):
    """Either `cron` (five fields, local to `timezone`) or `rate_ms`, the interval in milliseconds.

    Occurrences lie at or after `start_at` and before `end_at` (epoch ms, 0 = no bound). A rate counts from `start_at`,
    or from the epoch: its instants do not depend on when somebody published it.
    """

    cron: str = ""
    rate_ms: int = 0
    timezone: str = DEFAULT_ZONE
    start_at: int = 0
    end_at: int = 0


def read_spec(schedule: Mapping[str, JSON]) -> Spec:
    """The spec of a `schedule` field that the validator accepted. What is malformed counts as absent."""
    return Spec(
        cron=_text(schedule, "cron"),
        rate_ms=parse_duration(_text(schedule, "rate")) or 0,
        timezone=_text(schedule, "timezone") or DEFAULT_ZONE,
        start_at=parse_instant(_text(schedule, "start_at")) or 0,
        end_at=parse_instant(_text(schedule, "end_at")) or 0,
    )


def _text(schedule: Mapping[str, JSON], name: str) -> str:
    value = schedule.get(name)
    return value if isinstance(value, str) else ""
