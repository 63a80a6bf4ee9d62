"""The sweeper's chores: one that fails keeps no other from its work, and what failed is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ductor.app.sweeper import Sweeper
from ductor.ports import UnavailableError
from ductor.testing.memory import MemoryTable, VirtualClock


def _sweeper(*chores: Callable[[], int]) -> Sweeper:
    nothing: Any = None
    return Sweeper(table=MemoryTable(), intents=nothing, clock=VirtualClock(), ids=nothing, also=chores)


def _failing(fault: Exception) -> Callable[[], int]:
    def chore() -> int:
        raise fault

    return chore


def test_a_chore_that_fails_keeps_no_other_from_its_work() -> None:
    done: list[int] = []

    def works() -> int:
        done.append(1)
        return 1

    with pytest.raises(LookupError):
        _sweeper(_failing(UnavailableError("away")), _failing(LookupError("broken")), works).sweep()
    assert done == [1]


def test_all_faults_are_told_and_of_outages_one() -> None:
    away = UnavailableError("away")
    with pytest.raises(UnavailableError):
        _sweeper(_failing(away), _failing(away)).sweep()
    with pytest.raises(ExceptionGroup) as told:
        _sweeper(_failing(LookupError("one")), _failing(away), _failing(ValueError("two"))).sweep()
    assert [str(fault) for fault in told.value.exceptions] == ["one", "two"]
