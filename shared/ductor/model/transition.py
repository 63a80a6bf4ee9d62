"""What happened to a run, in past tense: the history. Folding it from the first header gives the stored state."""

from __future__ import annotations

import msgspec

from ductor.model.definition import Retry
from ductor.model.enums import EdgeType, NodeStatus, RunStatus
from ductor.model.errors import StepError
from ductor.model.json import JSON
from ductor.model.payload import NULL, Payload


class _Transition(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="t", gc=False):
    """Base of all transitions."""


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


class RunStarted(_Transition, frozen=True, tag="run_started"):
    """The first tick. `deadline` is when the run times out, 0 = never."""

    deadline: int = 0


class RunForked(_Transition, frozen=True, tag="run_forked"):
    """The run goes on where `source` was after its transition `seq`; the results of `kept` are the source's.

    `overrides` are inputs that steps get instead of rendering them, `preserved` results that they have when their turn
    comes, without running; `items` are those of scatters' bodies, by the scatter's node id.
    """

    source: str
    seq: int
    kept: tuple[str, ...] = ()
    overrides: dict[str, Payload] = {}
    preserved: dict[str, Kept] = {}
    items: dict[str, KeptItems] = {}


class RunPaused(_Transition, frozen=True, tag="run_paused"):
    """Nothing new starts until resumed."""


class RunResumed(_Transition, frozen=True, tag="run_resumed"):
    """Retry backoffs run on from here: pending ones move by the time spent paused."""


class RunRedriven(_Transition, frozen=True, tag="run_redriven"):
    """A failed run goes on: nodes that failed unhandled or were cancelled run again with a fresh retry budget."""

    deadline: int = 0


class RunEnding(_Transition, frozen=True, tag="run_ending"):
    """The run will end as `status` once its live attempts have closed; nothing new starts.

    `into` is the run that goes on for one that was merged.
    """

    status: RunStatus
    error: StepError | None = None
    reason: str = ""
    into: str = ""


class RunEnded(_Transition, frozen=True, tag="run_ended"):
    """Terminal. `duties` are what it owes to other runs from here: see `RunState.duties`."""

    status: RunStatus
    output: Payload = NULL
    error: StepError | None = None
    reason: str = ""
    duties: tuple[str, ...] = ()


class NodeScheduled(_Transition, frozen=True, tag="node_scheduled"):
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


class NodeParked(_Transition, frozen=True, tag="node_parked"):
    """The node waits until `deadline` (0 = without limit) or for what its type waits for.

    `input` is what it rendered when it began to wait. A wait for somebody else is looked after at `check_at`.
    """

    node: str
    generation: int
    deadline: int = 0
    input: Payload = NULL
    check_at: int = 0
    check_every: int = 0


class NodeRetrying(_Transition, frozen=True, tag="node_retrying"):
    """An attempt failed; the next one starts at `retry_at`."""

    node: str
    attempt: int
    error: StepError
    retry_at: int


class NodeCompleted(_Transition, frozen=True, tag="node_completed"):
    """The node succeeded, or failed under `on_error: continue` (then `error` is set).

    `taken` are indexes among its outgoing edges.
    """

    node: str
    output: Payload = NULL
    taken: tuple[int, ...] = ()
    error: StepError | None = None
    no_route: bool = False
    context: Payload | None = None
    attributes: dict[str, JSON] = {}


class NodeFailed(_Transition, frozen=True, tag="node_failed"):
    """The node failed for good. `status` is `failed` or `timed_out`; with `handled` false the run fails too."""

    node: str
    status: NodeStatus
    error: StepError
    taken: tuple[int, ...] = ()
    handled: bool = False
    output: Payload = NULL


class NodeSkipped(_Transition, frozen=True, tag="node_skipped"):
    """The node's condition was false, or no arm into it was taken: all its outgoing edges resolve as not taken.

    Or it gave up waiting by its own rule; only then are there edges in `taken`.
    """

    node: str
    taken: tuple[int, ...] = ()


