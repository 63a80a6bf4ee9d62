"""What the world outside hears of a run: a name for each transition that matters to others, numbered like it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ductor.model import transition as tr
from ductor.model.causation import RUN_EVENT
from ductor.model.command import Announce, Announced
from ductor.model.run import LastTick, RunState
from ductor.model.transition import Transition

_NAMES: Final[dict[type[Transition], str]] = {
    tr.RunStarted: "started",
    tr.RunPaused: "paused",
    tr.RunResumed: "resumed",
    tr.RunRedriven: "redriven",
}


def announcements(
    state: RunState, transitions: Sequence[Transition], before: LastTick | None = None
) -> Iterable[Announce]:
    """One command for all that the tick has to tell, none if that is nothing.

    `before` is the commit that a fork began with, which nobody has told of.
    """
    begun = list(_told(before.seq + 1, before.transitions)) if before is not None else []
    told = (*begun, *_told(state.seq - len(transitions) + 1, transitions))
    return (Announce(told),) if told else ()


def telling(first: int, transitions: Sequence[Transition]) -> Iterable[Announce]:
    """The same for a commit of long ago, whose first transition has the number `first`."""
    told = tuple(_told(first, transitions))
    return (Announce(told),) if told else ()


def _told(first: int, transitions: Sequence[Transition]) -> Iterator[Announced]:
    for seq, transition in enumerate(transitions, first):
        if type(transition) in _NAMES:
            yield Announced(RUN_EVENT + _NAMES[type(transition)], seq)
        elif isinstance(transition, tr.RunEnded):
            yield Announced(RUN_EVENT + transition.status.value, seq)
