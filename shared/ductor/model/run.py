"""The state of a run: the header that one conditional write commits, its scopes and their nodes. Times: epoch ms."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from ductor.model.command import Command
from ductor.model.definition import Retry
from ductor.model.enums import NodeStatus, RunStatus
from ductor.model.errors import StepError
from ductor.model.json import JSON
from ductor.model.lineage import Linked, Successor, read_child_key
from ductor.model.payload import NULL, Payload
from ductor.model.slots import SlotState
from ductor.model.transition import Kept, KeptItems, Transition
from ductor.model.usage import Used

SCHEMA: Final = 1
"""Layout number of the header; an engine reads its own and the one before."""

MAX_HEADER_BYTES: Final = 300_000
"""A header over this fails its run (DynamoDB ends items at 400 KB)."""


class ScatterState(msgspec.Struct, omit_defaults=True, gc=False):
    """How far a scatter is with its items. `items` is the list it iterates over, `window` 0 = without limit.

    Item i lives in page `base` + i // `size`; the first `opened` of its pages exist. Items below `started` have begun,
    `running` of them have not ended. The counts of a scatter that was closed early are those of that moment.
    """

    count: int = 0
    items: Payload = NULL
    base: int = 0
    size: int = 1
    window: int = 0
    opened: int = 0
    started: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0

    @property
    def may_start(self) -> int:
        """How many further items may begin now."""
        left = self.count - self.started
        return min(left, self.window - self.running) if self.window else left

    @property
    def decided(self) -> bool:
        """Whether every item has ended."""
        return self.started == self.count and not self.running


class NodeState(
    msgspec.Struct,
    omit_defaults=True,
    gc=False,
    rename={
        "status": "s",
        "attempt": "a",
        "generation": "g",
        "first_attempt": "f",
        "entered_at": "e",
        "started_at": "b",
        "finished_at": "z",
        "deadline": "d",
        "check_at": "c",
        "check_every": "ce",
        "input": "i",
        "output": "o",
        "error": "x",
        "ended_seq": "q",
        "no_route": "nr",
        "handled": "h",
        "scheduled_at": "t",
        "scatter": "sc",
        "cursor": "cu",
        "connection": "cn",
        "held": "hd",
        "backoff_left": "bl",
        "held_at": "ha",
        "worker": "w",
        "resets": "r",
        "foreign": "fo",
    },
):
    """A node that has been touched; an untouched one is `pending` and has no entry.

    `attempt` is the highest attempt number of the node's whole life and `generation` that of its waits and attempts:
    neither repeats. `first_attempt` is where the present retry budget began. `deadline` is when a parked node moves
    on; `handled` says that an edge took the failure. `check_at` is when somebody must look whether the other side
    still lives, every `check_every`, doubling. `scheduled_at` is when the present attempt was handed out, `connection`
    what a templated connection_ref was rendered to. `scatter` stands at a scatter that has begun, `cursor` is the page
    that a gather collects next. `held`: an operator has paused the node, at `held_at`; what was left of its backoff
    when it came to rest is `backoff_left` (ms), None when it had not begun. `worker` outside has the present attempt;
    empty: nobody yet. `resets` counts how often an operator had it begin anew. `foreign`: the result, and so the
    effect, is another run's.
    """

    status: NodeStatus = NodeStatus.PENDING
    attempt: int = 0
    generation: int = 0
    first_attempt: int = 1
    entered_at: int = 0
    started_at: int = 0
    finished_at: int = 0
    deadline: int = 0
    check_at: int = 0
    check_every: int = 0
    input: Payload = NULL
    output: Payload = NULL
    error: StepError | None = None
    ended_seq: int = 0
    no_route: bool = False
    handled: bool = False
    scheduled_at: int = 0
    connection: str = ""
    scatter: ScatterState | None = None
    cursor: int = 0
    held: bool = False
    backoff_left: int | None = None
    held_at: int = 0
    worker: str = ""
    resets: int = 0
    foreign: bool = False


class JoinState(msgspec.Struct, array_like=True, gc=False):
    """How many incoming edges of a node are resolved, and how many of them were taken."""

    resolved: int = 0
    taken: int = 0


class ScopeState(msgspec.Struct, omit_defaults=True, gc=False):
    """The nodes of one scope. `ready` is a heap of the graph indexes of nodes whose incoming edges are all resolved.

    `attempts` counts nodes with an attempt out (`scheduled`), `parked` those waiting or retrying, `ended` the ended.
    `arrived` are, for nodes that collect what reaches them, the graph indexes of the steps whose edge was taken.
    """

    nodes: dict[str, NodeState] = {}
    joins: dict[int, JoinState] = {}
    ready: list[int] = []
    attempts: int = 0
    parked: int = 0
    ended: int = 0
    arrived: dict[int, list[int]] = {}


class ItemStatus(StrEnum):
    """The states of an item of a scatter."""

    PENDING = "p"
    RUNNING = "r"
    SUCCEEDED = "s"
    FAILED = "f"
    CANCELLED = "c"


class ItemState(ScopeState, omit_defaults=True, gc=False):
    """The scope of one item. `output` is its result, `error` why it failed.

    An item that is not running starts nothing any more; attempts that it still has out are drained.
    """

    status: ItemStatus = ItemStatus.PENDING
    output: Payload = NULL
    error: StepError | None = None


class PageState(msgspec.Struct, omit_defaults=True):
    """Neighbouring item scopes of one scatter, stored together: row `SCOPE#<number>`.

    `scatter` is the scatter's node id, `first` the index of the first item, `inputs` the list of the items' values.
    `ready` is a heap of the places of items with ready nodes. `seq` is the last transition that changed the page,
    `paused_ms` how much of the run's paused time its retry backoffs have taken account of.
    """

    number: int
    scatter: str
    first: int
    items: list[ItemState]
    inputs: Payload = NULL
    ready: list[int] = []
    seq: int = 0
    paused_ms: int = 0


class TreeState(msgspec.Struct, omit_defaults=True):
    """What the header knows of the pages, so that most ticks open few of them.

    `due` maps pages to the earliest deadline and the earliest check in them (0 = none); it may be too early, never too
    late. `ready` is a heap of pages with ready nodes. `opening`, `closing` and `collecting` are work in progress:
    scatters that may start items, scatters whose scopes are being closed (with the page that is next), gathers that
    collect. `items` counts items ever begun.
    """

    pages: int = 0
    items: int = 0
    attempts: int = 0
    parked: int = 0
    due: dict[int, tuple[int, int]] = {}
    ready: list[int] = []
    opening: list[str] = []
    closing: dict[str, int] = {}
    collecting: list[str] = []
    paused_ms: int = 0


class Tuning(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an operator changed of a node's step; None = as it is defined."""

    retry: Retry | None = None
    timeout_ms: int | None = None