class NodeCancelled(_Transition, frozen=True, tag="node_cancelled"):
    """The node was stopped before it ended by itself. Resolves no edge. `live`: its attempt may still be running.

    `final`: it lost a race or was not needed any more, so that a redrive does not run it either.
    """

    node: str
    live: bool = False
    final: bool = False


class NodeChecked(_Transition, frozen=True, tag="node_checked"):
    """Somebody is asked to look after the node; the next look is at `check_at`."""

    node: str
    check_at: int
    check_every: int


class NodeWatched(_Transition, frozen=True, tag="node_watched"):
    """Who outside has the attempt (nobody yet when `worker` is empty), and when it is overdue; 0 = never.

    `actor` is the API key that took it.
    """

    node: str
    deadline: int = 0
    worker: str = ""
    actor: str = ""


class NodeOverdue(_Transition, frozen=True, tag="node_overdue"):
    """The deadline of an attempt outside has passed: its row is looked at, which says whether it has ended."""

    node: str


class AttemptAbandoned(_Transition, frozen=True, tag="attempt_abandoned"):
    """The node goes on without the attempt that is out: whoever has it is asked to stop."""

    node: str
    attempt: int
    generation: int


class NodeHeld(_Transition, frozen=True, tag="node_held"):
    """An operator holds the node: it starts nothing until it is released. An attempt that is out goes on."""

    node: str


class NodeRested(_Transition, frozen=True, tag="node_rested"):
    """A held node came to where it would have started something; it rests there."""

    node: str


class NodeAdopted(_Transition, frozen=True, tag="node_adopted"):
    """A node in an item gets the result that its run's source had: the effect is not this run's."""

    node: str


class NodeReleased(_Transition, frozen=True, tag="node_released"):
    """The node is held no longer. `retry_at` is set when it rested between two attempts."""

    node: str
    retry_at: int = 0


class NodeReset(_Transition, frozen=True, tag="node_reset"):
    """The node begins anew with a fresh retry budget. `live`: the attempt of before may still be running."""

    node: str
    attempt: int
    generation: int
    live: bool = False


class NodeTuned(_Transition, frozen=True, tag="node_tuned"):
    """From the node's next attempt on another retry policy or timeout counts. `deadline`: of what it does now."""

    node: str
    retry: Retry | None = None
    timeout_ms: int | None = None
    deadline: int = 0


class ScatterOpened(_Transition, frozen=True, tag="scatter_opened"):
    """The scatter has its items and waits for their ends. `items` is the list, `base` the number of its first page.

    Pages hold `size` items each; at most `window` items run at the same time, 0 = all.
    """

    node: str
    generation: int
    count: int
    items: Payload
    base: int
    size: int
    window: int = 0


class ScatterReopened(_Transition, frozen=True, tag="scatter_reopened"):
    """After a redrive the scatter goes through its items again; those that had succeeded stay as they are."""

    node: str
    generation: int


class PageOpened(_Transition, frozen=True, tag="page_opened"):
    """Scopes for the scatter's next items were made: page `page`, with `count` items from item `first` on."""

    node: str
    page: int
    first: int
    count: int
    inputs: Payload


class ItemsStarted(_Transition, frozen=True, tag="items_started"):
    """Items of the scatter from `first` up to but not including `until` begin. `taken`: edges into the body."""

    node: str
    first: int
    until: int
    taken: tuple[int, ...]


class ItemEnded(_Transition, frozen=True, tag="item_ended"):
    """An item of the scatter has its result, or failed. What still runs in a failed one is drained."""

    node: str
    index: int
    output: Payload = NULL
    error: StepError | None = None


class PageClosed(_Transition, frozen=True, tag="page_closed"):
    """The scatter had ended before its items: those of this page are cancelled, their attempts asked to stop."""

    node: str
    page: int


class PageLooked(_Transition, frozen=True, tag="page_looked"):
    """What was due in a page has been dealt with; the header learns when the page is due next."""

    page: int


class GatherCollected(_Transition, frozen=True, tag="gather_collected"):
    """The gather has read the pages before page `cursor`; `output` is what it has so far."""

    node: str
    cursor: int
    output: Payload


