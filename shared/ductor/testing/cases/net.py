"""The sweeper of a test's world, which takes up at once what one would take up a minute and a half later."""

from __future__ import annotations

from ductor.app.sweeper import OVERDUE_MS, Sweeper
from ductor.app.trigger import START_WAKE_MS
from ductor.ports import Clock
from ductor.testing.cases.stage import Stage


class Ahead:
    """`ports.Clock`: another one, so many ms ahead."""

    def __init__(self, clock: Clock, by_ms: int) -> None:
        self._clock = clock
        self._by_ms = by_ms

    def now_ms(self) -> int:
        return self._clock.now_ms() + self._by_ms


class Net:
    """Finds the runs that a dead process had entered and not begun: those of schedules, and forks.

    No client asks for them again. `spread` once a case has such runs; the sweep is early for all others, which lets
    them look once more.
    """

    def __init__(self, stage: Stage) -> None:
        ahead = Ahead(stage.clock, 2 * START_WAKE_MS + OVERDUE_MS + 1)
        doors = stage.doors
        self._sweeper = Sweeper(table=doors.table, intents=doors.intents, clock=ahead, ids=stage.ids)
        self.spread = False

    def take_up(self) -> int:
        """After a death of the process."""
        return self._sweeper.sweep() if self.spread else 0
