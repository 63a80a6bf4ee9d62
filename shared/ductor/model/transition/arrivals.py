"""What came to a run from outside, and which of its waits took it."""

from __future__ import annotations

from ductor.model.payload import NULL, Payload
from ductor.model.transition.base import TransitionBase


class EventConsumed(TransitionBase, frozen=True, tag="event_consumed"):
    """An event has ended a pause of this run, or counts in a set: within a day it ends no other that begins later."""

    mark: str


class SignalKept(TransitionBase, frozen=True, tag="signal_kept"):
    """A signal has arrived, or a wait that had taken it ended otherwise: the next wait for its name may take it."""

    id: str
    name: str
    payload: Payload = NULL
    at: int = 0


class SignalTaken(TransitionBase, frozen=True, tag="signal_taken"):
    """A wait has taken the signal."""

    id: str