class EventConsumed(_Transition, frozen=True, tag="event_consumed"):
    """An event has ended a pause of this run, or counts in a set: within a day it ends no other that begins later."""

    mark: str


class SignalKept(_Transition, frozen=True, tag="signal_kept"):
    """A signal has arrived, or a wait that had taken it ended otherwise: the next wait for its name may take it."""

    id: str
    name: str
    payload: Payload = NULL
    at: int = 0


class SignalTaken(_Transition, frozen=True, tag="signal_taken"):
    """A wait has taken the signal."""

    id: str


class CheckpointReached(_Transition, frozen=True, tag="checkpoint_reached"):
    """A named progress marker was reached for the first time."""

    name: str


class SlotAsked(_Transition, frozen=True, tag="slot_asked"):
    """The run waits for a slot of its definition's concurrency. `lease` is new with each demand; see `SlotState`."""

    key: str
    lease: int
    place: int
    check_at: int
    check_every: int


class SlotGranted(_Transition, frozen=True, tag="slot_granted"):
    """The run may go on. `deadline` is when it times out, 0 = it has not started."""

    lease: int
    deadline: int = 0


class SlotLeft(_Transition, frozen=True, tag="slot_left"):
    """The run waits for its slot no more."""

    lease: int


class SlotChecked(_Transition, frozen=True, tag="slot_checked"):
    """Somebody is asked to look whether the run has been given its slot; the next look is at `check_at`."""

    check_at: int
    check_every: int


class WakeArmed(_Transition, frozen=True, tag="wake_armed"):
    """The run's one wake-up; 0 = it has fired and none is armed."""

    at: int


class OperatorAudited(_Transition, frozen=True, tag="operator_audited"):
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


class ChildEnded(_Transition, frozen=True, tag="child_ended"):
    """A child run has ended, or was never begun: nobody has to close it any more."""

    key: str


class LinkedPlanned(_Transition, frozen=True, tag="linked_planned"):
    """The run is about to end, and a compensation or hook run follows. `undoes`: it has inverses."""

    kind: str
    plan: Payload
    undoes: bool = False


class SuccessorPlanned(_Transition, frozen=True, tag="successor_planned"):
    """The run is about to end, and `run_id` goes on with `context`."""

    run_id: str
    context: Payload = NULL
    discard: bool = False


class IntentForwarded(_Transition, frozen=True, tag="intent_forwarded"):
    """Something came after continue-as-new and was handed to the successor."""

    kind: str
    intent_id: str
    actor: str = ""
    request_id: str = ""
    request_hash: str = ""
    reason: str = ""
    body: JSON = None
    output: Payload = NULL


class LateEffect(_Transition, frozen=True, tag="late_effect"):
    """An attempt that had ended otherwise succeeded after all. It changes nothing but what is to be undone."""

    node: str
    attempt: int
    output: Payload = NULL


class DutyDone(_Transition, frozen=True, tag="duty_done"):
    """Another run knows what this one owed it."""

    duty: str


Transition = (
    RunStarted
    | RunForked
    | RunPaused
    | RunResumed
    | RunRedriven
    | RunEnding
    | RunEnded
    | NodeScheduled
    | NodeParked
    | NodeRetrying
    | NodeCompleted
    | NodeFailed
    | NodeSkipped
    | NodeCancelled
    | NodeChecked
    | NodeWatched
    | NodeOverdue
    | AttemptAbandoned
    | NodeHeld
    | NodeRested
    | NodeAdopted
    | NodeReleased
    | NodeReset
    | NodeTuned
    | ScatterOpened
    | ScatterReopened
    | PageOpened
    | ItemsStarted
    | ItemEnded
    | PageClosed
    | PageLooked
    | GatherCollected
    | EventConsumed
    | SignalKept
    | SignalTaken
    | CheckpointReached
    | SlotAsked
    | SlotGranted
    | SlotLeft
    | SlotChecked
    | WakeArmed
    | OperatorAudited
    | ChildEnded
    | LinkedPlanned
    | SuccessorPlanned
    | IntentForwarded
    | DutyDone
    | LateEffect
)
