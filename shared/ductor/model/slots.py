"""Concurrency of a definition: how many of its runs with one key run at a time, and where a run stands in that."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import msgspec

from ductor.model.definition import Definition

SLOT_DUTY: Final = "slot"
"""What a run that has ended owes to whoever waits behind it: see `RunState.duties`."""

SLOT_CHECK_MS: Final = 60_000
"""How soon a run that waits for a slot first looks whether it was given one; then ever more rarely."""

CONCURRENCY_LIMIT: Final = "CONCURRENCY_LIMIT"
"""Code of what `drop` refuses."""


class OnLimit(StrEnum):
    """What a run over the concurrency limit does."""

    QUEUE = "queue"
    DROP = "drop"
    CANCEL_OLDEST = "cancel_oldest"


class Concurrency(msgspec.Struct, frozen=True):
    """At most `limit` runs of a family in one environment whose `key` (CEL) has one value run at a time."""

    key: str
    limit: int
    on_limit: OnLimit


def concurrency_of(definition: Definition) -> Concurrency | None:
    """The definition's rule, None when its runs do not limit each other."""
    declared: Any = definition.concurrency
    if not declared:
        return None
    rule = str(declared.get("on_limit") or OnLimit.QUEUE).upper().removeprefix("ON_LIMIT_")
    return Concurrency(declared["key"], declared["limit"], OnLimit[rule])


class SlotState(msgspec.Struct, omit_defaults=True):
    """Where a run stands. `lease` counts how often it has asked, and never repeats in its life.

    `since` is when it began to wait (epoch ms), 0 = it does not. `place` orders those who wait: the time of admission,
    after a redrive that of the redrive. Somebody looks whether it has been given a slot at `check_at`, every
    `check_every`, doubling.
    """

    key: str
    lease: int
    place: int = 0
    since: int = 0
    held: bool = False
    check_at: int = 0
    check_every: int = 0

    @property
    def awaited(self) -> bool:
        """Whether the run waits for a slot."""
        return self.since > 0
