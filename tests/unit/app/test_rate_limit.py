"""The token bucket of a tenant: how much it lets through, from how many processes, and who waits how long."""

from __future__ import annotations

import pytest

from ductor.app.entitlements import Entitlements, EntitlementStore
from ductor.app.rate_limit import PLAN_MS, RateLimit, RateLimitedError
from ductor.testing.memory import MemoryTable, VirtualClock


class Door:
    """A tenant with a plan, behind some processes."""

    def __init__(self, rate: int, burst: int = 0, processes: int = 1) -> None:
        self.table, self.clock = MemoryTable(), VirtualClock()
        self.plan(rate, burst)
        self.processes = [RateLimit(self.table, self.clock) for _ in range(processes)]

    def plan(self, rate: int, burst: int = 0) -> None:
        EntitlementStore(self.table).set("t", Entitlements(requests_per_second=rate, burst=burst))

    def passed(self, requests: int, tenant: str = "t") -> int:
        """How many of so many requests, spread over the processes, are let through now."""
        return sum(self._passes(self.processes[n % len(self.processes)], tenant) for n in range(requests))

    def _passes(self, process: RateLimit, tenant: str) -> bool:
        try:
            process.pass_one(tenant)
        except RateLimitedError:
            return False
        return True


def test_a_burst_passes_and_then_what_a_second_brings() -> None:
    door = Door(rate=10, burst=25)
    assert door.passed(100) == 25
    door.clock.advance(1_000)
    assert door.passed(100) == 10
    door.clock.advance(100)
    assert door.passed(100) == 1


def test_processes_share_one_bucket() -> None:
    door = Door(rate=50, burst=50, processes=7)
    assert door.passed(500) == 50
    door.clock.advance(2_000)
    assert door.passed(500) == 50


def test_whoever_is_refused_hears_when_there_is_room() -> None:
    door = Door(rate=1)
    door.passed(1)
    with pytest.raises(RateLimitedError) as refused:
        door.processes[0].pass_one("t")
    assert refused.value.retry_after_s == 1
    assert [(one.field, one.code) for one in refused.value.violations] == [("X-Tenant-ID", "RATE_LIMITED")]
    door.clock.advance(refused.value.retry_after_s * 1_000)
    assert door.passed(1) == 1


def test_a_plan_without_a_limit_lets_everything_through_and_another_tenant_does_not_notice() -> None:
    door = Door(rate=1)
    assert door.passed(50) == 1
    assert door.passed(50, "other") == 50


def test_what_a_process_has_taken_and_not_spent_is_lost_after_a_second() -> None:
    door = Door(rate=100, burst=100, processes=10)
    assert door.passed(10) == 10  # each has taken ten
    door.clock.advance(1_000)
    assert door.passed(1_000) == 100


def test_a_change_of_the_plan_counts_within_ten_seconds() -> None:
    door = Door(rate=1)
    assert door.passed(5) == 1
    door.plan(0)
    door.clock.advance(PLAN_MS)
    assert door.passed(50) == 50


def test_a_clock_that_is_behind_fills_nothing_twice() -> None:
    door = Door(rate=10, burst=10)
    assert door.passed(20) == 10
    door.clock.set(door.clock.now - 5_000)
    door.processes = [RateLimit(door.table, door.clock)]
    assert door.passed(20) == 0


class Behind:
    """A clock that is behind another one by so many ms."""

    def __init__(self, clock: VirtualClock, ms: int) -> None:
        self._clock, self._ms = clock, ms

    def now_ms(self) -> int:
        return self._clock.now_ms() - self._ms


def test_no_second_fills_the_bucket_twice_for_processes_whose_clocks_differ() -> None:
    door = Door(rate=1_000)
    door.processes.append(RateLimit(door.table, Behind(door.clock, 1_000)))
    assert door.passed(20_000) == 1_000
    for _ in range(5):
        door.clock.advance(100)
        assert door.passed(2_000) <= 100


def test_a_clock_that_is_put_back_locks_nobody_out() -> None:
    door = Door(rate=1)
    assert door.passed(2) == 1
    door.clock.advance(-3_600_000)
    assert door.passed(3) == 1
    door.clock.advance(1_000)
    assert door.passed(1) == 1
