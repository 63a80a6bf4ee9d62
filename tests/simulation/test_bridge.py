"""Worlds in which workers outside do most of the work; the simulator sees when their claims are not safe."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import pytest

from ductor.app.attempts import Attempts, Row, _item
from ductor.model.attempt import Attempt
from ductor.ports import Op, Put
from ductor.testing import bridges
from ductor.testing.seeds import BrokenPromiseError, run_seed

SEEDS = 25
MOST_SEEDS = 200

Mutant = Callable[[], AbstractContextManager[Any]]


@pytest.mark.parametrize("profile", ["storm", "alone", "tight", "stalls"])
def test_every_promise_holds_with_workers_outside(profile: str) -> None:
    with patch.object(bridges, "SHARE", 1.0):
        for seed in range(SEEDS):
            run_seed(seed, profile)


def first_claims_overwrite() -> AbstractContextManager[Any]:
    def create(self: Attempts, attempt: Attempt, also: tuple[Op, ...] = ()) -> Row | None:
        self._table.write((Put(_item(attempt, 1)), *also))
        return None

    return patch.object(Attempts, "create", create)


def later_claims_and_answers_overwrite() -> AbstractContextManager[Any]:
    def replace(self: Attempts, row: Row, changed: Attempt, also: tuple[Op, ...] = ()) -> Row | None:
        self._table.write((Put(_item(changed, row.version + 1)), *also))
        row.attempt, row.version = changed, row.version + 1
        return None

    return patch.object(Attempts, "replace", replace)


@pytest.mark.parametrize("mutant", [first_claims_overwrite, later_claims_and_answers_overwrite])
def test_claims_without_a_condition_are_found_out(mutant: Mutant) -> None:
    def broken() -> None:
        for seed in range(MOST_SEEDS):
            run_seed(seed, "storm")

    with patch.object(bridges, "SHARE", 1.0), mutant(), pytest.raises(BrokenPromiseError):
        broken()
