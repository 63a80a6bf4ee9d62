"""The loops of a long-lived process: receive, handle, acknowledge; timers into intents. On Lambda AWS is the loop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Final, Protocol

from ductor.app.coordinator import Coordinator, Handled, retry_after_ms
from ductor.app.dispatch import intent_message, send_all
from ductor.app.sweeper import Sweeper
from ductor.model.intent import Intent, IntentKind
from ductor.ports import Clock, Ids, Message, Queue, UnavailableError, Unit

BATCH: Final = 400
"""Messages in one commit. More only adds latency: a commit's share of each is already small."""

VISIBILITY_MS: Final = 5_000
"""How long a batch may take before its messages are delivered again; also how long a killed process delays them."""

WAIT_MS: Final = 1_000
PAUSE_S: Final = 0.5
"""Pause after the storage was unavailable."""

_log = logging.getLogger("ductor")


class CoordinatorLoop:
    """Feeds one coordinator from the intents queue; each batch, with its sends and acks, is one unit."""

    def __init__(self, coordinator: Coordinator, intents: Queue, unit: Unit) -> None:
        self._coordinator = coordinator
        self._intents = intents
        self._unit = unit

    def run(self, stop: threading.Event) -> None:
        """Until `stop` is set. Survives everything but the end of the process."""
        while not stop.is_set():
            try:
                self.step(WAIT_MS)
            except UnavailableError as fault:
                _log.warning("coordinator: %s", fault)
                stop.wait(PAUSE_S)
            except Exception:  # noqa: BLE001 - the loop outlives any batch
                _log.exception("coordinator: a batch failed; its messages come again")
                stop.wait(PAUSE_S)

    def step(self, wait_ms: int) -> int:
        """Handle one batch; the number of messages in it."""
        messages = self._intents.receive(BATCH, visibility_ms=VISIBILITY_MS, wait_ms=wait_ms)
        if messages:
            self._handle(messages)
        return len(messages)

    def _handle(self, messages: Sequence[Message]) -> None:
        try:
            with self._unit.batch():
                self._settle(self._coordinator.handle(messages))
        except Exception:
            self._coordinator.forget()
            if len(messages) > 1:
                self._one_group_at_a_time(messages)
            else:
                self._intents.retry([messages[0].receipt], delay_ms=retry_after_ms(messages[0].receives))
                raise

    def _one_group_at_a_time(self, messages: Sequence[Message]) -> None:
        """A batch failed as a whole: find the run whose fault it is, so that it fails alone."""
        groups: dict[str, list[Message]] = {}
        for message in messages:
            groups.setdefault(message.group, []).append(message)
        for group in groups.values():
            try:
                with self._unit.batch():
                    self._settle(self._coordinator.handle(group))
            except Exception as fault:  # noqa: BLE001 - one run's failure must not stop the others
                self._coordinator.forget()
                _log.warning("coordinator: run %s failed: %s", group[0].group, fault, exc_info=True)
                delay = retry_after_ms(max(message.receives for message in group))
                self._intents.retry([message.receipt for message in group], delay_ms=delay)

    def _settle(self, handled: Handled) -> None:
        self._intents.ack(handled.done)
        for receipt, delay_ms in handled.later:
            self._intents.retry([receipt], delay_ms=delay_ms)
        for receipt, reason in handled.buried:
            self._intents.dead_letter([receipt], reason)


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
            send_all(self._intents, [intent_message(self._intent(run_id, at, now), self._ids) for run_id, at in due])
            self._timers.fired(due)
        return len(due)

    def _intent(self, run_id: str, at: int, now: int) -> Intent:
        mark = f"{run_id}:timer:{at}:{self._ids.token(6)}"
        return Intent(id=mark, run_id=run_id, kind=IntentKind.TIMER_FIRED, at=now)


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
