"""What one chore may use of one sweep: so that a sweep ends in time, and every chore has its turn in it."""

from __future__ import annotations

from typing import Final

from ductor.ports import Clock

MOST_MS: Final = 10_000
"""The sweeper's function has a minute for all chores."""


class Allowance:
    """So many operations, and `MOST_MS` from now on. Whoever uses it looks at `left` before each part of the work."""

    def __init__(self, clock: Clock, ops: int) -> None:
        self._clock = clock
        self._until = clock.now_ms() + MOST_MS
        self._ops = ops

    @property
    def left(self) -> int:
        """Operations that may still be made, none when time is up."""
        return self._ops if self._clock.now_ms() < self._until else 0

    def spend(self, ops: int) -> None:
        """Operations that were made; a part may make a few more than were left."""
        self._ops -= ops
