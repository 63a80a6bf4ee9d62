"""What becomes of a batch of messages once it was handled, told to their queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ductor.ports import Queue


class Settled(Protocol):
    """By receipt: what to acknowledge, to deliver again after so many ms, to bury with a reason."""

    @property
    def done(self) -> Sequence[str]: ...

    @property
    def later(self) -> Sequence[tuple[str, int]]: ...

    @property
    def buried(self) -> Sequence[tuple[str, str]]: ...


def settle(queue: Queue, batch: Settled) -> None:
    """Whatever is not told comes again when its visibility is over. Raises UnavailableError."""
    if batch.done:
        queue.ack(batch.done)
    for receipt, delay_ms in batch.later:
        queue.retry([receipt], delay_ms=delay_ms)
    for receipt, reason in batch.buried:
        queue.dead_letter([receipt], reason)
