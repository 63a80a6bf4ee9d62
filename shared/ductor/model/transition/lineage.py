"""What happened between a run and the runs that belong to it."""

from __future__ import annotations

from ductor.model.json import JSON
from ductor.model.payload import NULL, Payload
from ductor.model.transition.base import TransitionBase


class ChildEnded(TransitionBase, frozen=True, tag="child_ended"):
    """A child run has ended, or was never begun: nobody has to close it any more."""

    key: str


class LinkedPlanned(TransitionBase, frozen=True, tag="linked_planned"):
    """The run is about to end, and a compensation or hook run follows. `undoes`: it has inverses."""

    kind: str
    plan: Payload
    undoes: bool = False


class SuccessorPlanned(TransitionBase, frozen=True, tag="successor_planned"):
    """The run is about to end, and `run_id` goes on with `context`."""

    run_id: str
    context: Payload = NULL
    discard: bool = False


class IntentForwarded(TransitionBase, frozen=True, tag="intent_forwarded"):
    """Something came after continue-as-new and was handed to the successor."""

    kind: str
    intent_id: str
    actor: str = ""
    request_id: str = ""
    request_hash: str = ""
    reason: str = ""
    body: JSON = None
    output: Payload = NULL


class DutyDone(TransitionBase, frozen=True, tag="duty_done"):
    """Another run knows what this one owed it."""

    duty: str
