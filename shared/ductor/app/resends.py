"""When the task of an attempt may be put on the steps queue once more. Looks at the queue, never at a run."""

from __future__ import annotations

import logging
from typing import Final, Protocol

from ductor.ports import Clock, UnavailableError

FIRST_MS: Final = 300_000
"""How long after an attempt was handed out its task is sent again at the earliest; the looks after it double from one
minute, so from here on resends double with them."""

FRESH_MS: Final = 60_000
"""How long a reading of the queue's age serves: on AWS it is a request to CloudWatch, which has a value per minute."""

_log = logging.getLogger("ductor")


class Aged(Protocol):
    """The part of `ports.Queue` that says how far behind its consumers are."""

    def oldest_age_ms(self) -> int: ...


class Resends:
    """Keeps resends from feeding a backlog: a task that is merely waiting in the queue is not sent again.

    While the oldest message is older than an attempt's backoff, that attempt's task may still be among them, and is
    put off until its next look. When it is younger, the task can be there no more: it was lost, or taken by a worker
    that died. One instance per process, of one thread.
    """

    def __init__(self, steps: Aged, clock: Clock) -> None:
        self._steps = steps
        self._clock = clock
        self._age = 0
        self._read_at = 0

    def due(self, scheduled_at: int, every_ms: int) -> bool:
        """Whether the task of an attempt that was handed out at `scheduled_at` (epoch ms) may be sent again now.

        `every_ms` is the time until the attempt's next look: twice that since the one before, which is its backoff.
        """
        now = self._clock.now_ms()
        if now - scheduled_at < FIRST_MS:
            return False
        return self._oldest(now) <= max(FIRST_MS, every_ms // 2)

    def _oldest(self, now: int) -> int:
        """The age of the oldest message now: what was waiting at the last reading has waited on since then."""
        if not self._read_at <= now < self._read_at + FRESH_MS:
            self._age, self._read_at = self._read(), now
        return self._age + now - self._read_at if self._age else 0

    def _read(self) -> int:
        """An age that cannot be read counts as none. A resend too many costs a message, which the attempt's row makes

        harmless and the doubling of the looks bounds; one that never comes would leave the run waiting for nothing.
        """
        try:
            return self._steps.oldest_age_ms()
        except UnavailableError as fault:
            _log.warning("the age of the steps queue cannot be read, lost tasks are sent again all the same: %s", fault)
            return 0
