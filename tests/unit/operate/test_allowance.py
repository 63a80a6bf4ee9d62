"""Chores of a sweep end in time, and the next sweep goes on where they stopped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.simulation.family import Family, act
from tests.unit.app.world import HELLO
from tests.unit.schedules.desk import Desk

from ductor.app.allowance import MOST_MS
from ductor.app.backfills import BackfillRequest, BackfillStatus, Range
from ductor.app.entitlements import Entitlements, EntitlementStore
from ductor.app.payloads import PayloadStore
from ductor.app.retention import AGAIN_MS, DAY_MS, Retention
from ductor.model.recurrence import ScheduleKey
from ductor.ports import Conflict, Op
from ductor.testing.memory import VirtualClock
from ductor.testing.world import TENANT

SLOW_MS = 200
DAY = 24 * 3_600_000
SCHEDULES = 40


class Slow:
    """A table each of whose writes takes a while."""

    def __init__(self, table: Any, clock: VirtualClock) -> None:
        self._table, self._clock = table, clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def write(self, ops: Sequence[Op]) -> Conflict | None:
        self._clock.advance(SLOW_MS)
        lost: Conflict | None = self._table.write(ops)
        return lost

    def remove(self, keys: Sequence[tuple[str, str]]) -> None:
        self._clock.advance(SLOW_MS)
        self._table.remove(keys)


def test_removal_of_runs_stops_in_time_and_goes_on() -> None:
    family = Family()
    family.add("small", act("only"))
    for _ in range(30):
        family.start("small")
    family.rest()
    world = family.world
    EntitlementStore(world.table).set(TENANT, Entitlements(retention_days=1))
    world.clock.advance(2 * DAY_MS)
    slow: Any = Slow(world.table, world.clock)
    retention = Retention(table=slow, payloads=PayloadStore(slow, world.blobs), clock=world.clock)
    gone: list[int] = []
    while sum(gone) < 30 and len(gone) < 30:
        began = world.clock.now_ms()
        gone.append(retention.sweep())
        assert world.clock.now_ms() - began < MOST_MS + 20 * SLOW_MS
        world.clock.advance(AGAIN_MS)
    assert (sum(gone), len(gone) > 2) == (30, True)


def test_a_large_backfill_leaves_the_sweep_its_time() -> None:
    desk = Desk()
    desk.publish({"cron": "0 * * * *", "overlap_policy": "allow_all"})
    backfills = desk.scheduling.schedules.backfills
    now = desk.clock.now_ms()
    wanted = BackfillRequest(range=Range(now - 20 * DAY, now - DAY), request_id="b")
    desk.scheduling.schedules.backfill(desk.caller, "hello_world", wanted=wanted)
    slow: Any = Slow(desk.table, desk.clock)
    backfills._table = desk.triggers._table = slow
    key = ScheduleKey(desk.tenant, "hello_world", "default")
    sweeps = 0
    while backfills.get(key, "b").status is BackfillStatus.RUNNING and sweeps < 50:
        began = desk.clock.now_ms()
        backfills.sweep()
        assert desk.clock.now_ms() - began < MOST_MS + 60 * SLOW_MS
        sweeps += 1
    assert backfills.get(key, "b").status is BackfillStatus.COMPLETED
    assert sweeps > 2


def test_firing_stops_in_time_and_what_is_left_stays_due() -> None:
    desk = Desk()
    for number in range(SCHEDULES):
        made = desk.definitions.create(desk.caller, _document(number)).definition.id
        desk.definitions.publish(desk.caller, made)
    desk.clock.advance(61_000)
    slow: Any = Slow(desk.table, desk.clock)
    desk.triggers._table, began = slow, desk.clock.now_ms()
    fired = desk.firing.fire_due()
    assert 0 < len(fired) < SCHEDULES
    assert desk.clock.now_ms() - began < MOST_MS + 20 * SLOW_MS
    desk.triggers._table = desk.table
    rest = desk.firing.fire_due()
    assert {*fired, *rest} == {ScheduleKey(desk.tenant, f"hello_{n}", "default") for n in range(SCHEDULES)}
    assert not {*fired} & {*rest}


def _document(number: int) -> dict[str, Any]:
    return {**HELLO, "family_slug": f"hello_{number}", "schedule": {"cron": "* * * * *"}}