class Fork(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a fork has of its source: see `RunForked`."""

    kept: tuple[str, ...] = ()
    overrides: dict[str, Payload] = {}
    preserved: dict[str, Kept] = {}
    items: dict[str, KeptItems] = {}

    def foreign(self, node: str) -> bool:
        """Whether the node's result, and so its effect, is the source's. In items it is marked at the node."""
        return node in self.kept or node in self.preserved

    def given(self, node: str) -> Payload | None:
        """The input that the node has instead of rendering it: its own, else the one for all items."""
        return self.overrides.get(node) or self.overrides.get(node.partition("@")[0])


class LastTick(msgspec.Struct, omit_defaults=True):
    """What the last commit did, kept so that a crash right after it loses neither commands nor history.

    `used` is the sum of all commits up to it.

    `commands[i]` has the id `run_id:version:i`. `transitions` have the numbers from `seq` + 1 on. `nudge` is the number
    of the commit whose nudge is on its way, 0 = none.
    """

    at: int = 0
    seq: int = 0
    applied: tuple[str, ...] = ()
    transitions: tuple[Transition, ...] = ()
    commands: tuple[Command, ...] = ()
    used: Used = msgspec.field(default_factory=Used)
    nudge: int = 0


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a run was started with; never changes. `labels` are (key, id) pairs, `input` is TRIGGER.payload.

    A child run belongs to one attempt of its parent's node; `detached`: nobody waits for its end. `seed_context` is
    the run context of a successor. `idempotency` is a digest of the key that it was asked for with. `depth` is the
    causation depth: see `model.causation`.
    """

    run_id: str
    tenant: str
    definition_id: str
    family_slug: str
    definition_version: int
    created_at: int
    journey_id: str = ""
    environment: str = ""
    kind: str = "workflow"
    root_run_id: str = ""
    parent_run_id: str = ""
    parent_node: str = ""
    source_run_id: str = ""
    nesting_depth: int = 0
    subject_type: str = ""
    subject_id: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    input: Payload = NULL
    variables: Payload = NULL
    event: JSON = None
    scheduled_at: int = 0
    external_deployment_id: str = ""
    created_by: str = ""
    idempotency: str = ""
    parent_attempt: int = 0
    parent_generation: int = 0
    detached: bool = False
    seed_context: Payload = NULL
    depth: int = 0


class Signal(msgspec.Struct, frozen=True, omit_defaults=True):
    """A signal that no wait has taken yet. `at` is when it was sent, epoch ms."""

    id: str
    name: str
    payload: Payload = NULL
    at: int = 0


class RunState(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The run header. `version` is the optimistic lock (`db_record_version`); `seq` is `transition_seq`.

    `paused_at` is set while paused. `ending` names the terminal state that a draining run is on its way to. `wake_at`
    is the armed wake-up, 0 when none. `updated_at` never runs backwards. `tree` appears with the first scatter.
    `loaded` holds the pages that were read or changed; they are stored in rows of their own, never in the header.

    `children` are the child runs that have not ended as far as this run knows, with their parent_close_policy.
    `duties` are what other runs must be told or must be started after the end; until they and `children` that follow
    their parent are gone, a run that has ended keeps a wake-up. `linked` are the runs planned at the end, by kind.
    `late` are the outputs of attempts that succeeded after they had ended otherwise, by node. `slot` is where the run
    stands in its definition's concurrency, None before it has asked. `merged_into` is the run that goes on for a
    merged one.
    """

    origin: Origin
    schema: int = SCHEMA
    version: int = 1
    seq: int = 0
    status: RunStatus = RunStatus.PENDING
    paused_at: int = 0
    ending: RunStatus | None = None
    reason: str = ""
    error: StepError | None = None
    output: Payload = NULL
    context: Payload = NULL
    attributes: dict[str, JSON] = {}
    checkpoints: dict[str, int] = {}
    signals: tuple[Signal, ...] = ()
    consumed: dict[str, int] = {}
    root: ScopeState = msgspec.field(default_factory=ScopeState)
    tree: TreeState | None = None
    loaded: dict[int, PageState] = {}
    started_at: int = 0
    updated_at: int = 0
    finished_at: int = 0
    deadline: int = 0
    wake_at: int = 0
    children: dict[str, str] = {}
    linked: dict[str, Linked] = {}
    duties: tuple[str, ...] = ()
    late: dict[str, Payload] = {}
    successor: Successor | None = None
    tuned: dict[str, Tuning] = {}
    fork: Fork | None = None
    slot: SlotState | None = None
    merged_into: str = ""
    last: LastTick = msgspec.field(default_factory=LastTick)

    @property
    def run_id(self) -> str:
        return self.origin.run_id


def _children_out(state: RunState) -> int:
    """How many of the run's own attempts are child runs: those are waited for, not worked on."""
    keys = (read_child_key(key) for key in state.children)
    return sum(
        (entry := state.root.nodes.get(node)) is not None
        and entry.status is NodeStatus.SCHEDULED
        and entry.attempt == attempt
        for node, attempt, _ in keys
    )


def effective_status(state: RunState) -> RunStatus:
    """The status to show: a running run whose live nodes are all parked is `waiting`."""
    if state.status is RunStatus.RUNNING and state.ending is None:
        scope, tree = state.root, state.tree
        away = _children_out(state) if state.children else 0
        if scope.attempts > away or not (scope.parked or away) or scope.ready:
            return state.status
        if tree is None or not (tree.attempts or tree.ready or tree.opening or tree.collecting):
            return RunStatus.WAITING
    return state.status


class HistoryRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """The transitions of one tick: row `T#<seq of the first>`. `version` is the commit that applied them."""

    version: int
    at: int
    seq: int
    transitions: tuple[Transition, ...]
    applied: tuple[str, ...] = ()
