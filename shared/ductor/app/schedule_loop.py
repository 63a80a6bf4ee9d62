"""The loop of a long-lived process that fires schedules in time. Decides nothing itself."""

from __future__ import annotations

import logging
import threading
from typing import Final

from ductor.app.schedule_firing import Firing
from ductor.app.schedule_rows import next_due
from ductor.ports import Clock, Table, UnavailableError

MOST_WAIT_MS: Final = 1_000
"""Another process may have published a schedule meanwhile."""

PAUSE_S: Final = 0.5
"""Pause after a failure."""

_log = logging.getLogger("ductor")


class ScheduleLoop:
    """Fires what is due, then waits until the next occurrence is."""

    def __init__(self, firing: Firing, table: Table, clock: Clock) -> None:
        self._firing = firing
        self._table = table
        self._clock = clock

    def run(self, stop: threading.Event) -> None:
        """Until `stop` is set."""
        while not stop.is_set():
            try:
                wait_ms = self.step()
            except UnavailableError as fault:
                _log.warning("schedules: %s", fault)
                wait_ms = int(PAUSE_S * 1_000)
            except Exception:  # noqa: BLE001 - the loop outlives any failure
                _log.exception("schedules: firing failed; what is due stays so")
                wait_ms = int(PAUSE_S * 1_000)
            stop.wait(wait_ms / 1_000)

    def step(self) -> int:
        """Fire what is due; how long to wait then, in ms."""
        earliest = next_due(self._table)
        now = self._clock.now_ms()
        if earliest is None or earliest > now:
            return MOST_WAIT_MS if earliest is None else min(earliest - now, MOST_WAIT_MS)
        # What fails stays due, and must not be tried without a pause.
        return 0 if self._firing.fire_due() else int(PAUSE_S * 1_000)
