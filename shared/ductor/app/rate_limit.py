"""How many requests a tenant's plan lets through: one token bucket per tenant, shared by all processes.

A process takes some tokens at a time out of the tenant's row by a conditional write, and spends them by itself; so
the row is written a few times a second at most, and never more is let through than the bucket held.
"""

from __future__ import annotations

import math
import threading
from typing import Final

import msgspec

from ductor.app.entitlements import EntitlementStore
from ductor.model.errors import ErrorCode, RefusedError, Violation
from ductor.ports import Clock, Conflict, Expect, Item, Put, Table

BUCKET: Final = "RATE"
PLAN_MS: Final = 10_000
"""How long a process goes by what it has read of a plan."""

TAKE_MS: Final = 100
"""A process takes the tokens of so many milliseconds at once, at least one."""

KEEP_MS: Final = 1_000
"""After so long what it has not spent is lost, so that idle processes add no burst of their own."""

MOST_WAIT_MS: Final = 1_001
"""Until there is a token again, at one a second. More is seen after the clock was put back, and counts for nothing."""

SKEW_MS: Final = 5_000
"""How far ahead the clock of another process may be. What is farther ahead was written by a clock that was wrong."""

RACES: Final = 10
MAX_TENANTS: Final = 10_000


class RateLimitedError(RefusedError):
    """Too many requests. `retry_after_s`: whole seconds after which there will be a token."""

    def __init__(self, rate: int, retry_after_s: int) -> None:
        message = f"this tenant's plan allows {rate} requests a second; try again in {retry_after_s} s"
        fault = Violation("X-Tenant-ID", "RATE_LIMITED", message)
        super().__init__(ErrorCode.RESOURCE_EXHAUSTED, message, (fault,))
        self.retry_after_s = retry_after_s


class Bucket(msgspec.Struct, frozen=True):
    """The row `N#<tenant>`/`RATE`: what was in the bucket at that time (epoch ms)."""

    tokens: float
    at: int


class _Purse(msgspec.Struct):
    """What this process knows of a tenant: its plan, and the tokens that it has taken. Times are epoch ms.

    Whoever holds `lock` may wait for the table; other tenants do not.
    """

    rate: int = 0
    burst: int = 0
    plan_until: int = 0
    tokens: int = 0
    tokens_until: int = 0
    empty_until: int = 0
    lock: threading.Lock = msgspec.field(default_factory=threading.Lock)


class RateLimit:
    """The buckets of all tenants. Safe to use from several threads."""

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._plans = EntitlementStore(table)
        self._clock = clock
        self._purses: dict[str, _Purse] = {}
        self._lock = threading.Lock()

    def pass_one(self, tenant: str) -> None:
        """Let a request through. Raises RateLimitedError; a tenant whose plan has no limit costs a look a few times a

        minute. A change of the plan counts everywhere within ten seconds.
        """
        now = self._clock.now_ms()
        purse = self._purse(tenant)
        with purse.lock:
            if not now < purse.plan_until <= now + PLAN_MS:
                plan = self._plans.get(tenant)
                purse.rate, purse.burst = plan.requests_per_second, plan.burst or plan.requests_per_second
                purse.plan_until = now + PLAN_MS
            if purse.rate:
                self._spend(tenant, purse, now)

    def _purse(self, tenant: str) -> _Purse:
        with self._lock:
            if len(self._purses) >= MAX_TENANTS and tenant not in self._purses:
                self._purses.clear()
            return self._purses.setdefault(tenant, _Purse())

    def _spend(self, tenant: str, purse: _Purse, now: int) -> None:
        if now < purse.empty_until <= now + MOST_WAIT_MS:
            raise RateLimitedError(purse.rate, math.ceil((purse.empty_until - now) / 1000))
        if purse.tokens and now < purse.tokens_until:
            purse.tokens -= 1
            return
        purse.tokens = self._take(tenant, purse, now) - 1
        purse.tokens_until = now + KEEP_MS

    def _take(self, tenant: str, purse: _Purse, now: int) -> int:
        """Some tokens out of the shared bucket, at least one."""
        item = self._table.get(f"N#{tenant}", BUCKET)
        for _ in range(RACES):
            tokens = _filled(item, purse, now)
            if tokens < 1:
                wait = math.ceil((1 - tokens) * 1000 / purse.rate)
                purse.empty_until = now + wait
                raise RateLimitedError(purse.rate, max(1, math.ceil(wait / 1000)))
            taken = min(int(tokens), max(1, purse.rate * TAKE_MS // 1000))
            lost = self._put(tenant, item, Bucket(tokens - taken, _not_back(item, now)))
            if lost is None:
                return taken
            item = lost.current
        raise RateLimitedError(purse.rate, 1)  # so many others were faster

    def _put(self, tenant: str, item: Item | None, bucket: Bucket) -> Conflict | None:
        version = item.version if item else 0
        row = Item(pk=f"N#{tenant}", sk=BUCKET, version=version + 1, body=msgspec.json.encode(bucket))
        return self._table.write((Put(row, version or Expect.ABSENT),))


def _not_back(item: Item | None, now: int) -> int:
    """The time of the bucket. A process whose clock is behind must not let the same second fill it twice."""
    known = msgspec.json.decode(item.body, type=Bucket).at if item is not None else 0
    return known if now < known <= now + SKEW_MS else now


def _filled(item: Item | None, purse: _Purse, now: int) -> float:
    """What is in the bucket by now. Clocks of processes differ: time never runs backwards here."""
    if item is None:
        return purse.burst
    known = msgspec.json.decode(item.body, type=Bucket)
    if known.at > now + SKEW_MS:
        return purse.burst  # nobody can tell for how long it has been filling
    return min(purse.burst, known.tokens + max(0, now - known.at) * purse.rate / 1000)
