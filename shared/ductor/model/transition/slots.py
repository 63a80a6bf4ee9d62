"""What happened to a run's slot of its definition's concurrency."""

from __future__ import annotations

from ductor.model.transition.base import TransitionBase


class SlotAsked(TransitionBase, frozen=True, tag="slot_asked"):
    """The run waits for a slot of its definition's concurrency. `lease` is new with each demand; see `SlotState`."""

    key: str
    lease: int
    place: int
    check_at: int
    check_every: int


class SlotGranted(TransitionBase, frozen=True, tag="slot_granted"):
    """The run may go on. `deadline` is when it times out, 0 = it has not started."""

    lease: int
    deadline: int = 0


class SlotLeft(TransitionBase, frozen=True, tag="slot_left"):
    """The run waits for its slot no more."""

    lease: int


class SlotChecked(TransitionBase, frozen=True, tag="slot_checked"):
    """Somebody is asked to look whether the run has been given its slot; the next look is at `check_at`."""

    check_at: int
    check_every: int
