"""The slow loops of a long-lived process: due wake-ups become intents, and a sweep finds what was lost."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Final, Protocol

from ductor.app.dispatch import intent_message, send_all, wake_intent
from ductor.app.sweeper import Sweeper
from ductor.ports import Clock, Ids, Queue, UnavailableError, Unit

BATCH: Final = 400

WAIT_MS: Final = 1_000
PAUSE_S: Final = 0.5
"""Pause after the storage was unavailable."""

_log = logging.getLogger("ductor")


class FiringTimers(Protocol):
    """The reading end of timers that a process fires itself."""

    def due(self, now: int, limit: int = 100) -> tuple[tuple[str, int], ...]:
        """(run id, at) of the wake-ups whose time has come; they stay armed."""
        ...

    def fired(self, timers: Sequence[tuple[str, int]]) -> None:
        """Forget wake-ups whose intents have been sent."""
        ...

    def wait(self, now: int, wait_ms: int) -> None:
        """Return when one is due, or after `wait_ms`."""
        ...


class TimerLoop:
    """Turns due wake-ups into intents."""

    def __init__(self, timers: FiringTimers, intents: Queue, unit: Unit, clock: Clock, ids: Ids) -> None:
        self._timers = timers
        self._intents = intents
        self._unit = unit
        self._clock = clock
        self._ids = ids

    def run(self, stop: threading.Event) -> None:
        """Until `stop` is set."""
        while not stop.is_set():
            try:
                self._timers.wait(self._clock.now_ms(), WAIT_MS)
                self.step()
            except UnavailableError as fault:
                _log.warning("timers: %s", fault)
                stop.wait(PAUSE_S)
            except Exception:  # noqa: BLE001 - the loop outlives any failure
                _log.exception("timers: firing failed; the wake-ups stay armed")
                stop.wait(PAUSE_S)

    def step(self) -> int:
        """Send an intent for each due wake-up and forget them, in one unit; the number of them."""
        now = self._clock.now_ms()
        if not self._timers.due(now, 1):
            return 0
        with self._unit.batch():
            due = self._timers.due(now, BATCH)
            send_all(
                self._intents,
                [intent_message(wake_intent(run_id, at, now, self._ids), self._ids) for run_id, at in due],
            )
            self._timers.fired(due)
        return len(due)


SWEEP_EVERY_S: Final = 60.0


class SweeperLoop:
    """Sweeps once a minute."""

    def __init__(self, sweeper: Sweeper) -> None:
        self._sweeper = sweeper

    def run(self, stop: threading.Event) -> None:
        """Until `stop` is set."""
        while not stop.wait(SWEEP_EVERY_S):
            try:
                self._sweeper.sweep()
            except UnavailableError as fault:
                _log.warning("sweeper: %s", fault)
            except Exception:  # noqa: BLE001 - the loop outlives any failure
                _log.exception("sweeper: a sweep failed")
