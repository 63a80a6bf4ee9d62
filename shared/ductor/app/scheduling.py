"""Schedules, wired once for every backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ductor.app.library import Library
from ductor.app.schedule_firing import Firing
from ductor.app.schedule_loop import ScheduleLoop
from ductor.app.schedule_moves import ScheduleMoves
from ductor.app.schedules import Schedules
from ductor.app.trigger import Triggers
from ductor.ports import Clock, CronSchedules, Ids, Table

LOCAL_GRACE_MS: Final = 60_000
"""A process that fires by itself is in time to the millisecond: what is a minute late was down."""

CALLED_GRACE_MS: Final = 300_000
"""Who is called is called within a minute, through a queue; what nobody calls for is found after two to three more."""


class Scheduling:
    """`firing` decides occurrences, `schedules` is for operators, `chores` are for the sweeper.

    `outside` is None where this process fires by itself, with `loop`.
    """

    def __init__(
        self,
        *,
        table: Table,
        triggers: Triggers,
        library: Library,
        clock: Clock,
        ids: Ids,
        outside: CronSchedules | None = None,
    ) -> None:
        self.outside = outside
        moves = ScheduleMoves(table, outside)
        grace_ms = LOCAL_GRACE_MS if outside is None else CALLED_GRACE_MS
        self.firing = Firing(
            table=table, triggers=triggers, library=library, moves=moves, clock=clock, grace_ms=grace_ms
        )
        self.schedules = Schedules(table=table, library=library, firing=self.firing, moves=moves, clock=clock, ids=ids)
        self.loop = ScheduleLoop(self.firing, table, clock)
        backfills = self.schedules.backfills.sweep
        self.chores: tuple[Callable[[], int], ...] = (backfills,) if outside is None else (self.firing.sweep, backfills)
