"""Threads waking threads of this process: a lock that is passed on, a signal with a memory, a share of a commit.

None reaches other processes; those are found by polling.
"""

from __future__ import annotations

import threading
from collections import deque

from ductor.ports import UnavailableError


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


class Ticket:
    """One thread's share of a commit that another thread may carry out."""

    __slots__ = ("_done", "_failure")

    def __init__(self) -> None:
        # A lock that the waiter takes a second time: an event would cost every commit 5 us, though few are waited for.
        self._done = threading.Lock()
        self._done.acquire()
        self._failure: BaseException | None = None

    def settle(self, failure: BaseException | None) -> None:
        """The commit has happened, or failed for everybody."""
        self._failure = failure
        self._done.release()

    def wait(self) -> None:
        """Until it has; called once."""
        self._done.acquire()

    def check(self) -> None:
        """Raise what the commit failed with."""
        if isinstance(self._failure, UnavailableError):
            raise UnavailableError(str(self._failure)) from self._failure
        if self._failure is not None:
            raise self._failure
