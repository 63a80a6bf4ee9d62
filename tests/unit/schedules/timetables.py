"""Timetables for tests of agreement: cron expressions drawn from a seed, and zones with every kind of clock change."""

from __future__ import annotations

import random

ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Santiago",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "Africa/Casablanca",
    "Asia/Tehran",
    "America/St_Johns",
    "Pacific/Chatham",
)
"""Whole, half and quarter hours; clocks that change by an hour and by half of one, at midnight, twice a year, never."""

FIXED = (
    "*/15 * * * *",
    "0 * * * *",
    "7 * * * MON",
    "*/20 * 1 * *",
    "30 2 * * *",
    "30 1 * * *",
    "15 2 * * SUN",
    "0 0 * * *",
    "59 23 31 * *",
    "0 9 13 * 5",
    "0 9 * * 5-7",
    "0 12 * * */2",
    "0 9 29 2 *",
    "0 22-2 * * FRI-MON",
    "*/7 */5 */3 */2 *",
    "0 12 1 * 1",
)
"""Expressions that have broken schedulers."""


def expressions(count: int, seed: int = 1) -> list[str]:
    """The fixed ones, then drawn ones that fire at most a few times a day."""
    rng = random.Random(seed)
    return [*FIXED, *(_drawn(rng) for _ in range(count))][:count]


def _drawn(rng: random.Random) -> str:
    minutes = rng.choice(
        [str(rng.randrange(60)), str(rng.randrange(60)), f"{rng.randrange(30)},{rng.randrange(30, 60)}"]
    )
    hour = rng.randrange(24)
    hours = rng.choice([str(hour), str(hour), f"{hour}-{(hour + 2) % 24}", "1,2,3", "0", "2"])
    days = rng.choice(["*", str(rng.randrange(1, 29)), f"{rng.randrange(1, 15)}-{rng.randrange(15, 29)}", "*/10"])
    months = rng.choice(["*", "*", str(rng.randrange(1, 13)), "MAR,OCT,NOV", "*/3"])
    weekdays = rng.choice(["*", "*", str(rng.randrange(8)), "MON-FRI", "SAT,SUN", "5-7"])
    return f"{minutes} {hours} {days} {months} {weekdays}"
