"""A batch of the schedule queue on Lambda: each message is a call of EventBridge Scheduler for one schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from ductor.app.schedule_firing import Firing
from ductor.lambdas.telemetry import Telemetry
from ductor.model.recurrence import ScheduleKey
from ductor.ports import Clock, Message, Outgoing, Queue, UnavailableError

MAX_DELAY_MS: Final = 900_000
SKEW_MS: Final = 60_000
"""How far Scheduler's clock may be ahead of ours: it never calls early by its own."""


class Call(Protocol):
    """Which schedule, and when the call was due (epoch ms): that, and not when it comes, says what fires."""

    @property
    def key(self) -> ScheduleKey: ...

    def until(self, sent_at: int) -> int: ...


class ScheduleBatches:
    """Handles the batches of one function. `read` makes a call of a body, or raises a msgspec error; `again` takes a

    message that must come back later.
    """

    def __init__(
        self,
        *,
        read: Callable[[bytes], Call],
        firing: Firing,
        again: Queue,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._read = read
        self._firing = firing
        self._again = again
        self._clock = clock
        self._telemetry = telemetry

    def handle(self, messages: Sequence[Message]) -> list[str]:
        """The ids of the messages that must come again; Lambda removes all others."""
        failed = [message.id for message in messages if not self._handled(message)]
        self._telemetry.count("ScheduleCalls", len(messages))
        self._telemetry.count("ScheduleCallsReturned", len(failed))
        self._telemetry.flush()
        return failed

    def _handled(self, message: Message) -> bool:
        try:
            call = self._read(message.body)
            until = call.until(message.sent_at)
            if until > self._clock.now_ms() + SKEW_MS:
                self._telemetry.log.error("a call of the future, %s, comes again", until)
                return False
            return self._later(message, self._firing.advance(call.key, until))
        except (msgspec.DecodeError, msgspec.ValidationError) as fault:
            self._telemetry.log.error("not a call, left to the dead letters: %s", fault)
        except UnavailableError as fault:
            self._telemetry.log.warning("a call comes again: %s", fault)
        except Exception:  # one schedule's fault: its call comes again, and the others of the batch are done
            self._telemetry.log.exception("a schedule could not be fired; its call comes again")
        return False

    def _later(self, message: Message, at: int) -> bool:
        """Send the call again for what is not due yet, as far ahead as the queue can delay."""
        if not at:
            return True
        delay_ms = min(MAX_DELAY_MS, max(0, at - self._clock.now_ms()))
        return not self._again.send([Outgoing(body=message.body, delay_ms=delay_ms)])
