"""Virtual time and seeded identity, and the smaller ports in memory. Nothing here reads a clock or real chance."""

from __future__ import annotations

import base64
import random
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from ductor.adapters import rules

_DAY_ONE: Final = 1_767_225_600_000  # 2026-01-01T00:00:00Z
_VARIANT: Final = 0b10 << 62


class VirtualClock:
    """`ports.Clock` that moves only when told; epoch milliseconds."""

    def __init__(self, now: int = _DAY_ONE) -> None:
        self.now = now

    def now_ms(self) -> int:
        return self.now

    def advance(self, milliseconds: int) -> None:
        self.now += milliseconds

    def set(self, now: int) -> None:
        """Jump; backwards too, as real clocks do."""
        self.now = now


class SeededIds:
    """`ports.Ids` that gives the same ids for the same seed. For tests only: they can be guessed."""

    def __init__(self, seed: int, clock: VirtualClock | None = None) -> None:
        self._random = random.Random(seed)
        self._clock = clock or VirtualClock()
        self._last = 0

    def uuid(self) -> str:
        """A UUIDv7 of the virtual time, sorting after all that this object made before."""
        self._last = stamp = max(self._clock.now << 12, self._last + 1)
        high = (stamp >> 12 << 16) | 0x7000 | (stamp & 0xFFF)
        digits = f"{high:016x}{_VARIANT | self._random.getrandbits(62):016x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def token(self, size: int) -> str:
        return base64.urlsafe_b64encode(self._random.randbytes(size)).decode().rstrip("=")


class MemoryBlobs:
    """`ports.Blobs` in a dict."""

    def __init__(self) -> None:
        self._data: dict[str, bytes] = {}

    def put(self, key: str, data: bytes) -> None:
        self._data.setdefault(key, data)

    def get(self, key: str) -> bytes | None:
        return self._data.get(key)

    def delete(self, key: str) -> None:
        self._data.pop(key, None)

    def keys(self, prefix: str, limit: int) -> tuple[str, ...]:
        return tuple(sorted(key for key in self._data if key.startswith(prefix))[:limit])


class MemoryTimers:
    """`ports.Timers` in a sorted list, and its reading end. A timer stays armed until `fired`."""

    def __init__(self) -> None:
        self._armed: list[tuple[int, str]] = []

    def arm(self, run_id: str, at: int) -> None:
        if not self._has((at, run_id)):
            insort(self._armed, (at, run_id))

    def due(self, now: int, limit: int = 100) -> tuple[tuple[str, int], ...]:
        """The (run id, at) pairs whose time has come, earliest first."""
        rules.check_limit(limit)
        ripe = self._armed[: min(limit, bisect_right(self._armed, now, key=lambda timer: timer[0]))]
        return tuple((run_id, at) for at, run_id in ripe)

    def fired(self, timers: Sequence[tuple[str, int]]) -> None:
        """Forget wake-ups that have been delivered."""
        for run_id, at in timers:
            if self._has((at, run_id)):
                del self._armed[bisect_left(self._armed, (at, run_id))]

    def next_at(self) -> int | None:
        """When the earliest timer is due, None when there is none."""
        return self._armed[0][0] if self._armed else None

    def _has(self, timer: tuple[int, str]) -> bool:
        place = bisect_left(self._armed, timer)
        return place < len(self._armed) and self._armed[place] == timer


class NullUnit:
    """`ports.Unit` that groups nothing, as on AWS: every write stands on its own and stays when a batch fails."""

    def batch(self) -> AbstractContextManager[None]:
        return nullcontext()

    def part(self) -> AbstractContextManager[None]:
        return nullcontext()
