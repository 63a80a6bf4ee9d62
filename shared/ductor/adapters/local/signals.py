"""Threads waking threads of this process: a lock that is passed on in order, and a signal with a memory.

Neither reaches other processes; those are found by polling.
"""

from __future__ import annotations

import threading
from collections import deque


class FairLock:
    """A mutual exclusion that is handed to the thread that has waited longest. Not re-entrant."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held = False
        self._waiting: deque[threading.Lock] = deque()

    @property
    def waiting(self) -> int:
        """How many threads wait for it now."""
        return len(self._waiting)

    def acquire(self) -> None:
        with self._guard:
            if not self._held:
                self._held = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def release(self) -> None:
        """Pass the lock to the next in line; it never becomes free in between, so nobody can jump the queue."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False


class Signal:
    """Says that something happened. A waiter names the count it saw, so nothing between look and wait is missed."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    @property
    def count(self) -> int:
        return self._count

    def notify(self, waiters: int) -> None:
        """Count one more event and wake up to `waiters` threads."""
        with self._changed:
            self._count += 1
            self._changed.notify(waiters)

    def wait(self, seen: int, seconds: float) -> None:
        """Return once the count differs from `seen`, after `seconds`, or now and then for no reason."""
        with self._changed:
            if self._count == seen:
                self._changed.wait(seconds)
