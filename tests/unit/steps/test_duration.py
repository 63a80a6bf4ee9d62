"""Durations: every accepted form to the millisecond, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ductor.steps.duration import parse_duration


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("2s", 2_000),
        ("1h30m", 5_400_000),
        ("250ms", 250),
        ("1m250ms", 60_250),
        ("1w2d", 777_600_000),
        ("0s", 0),
        ("0.29s", 290),
        ("1.5h", 5_400_000),
        ("PT2S", 2_000),
        ("P1DT2H", 93_600_000),
        ("PT0.25S", 250),
        ("P2W", 1_209_600_000),
        ("P366D", 31_622_400_000),
    ],
)
def test_accepted_forms(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "s",
        "-2s",
        "2 s",
        "2S",
        "1s2h",
        "1h1h",
        "P",
        "PT",
        "P1",
        "P1H",
        "P1M",
        "P1Y",
        "1e3s",
        "٢s",
        "2s\n",
        "9" * 99,
    ],
)
def test_refused_forms(text: str) -> None:
    assert parse_duration(text) is None


@given(st.integers(0, 400), st.integers(0, 30), st.integers(0, 90), st.integers(0, 90), st.integers(0, 2_000))
def test_both_notations_agree(days: int, hours: int, minutes: int, seconds: int, millis: int) -> None:
    total = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000 + millis
    assert parse_duration(f"{days}d{hours}h{minutes}m{seconds}s{millis}ms") == total
    assert parse_duration(f"P{days}DT{hours}H{minutes}M{seconds}S") == total - millis


@given(st.text(max_size=80))
def test_no_text_raises(text: str) -> None:
    parse_duration(text)
