"""The timetables of a test's world, fired on the skipped clock. They stand still until a case names an instant."""

from __future__ import annotations

from typing import Final

from ductor.app.schedule_rows import (
    Decided,
    Occurrence,
    Schedule,
    decode_occurrence,
    next_due,
    occurrence_sk,
    read_schedule,
    schedule_pk,
)
from ductor.app.scheduling import Scheduling
from ductor.model.recurrence import ScheduleKey
from ductor.schedules import preview
from ductor.testing.cases.stage import Stage
from ductor.testing.world import TENANT

SHOWN: Final = 3
"""How many of the next instants a failure names."""


class Timetable:
    """Fires what is due while it `runs`. A case that names no instant of a schedule never sees it run."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        doors = stage.doors
        self._firing = Scheduling(
            table=doors.table, triggers=stage.triggers, library=doors.library, clock=stage.clock, ids=stage.ids
        ).firing
        self.runs = False

    def fire(self) -> int:
        """Everything that is due now; how many schedules had something."""
        at = self.next_at()
        due = at is not None and at <= self._stage.clock.now
        return len(self._firing.fire_due()) if due else 0

    def next_at(self) -> int | None:
        """When something is due next, its jitter included; None while it stands still."""
        return next_due(self._stage.table) if self.runs else None

    def schedule(self, family: str) -> Schedule | None:
        """The schedule of a family, in the environment of its version."""
        found = read_schedule(self._stage.table, self._key(family))
        return found[0] if found is not None and found[0].definition_id else None

    def occurrence(self, family: str, instant: int) -> Occurrence | None:
        """What became of an instant; None when it has not come or is none of the timetable's."""
        item = self._stage.table.get(schedule_pk(self._key(family)), occurrence_sk(instant))
        return decode_occurrence(item) if item is not None else None

    def upcoming(self, schedule: Schedule, after: int) -> tuple[int, ...]:
        """The next instants after one (epoch ms)."""
        return tuple(preview(schedule.spec, after, SHOWN))

    def _key(self, family: str) -> ScheduleKey:
        _, definition = self._stage.doors.library.load(TENANT, self._stage.families[family])
        return ScheduleKey(TENANT, family, definition.environment)


def described(found: Occurrence) -> str:
    """What became of an occurrence, in words."""
    why = {
        Decided.SKIPPED: f" ({found.run_id} was still active)",
        Decided.REFUSED: f" ({found.code}: {found.message})",
    }
    return f"{found.outcome.value}{why.get(found.outcome, '')}"
