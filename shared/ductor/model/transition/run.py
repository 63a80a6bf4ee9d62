"""What happened to a run as a whole: how it began, stopped and ended, what it waits for and what was asked of it."""

from __future__ import annotations

import msgspec

from ductor.model.enums import EdgeType, RunStatus
from ductor.model.errors import StepError
from ductor.model.payload import NULL, Payload
from ductor.model.transition.base import TransitionBase


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a step of another run, and the types of the edges that it took there."""

    output: Payload
    edges: tuple[EdgeType, ...] = ()


class KeptItems(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a scatter has of another run's: the list `items` that it iterates over, and results of steps in its body.

    `pages[n]` is a map from node id to `Kept`, of items n * `size` and following; without an entry none is kept.
    """

    items: Payload
    size: int
    pages: dict[int, Payload] = {}


class RunStarted(TransitionBase, frozen=True, tag="run_started"):
    """The first tick. `deadline` is when the run times out, 0 = never."""

    deadline: int = 0


class RunForked(TransitionBase, frozen=True, tag="run_forked"):
    """The run goes on where `source` was after its transition `seq`; the results of `kept` are the source's.

    `overrides` are inputs that steps get instead of rendering them, `preserved` results that they have when their turn
    comes, without running; `items` are those of scatters' bodies, by the scatter's node id.
    """

    source: str
    seq: int
    kept: tuple[str, ...] = ()
    overrides: dict[str, Payload] = msgspec.field(default_factory=dict)
    preserved: dict[str, Kept] = msgspec.field(default_factory=dict)
    items: dict[str, KeptItems] = msgspec.field(default_factory=dict)


class RunPaused(TransitionBase, frozen=True, tag="run_paused"):
    """Nothing new starts until resumed."""


class RunResumed(TransitionBase, frozen=True, tag="run_resumed"):
    """Retry backoffs run on from here: pending ones move by the time spent paused."""


class RunRedriven(TransitionBase, frozen=True, tag="run_redriven"):
    """A failed run goes on: nodes that failed unhandled or were cancelled run again with a fresh retry budget."""

    deadline: int = 0


class RunEnding(TransitionBase, frozen=True, tag="run_ending"):
    """The run will end as `status` once its live attempts have closed; nothing new starts.

    `into` is the run that goes on for one that was merged.
    """

    status: RunStatus
    error: StepError | None = None
    reason: str = ""
    into: str = ""


class RunEnded(TransitionBase, frozen=True, tag="run_ended"):
    """Terminal. `duties` are what it owes to other runs from here: see `RunState.duties`."""

    status: RunStatus
    output: Payload = NULL
    error: StepError | None = None
    reason: str = ""
    duties: tuple[str, ...] = ()


class CheckpointReached(TransitionBase, frozen=True, tag="checkpoint_reached"):
    """A named progress marker was reached for the first time."""

    name: str


class WakeArmed(TransitionBase, frozen=True, tag="wake_armed"):
    """The run's one wake-up; 0 = it has fired and none is armed."""

    at: int


class OperatorAudited(TransitionBase, frozen=True, tag="operator_audited"):
    """An operator's intent met the coordinator. `outcome`: `applied`, or `rejected` with code and sentence."""

    intent_id: str
    operation: str
    outcome: str
    actor: str = ""
    request_id: str = ""
    request_hash: str = ""
    reason: str = ""
    target: str = ""
    code: str = ""
    message: str = ""
