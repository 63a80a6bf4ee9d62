"""An installation with one scheduled definition on virtual time, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.unit.app.world import HELLO, World

from ductor.app.schedule_firing import Firing
from ductor.app.schedule_rows import Occurrence, Schedule, decode_occurrence, read_schedule, schedule_pk
from ductor.app.scheduling import Scheduling
from ductor.model.enums import RunStatus
from ductor.model.errors import RefusedError
from ductor.model.recurrence import ScheduleKey
from ductor.model.run import RunState
from ductor.ports import CronSchedules, Index, Table

MINUTE = 60_000
HOUR = 60 * MINUTE
START = "2026-12-01T10:00:30Z"


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def shown(instants: list[int]) -> list[str]:
    return [f"{datetime.fromtimestamp(instant // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}" for instant in instants]


def refused(action: Callable[[], object]) -> str:
    """The specific code with which it is refused."""
    with pytest.raises(RefusedError) as caught:
        action()
    return caught.value.violations[0].code


class Desk(World):
    """`publish` makes new versions of the family `hello_world`; `pass_time` fires what comes due meanwhile."""

    def __init__(self, at: str = START, outside: CronSchedules | None = None, table: Table | None = None) -> None:
        super().__init__(table)
        self.clock.set(ms(at))
        self.key = ScheduleKey(self.tenant, "hello_world", "default")
        self._draft = ""
        if outside is not None:
            self.called_by(outside)

    def called_by(self, outside: CronSchedules) -> None:
        """From now on an outside scheduler calls."""
        from tests.unit.app.world import EchoCatalog

        from ductor.app.definitions import Definitions

        self.definitions = Definitions(self.table, self.clock, self.ids, EchoCatalog(), self.tenants, outside)
        self.scheduling = Scheduling(
            table=self.table,
            triggers=self.triggers,
            library=self.library,
            clock=self.clock,
            ids=self.ids,
            outside=outside,
        )

    @property
    def firing(self) -> Firing:
        return self.scheduling.firing

    def publish(self, schedule: dict[str, Any] | None, **changes: Any) -> str:
        """The id of the next version, with this schedule."""
        document = {**HELLO, **changes} | ({"schedule": schedule} if schedule is not None else {})
        if not self._draft:
            self._draft = self.definitions.create(self.caller, document).definition.id
        else:
            draft = self.definitions.get(self.caller, self._draft)
            wanted = {"schedule": schedule, "expected_draft_revision": draft.draft_revision, **changes}
            self.definitions.edit(self.caller, self._draft, wanted)
        return self.definitions.publish(self.caller, self._draft).published.id

    def schedule(self) -> Schedule:
        known = read_schedule(self.table, self.key)
        assert known is not None
        return known[0]

    def fire(self) -> None:
        """Let the loop do what is due now."""
        while self.scheduling.loop.step() == 0:
            pass

    def pass_time(self, milliseconds: int, step: int = MINUTE) -> None:
        """Let time pass in steps, firing after each."""
        end = self.clock.now_ms() + milliseconds
        while self.clock.now_ms() < end:
            self.clock.set(min(end, self.clock.now_ms() + step))
            self.fire()

    def decided(self) -> list[Occurrence]:
        """Every occurrence that was decided, oldest first."""
        page = self.table.query(schedule_pk(self.key), prefix="OCC#", limit=10_000)
        return [decode_occurrence(item) for item in page.items]

    def outcomes(self) -> list[tuple[str, str]]:
        return [(shown([one.scheduled_at])[0][11:16], one.outcome.value) for one in self.decided()]

    def started(self) -> list[RunState]:
        """The runs of the tenant, by the instant that they are for."""
        ids = [
            item.pk.removeprefix("R#")
            for shard in range(8)
            for item in self.table.query(f"RT#{self.tenant}#{shard}", index=Index.I2, limit=10_000).items
        ]
        return sorted((self.header(run_id) for run_id in ids), key=lambda state: state.origin.scheduled_at)

    def instants(self) -> list[str]:
        """The instants of the runs that were started."""
        return shown([state.origin.scheduled_at for state in self.started()])

    def end_run(self, run_id: str) -> None:
        state = self.header(run_id)
        state.status = RunStatus.COMPLETED
        state.started_at = state.finished_at = self.clock.now_ms()
        self.store(state)

    def end_all(self) -> None:
        for state in self.started():
            if not state.status.terminal:
                self.end_run(state.run_id)
