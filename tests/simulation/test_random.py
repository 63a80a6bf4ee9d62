"""Random worlds: graphs, operators, crashes and every other fault drawn from a seed; then every promise is checked."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ductor.testing.seeds import run_seed

SHARES = {"calm": 0.05, "storm": 0.45, "alone": 0.2, "tight": 0.15, "stalls": 0.15}
"""Which part of the seeds goes to which profile."""

QUICK_SEEDS = 3_000
QUICK_ITEM = 400
FULL_SEEDS = int(os.environ.get("DUCTOR_SIM_SEEDS", "50000"))
FULL_ITEM = 1_000
FULL_FIRST = 1_000_000
"""The full run starts where the quick one never comes."""


def items(seeds: int, size: int, first: int) -> Iterator[tuple[str, int, int]]:
    """(profile, first seed, number of seeds) of each test item."""
    for profile, share in SHARES.items():
        start, end = first, first + round(seeds * share)
        while start < end:
            yield profile, start, min(size, end - start)
            start += size


@pytest.mark.parametrize(("profile", "first", "count"), list(items(QUICK_SEEDS, QUICK_ITEM, 0)))
def test_every_promise_holds(profile: str, first: int, count: int) -> None:
    for seed in range(first, first + count):
        run_seed(seed, profile)


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("profile", "first", "count"), list(items(FULL_SEEDS, FULL_ITEM, FULL_FIRST)))
def test_every_promise_holds_for_many_seeds(profile: str, first: int, count: int) -> None:
    for seed in range(first, first + count):
        run_seed(seed, profile)
