"""A batch of the timers queue on Lambda: due wake-ups become intents, early ones are armed for the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from ductor.app.dispatch import intent_message, send_all, wake_intent
from ductor.lambdas.telemetry import Telemetry
from ductor.model.intent import Intent
from ductor.ports import Clock, Ids, Message, Queue, Timers, UnavailableError


class Wake(Protocol):
    """Which run to wake, and when (epoch ms)."""

    @property
    def run_id(self) -> str: ...

    @property
    def at(self) -> int: ...


class TimerBatches:
    """Handles the batches of one function. `read` makes a wake-up of a body, or raises a msgspec error."""

    def __init__(
        self,
        *,
        read: Callable[[bytes], Wake],
        timers: Timers,
        intents: Queue,
        clock: Clock,
        ids: Ids,
        telemetry: Telemetry,
    ) -> None:
        self._read = read
        self._timers = timers
        self._intents = intents
        self._clock = clock
        self._ids = ids
        self._telemetry = telemetry

    def handle(self, messages: Sequence[Message]) -> list[str]:
        """The ids of the messages that must come again; Lambda removes all others."""
        now = self._clock.now_ms()
        failed: list[str] = []
        due: list[tuple[Message, Intent]] = []
        for message in messages:
            try:
                wake = self._read(message.body)
                if wake.at > now:
                    self._timers.arm(wake.run_id, wake.at)
                else:
                    due.append((message, wake_intent(wake.run_id, wake.at, now, self._ids)))
            except (msgspec.DecodeError, msgspec.ValidationError) as fault:
                self._telemetry.log.error("not a wake-up, left to the dead letters: %s", fault)
                failed.append(message.id)
            except UnavailableError as fault:
                self._telemetry.log.warning("a wake-up could not be armed again: %s", fault)
                failed.append(message.id)
        failed += self._fire(due)
        self._telemetry.count("WakeUpsFired", len(due))
        self._telemetry.flush()
        return failed

    def _fire(self, due: Sequence[tuple[Message, Intent]]) -> list[str]:
        """All at once; a repeated wake-up changes nothing, so after a failure all of them come again."""
        try:
            send_all(self._intents, [intent_message(intent, self._ids) for _, intent in due])
        except UnavailableError as fault:
            self._telemetry.log.warning("wake-ups come again: %s", fault)
            return [message.id for message, _ in due]
        return []
