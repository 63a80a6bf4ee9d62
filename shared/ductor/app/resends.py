"""When the task of an attempt may be put on the steps queue once more. Looks at the queue, never at a run."""

from __future__ import annotations

import logging
from typing import Final, Protocol

from ductor.model.attempt import AttemptTask
from ductor.model.intent import Intent
from ductor.ports import UnavailableError

FIRST_MS: Final = 300_000
"""How long after an attempt was handed out its task is sent again at the earliest. The looks after it double from one
minute up to a day, so from here on its resends double with them."""

LAST_MS: Final = 86_400_000
FRESH_MS: Final = 60_000
"""How long a reading of the queue's age serves: on AWS it is a request to CloudWatch, which has a value per minute."""

_log = logging.getLogger("ductor")


class Aged(Protocol):
    """The part of `ports.Queue` that says how far behind its consumers are."""

    def oldest_age_ms(self) -> int: ...


class Inspected(Protocol):
    """Attempt rows, as dispatch asks for them."""

    def inspect(self, task: AttemptTask, now: int) -> Intent | AttemptTask | None: ...

    def revoke(self, task: AttemptTask, now: int) -> Intent | None: ...


class Resends:
    """Attempt rows that keep resends from feeding a backlog: a task that merely waits in the queue is not sent again.

    While the oldest message is older than an attempt's backoff, the attempt's task may still be among them, and the
    resend is put off until the next look, which is armed already. Once it is younger, the task can be there no more:
    it was lost, or its worker died. Not thread-safe: one for each coordinator.
    """

    def __init__(self, attempts: Inspected, steps: Aged) -> None:
        self._attempts = attempts
        self._steps = steps
        self._age = 0
        self._read_at = 0

    def inspect(self, task: AttemptTask, now: int) -> Intent | AttemptTask | None:
        """As `Attempts.inspect`, but None also for a task that is not to be sent again yet."""
        found = self._attempts.inspect(task, now)
        return found if isinstance(found, Intent) or self._due(task, now) else None

    def revoke(self, task: AttemptTask, now: int) -> Intent | None:
        """As `Attempts.revoke`."""
        return self._attempts.revoke(task, now)

    def _due(self, task: AttemptTask, now: int) -> bool:
        """The looks double, so half of the time since the attempt was handed out has passed since the look before."""
        out = now - task.scheduled_at
        return out >= FIRST_MS and self._oldest(now) <= min(max(FIRST_MS, out // 2), LAST_MS)

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
