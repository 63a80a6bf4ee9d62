"""Causation: how far a run or an event is from the request that began it. What has gone too far is a loop and stops.

A request has depth 0, and a run has that of its request. The events of a run, and those that its actions publish,
have the run's depth; a run that such an event starts, or that an action triggers, is one deeper. Children, successors,
forks, compensations and hooks have the depth of the run that they belong to: other limits bound them.
"""

from __future__ import annotations

from typing import Final

MAX_DEPTH: Final = 32
"""Nothing that is deeper is started."""

HEADER: Final = "ductor-causation-depth"
"""In which calls by actions say how deep their run is. Whoever leaves it out begins anew."""

DEPTH_RESOURCE: Final = "ductor/causation-depth/"
EVENT_RESOURCE: Final = "ductor/event-id/"
"""What entries of `resources` begin with in which actions say, on an event bus, how deep their run is and which event
it is, so that a repetition is known by it."""

RESERVED: Final = "ductor."
"""Names of events that only the engine gives."""

RUN_EVENT: Final = "ductor.run."
"""What the names of events about runs begin with; the rest is what happened: `started`, `completed`, …"""

ENDS: Final = frozenset(
    RUN_EVENT + status
    for status in ("completed", "failed", "timed_out", "cancelled", "terminated", "continued_as_new", "merged")
)
"""The events that each run has one of, unless it is redriven."""

MAX_WEIGHT: Final = 16
_HALF: Final = 8


def depth_of_started(event_name: str, depth: int, starts: int) -> int:
    """The depth of each of the `starts` runs that one event of this depth starts.

    It is one deeper. But every run has its events, so that definitions which listen to the runs of each other would
    double at every level: an event about a run that starts several at once, or that is not the run's end, takes more
    of the depth. So one chain may have 32 runs, and no tree grows to more than some thousands.
    """
    if not event_name.startswith(RUN_EVENT) or (event_name in ENDS and starts <= 1):
        return depth + 1
    return depth + min(MAX_WEIGHT, max(_HALF, 4 * starts))
