"""What happened to a node and its attempts."""

from __future__ import annotations

import msgspec

from ductor.model.definition import Retry
from ductor.model.enums import NodeStatus
from ductor.model.errors import StepError
from ductor.model.json import JSON
from ductor.model.payload import NULL, Payload
from ductor.model.transition.base import TransitionBase


class NodeScheduled(TransitionBase, frozen=True, tag="node_scheduled"):
    """An attempt was handed out. `input` is what it was rendered to; it is never rendered again.

    Neither is `connection`, where the step's connection_ref is a template; empty: it stands in the definition. A child
    run carries the attempt out when `child` has its parent_close_policy; at `deadline` (0 = none) nobody waits longer.
    """

    node: str
    attempt: int
    generation: int
    input: Payload = NULL
    check_at: int = 0
    check_every: int = 0
    connection: str = ""
    deadline: int = 0
    child: str = ""


class NodeParked(TransitionBase, frozen=True, tag="node_parked"):
    """The node waits until `deadline` (0 = without limit) or for what its type waits for.

    `input` is what it rendered when it began to wait. A wait for somebody else is looked after at `check_at`.
    """

    node: str
    generation: int
    deadline: int = 0
    input: Payload = NULL
    check_at: int = 0
    check_every: int = 0


class NodeRetrying(TransitionBase, frozen=True, tag="node_retrying"):
    """An attempt failed; the next one starts at `retry_at`."""

    node: str
    attempt: int
    error: StepError
    retry_at: int


class NodeCompleted(TransitionBase, frozen=True, tag="node_completed"):
    """The node succeeded, or failed under `on_error: continue` (then `error` is set).

    `taken` are indexes among its outgoing edges.
    """

    node: str
    output: Payload = NULL
    taken: tuple[int, ...] = ()
    error: StepError | None = None
    no_route: bool = False
    context: Payload | None = None
    attributes: dict[str, JSON] = msgspec.field(default_factory=dict)


class NodeFailed(TransitionBase, frozen=True, tag="node_failed"):
    """The node failed for good. `status` is `failed` or `timed_out`; with `handled` false the run fails too."""

    node: str
    status: NodeStatus
    error: StepError
    taken: tuple[int, ...] = ()
    handled: bool = False
    output: Payload = NULL


class NodeSkipped(TransitionBase, frozen=True, tag="node_skipped"):
    """The node's condition was false, or no arm into it was taken: all its outgoing edges resolve as not taken.

    Or it gave up waiting by its own rule; only then are there edges in `taken`.
    """

    node: str
    taken: tuple[int, ...] = ()


class NodeCancelled(TransitionBase, frozen=True, tag="node_cancelled"):
    """The node was stopped before it ended by itself. Resolves no edge. `live`: its attempt may still be running.

    `final`: it lost a race or was not needed any more, so that a redrive does not run it either.
    """

    node: str
    live: bool = False
    final: bool = False


class NodeChecked(TransitionBase, frozen=True, tag="node_checked"):
    """Somebody is asked to look after the node; the next look is at `check_at`."""

    node: str
    check_at: int
    check_every: int


class NodeWatched(TransitionBase, frozen=True, tag="node_watched"):
    """Who outside has the attempt (nobody yet when `worker` is empty), and when it is overdue; 0 = never.

    `actor` is the API key that took it.
    """

    node: str
    deadline: int = 0
    worker: str = ""
    actor: str = ""


class NodeOverdue(TransitionBase, frozen=True, tag="node_overdue"):
    """The deadline of an attempt outside has passed: its row is looked at, which says whether it has ended."""

    node: str


class AttemptAbandoned(TransitionBase, frozen=True, tag="attempt_abandoned"):
    """The node goes on without the attempt that is out: whoever has it is asked to stop."""

    node: str
    attempt: int
    generation: int


class LateEffect(TransitionBase, frozen=True, tag="late_effect"):
    """An attempt that had ended otherwise succeeded after all. It changes nothing but what is to be undone."""

    node: str
    attempt: int
    output: Payload = NULL


class NodeHeld(TransitionBase, frozen=True, tag="node_held"):
    """An operator holds the node: it starts nothing until it is released. An attempt that is out goes on."""

    node: str


class NodeRested(TransitionBase, frozen=True, tag="node_rested"):
    """A held node came to where it would have started something; it rests there."""

    node: str


class NodeAdopted(TransitionBase, frozen=True, tag="node_adopted"):
    """A node in an item gets the result that its run's source had: the effect is not this run's."""

    node: str


class NodeReleased(TransitionBase, frozen=True, tag="node_released"):
    """The node is held no longer. `retry_at` is set when it rested between two attempts."""

    node: str
    retry_at: int = 0


class NodeReset(TransitionBase, frozen=True, tag="node_reset"):
    """The node begins anew with a fresh retry budget. `live`: the attempt of before may still be running."""

    node: str
    attempt: int
    generation: int
    live: bool = False


class NodeTuned(TransitionBase, frozen=True, tag="node_tuned"):
    """From the node's next attempt on another retry policy or timeout counts. `deadline`: of what it does now."""

    node: str
    retry: Retry | None = None
    timeout_ms: int | None = None
    deadline: int = 0
