"""What a tick knows while it runs: graph, state, time, and the values that expressions may read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from ductor.engine.evolve import evolve
from ductor.engine.evolve_items import DRAIN_CHECK_MS
from ductor.engine.graph import Graph
from ductor.engine.scopes import Place, find, page_of
from ductor.expressions import Budget, Program, Reads, Template
from ductor.model.definition import Retry
from ductor.model.errors import StepError
from ductor.model.json import JSON, encode
from ductor.model.payload import INLINE_BYTES, BlobRef, Inline, Payload, RowRef, Stored, stage
from ductor.model.run import ItemStatus, NodeState, RunState
from ductor.model.transition import (
    ItemEnded,
    ItemsStarted,
    NodeCancelled,
    NodeCompleted,
    NodeFailed,
    NodeScheduled,
    NodeSkipped,
    PageClosed,
    Transition,
)

Load = Callable[[Payload], JSON]
"""Reads a payload of this run. Payloads are immutable, so the same argument always gives the same value."""

CONTEXT_INLINE_BYTES: Final = 4_096
INLINE_PER_TICK_BYTES: Final = 40_000
"""Bytes of values in a tick's transitions after which it leaves what else is ready to the next one: 500 steps with
values and references of the largest size then fit into a header, in whatever order they come."""

WORK_PER_TICK_NS: Final = 400_000_000
"""Estimated expression work after which a tick leaves what else is ready to the next one."""


def rfc3339(at: int) -> str:
    """Epoch milliseconds as RFC 3339 in UTC, with milliseconds."""
    moment = datetime.fromtimestamp(at / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at % 1000:03d}Z"


class TickContext:
    """One tick in progress. Owns the state; collects transitions and the payloads to store before the commit."""

    def __init__(self, graph: Graph, state: RunState, now: int, load: Load) -> None:
        self.graph = graph
        self.state = state
        self.now = max(now, state.updated_at)
        self.transitions: list[Transition] = []
        self.stores: dict[str, Stored] = {}
        self.work_left: float = WORK_PER_TICK_NS
        self.inline_left = INLINE_PER_TICK_BYTES
        self.starts = 0
        self.looks = 0
        self.soonest = 0
        self.finished: list[tuple[str, int]] = []
        self.pages: set[int] = set()
        self.looked: set[int] = set()
        self._load = load
        self._fresh: dict[str, JSON] = {}
        self._roots: dict[str, JSON] = {}

    def apply(self, transition: Transition) -> None:
        """Record the transition and let the state follow."""
        evolve(self.graph, self.state, transition, self.now)
        self.transitions.append(transition)
        self.starts += isinstance(transition, NodeScheduled)
        if self.state.tree is not None:
            self._watch(transition)
        due = 0 if type(transition) in _NEVER_DUE else _due_of(transition, self.now)
        if due and (not self.soonest or due < self.soonest):
            self.soonest = due

    def place(self, node_id: str) -> Place | None:
        """Where the node lives; None for an id that has no place (yet)."""
        place = find(self.graph, self.state, node_id)
        if place is not None and place.page is not None:
            self.pages.add(place.page.number)
        return place

    def _watch(self, transition: Transition) -> None:
        """Notice items all of whose steps have ended: somebody has to end them."""
        if isinstance(transition, ItemsStarted):
            scatter = find(self.graph, self.state, transition.node)
            for index in range(transition.first, transition.until):
                self._watch_item(scatter, index)
        elif (
            isinstance(transition, NodeCompleted | NodeFailed | NodeSkipped | NodeCancelled) and "@" in transition.node
        ):
            place = find(self.graph, self.state, transition.node)
            if place is not None:
                self._watch_item(place.above, place.index)

    def _watch_item(self, scatter: Place | None, index: int) -> None:
        entry = scatter.entry if scatter else None
        page = page_of(self.state, entry.scatter, index) if entry and entry.scatter else None
        if scatter is None or page is None:
            return
        self.pages.add(page.number)
        item = page.items[index - page.first]
        if item.status is ItemStatus.RUNNING and item.ended == len(self.graph.bodies[scatter.node.index]):
            self.finished.append((scatter.id, index))

    def keep(self, value: JSON, inline_bytes: int = INLINE_BYTES, data: bytes | None = None) -> Payload:
        """A payload for `value` (`data`: its encoding, if known); what does not fit inline is stored before the commit.

        What does stands in the header twice, in the state and in the tick's transitions, so a tick has a budget of it.
        """
        data = encode(value) if data is None else data
        payload, stored = stage(self.state.run_id, value, inline_bytes, data)
        if stored is not None:
            key = _key(stored.ref)
            self.stores[key] = stored
            self._fresh[key] = value
        else:
            self.inline_left -= len(data)
        return payload

    def value(self, payload: Payload) -> JSON:
        """The value behind a payload."""
        if isinstance(payload, Inline):
            return payload.value
        key = _key(payload)
        if key in self._fresh:
            return self._fresh[key]
        value = self._fresh[key] = self._load(payload)
        return value

    def bindings(
        self, reads: Reads, own: Mapping[str, JSON] | None = None, at: Place | None = None, **extra: JSON
    ) -> dict[str, JSON]:
        """Values for the roots that an expression reads. `own` overlays STEPS with a result not applied yet.

        `at` is whose scope it belongs to: inside of an item, ITEM and INDEX are those of the innermost scatter, and
        STEPS shows the item's own steps, then those of the scopes around it.
        """
        bound: dict[str, JSON] = dict(extra)
        for root in reads.roots:
            if root == "STEPS":
                bound[root] = self._steps(reads, own or {}, at)
            elif root in bound:
                continue
            elif root in _ROOTS:
                bound[root] = self._root(root)
            elif at is not None and at.page is not None and root in ("ITEM", "INDEX"):
                bound[root] = at.index if root == "INDEX" else self.item(at)
        return bound

    def item(self, at: Place) -> JSON:
        """The value of the item in whose scope a node lives."""
        assert at.page is not None  # asked only of places in an item
        values: list[JSON] = self.value(at.page.inputs)
        return values[at.index - at.page.first]

    def _steps(self, reads: Reads, own: Mapping[str, JSON], at: Place | None) -> dict[str, JSON]:
        refs = self.graph.by_ref if reads.all_steps else reads.steps
        return {ref: own[ref] if ref in own else self.step_view(ref, at) for ref in refs if ref in self.graph.by_ref}

    def step_view(self, ref: str, at: Place | None = None) -> dict[str, JSON]:
        """What STEPS["ref"] shows. `output` is absent until there is one, so that reading it too early is an error.

        A scatter shows to the steps in its body the `item` and `index` of theirs.
        """
        if at is None or at.page is None:
            return self._view(self.state.root.nodes.get(ref))
        region, place = self.graph.by_ref[ref].region, at
        inside: Place | None = None
        while place.node.region != region and place.above is not None:
            place, inside = place.above, place
        if place.node.region != region:
            return self._view(None)
        view = self._view(place.scope.nodes.get(ref))
        if inside is not None and place.node.ref == ref:
            view["item"], view["index"] = self.item(inside), inside.index
        return view

    def _view(self, node: NodeState | None) -> dict[str, JSON]:
        if node is None:
            return {"status": "pending", "error": None, "attempt": 0}
        view: dict[str, JSON] = {
            "status": node.status.value,
            "error": error_view(node.error),
            "attempt": node.attempt,
        }
        if _has_output(node):
            view["output"] = self.value(node.output)
        return view

    def _root(self, name: str) -> JSON:
        if name not in self._roots or name == "CONTEXT":
            self._roots[name] = _ROOTS[name](self)
        return self._roots[name]


def _key(ref: RowRef | BlobRef) -> str:
    return ref.sk if isinstance(ref, RowRef) else ref.key


def _has_output(node: NodeState) -> bool:
    return node.status.ended and node.output != _NO_OUTPUT


_NO_OUTPUT = Inline(None)


def error_view(error: StepError | None) -> JSON:
    """An error as expressions and API answers see it."""
    if error is None:
        return None
    return {
        "code": error.code,
        "message": error.message,
        "retryable": error.retryable,
        "details": error.details,
    }


def _trigger(ctx: TickContext) -> JSON:
    origin = ctx.state.origin
    return {
        "payload": ctx.value(origin.input),
        "subject_type": origin.subject_type,
        "subject_id": origin.subject_id,
        "event": origin.event,
        "scheduled_at": rfc3339(origin.scheduled_at) if origin.scheduled_at else None,
    }


def _run(ctx: TickContext) -> JSON:
    origin = ctx.state.origin
    return {
        "id": origin.run_id,
        "root_id": origin.root_run_id or origin.run_id,
        "started_at": rfc3339(ctx.state.started_at),
        "definition_version": origin.definition_version,
        "now": rfc3339(ctx.now),
    }


_ROOTS: dict[str, Callable[[TickContext], JSON]] = {
    "TRIGGER": _trigger,
    "VARS": lambda ctx: ctx.value(ctx.state.origin.variables) or {},
    "CONTEXT": lambda ctx: ctx.value(ctx.state.context) or {},
    "RUN": _run,
}


_NEVER_DUE: Final = frozenset({NodeCompleted, NodeSkipped})


def _due_of(transition: Transition, now: int) -> int:
    """When this transition wants the run to wake, 0 = it does not."""
    if isinstance(transition, ItemEnded | PageClosed):
        drains = isinstance(transition, PageClosed) or transition.error is not None
        return now + DRAIN_CHECK_MS if drains else 0
    deadline = getattr(transition, "deadline", 0) or getattr(transition, "retry_at", 0)
    check = getattr(transition, "check_at", 0)
    return min(deadline, check) if deadline and check else deadline or check


class NodeContext:
    """A tick's view of one node, as behaviours get it."""

    def __init__(self, tick: TickContext, place: Place) -> None:
        self.tick = tick
        self.place = place
        self.node = place.node
        self.entry = place.entry or NodeState()
        self.budget = Budget()

    def evaluate(self, program: Program, own: Mapping[str, JSON] | None = None, **extra: JSON) -> JSON:
        """The value of an expression of this node; all of them share the node's budget. Raises ExpressionError."""
        return self._metered(lambda: program.evaluate(self.bindings(program.reads, own, **extra), self.budget))

    def holds(self, program: Program, own: Mapping[str, JSON] | None = None, **extra: JSON) -> bool:
        """Whether a condition is true. Raises ExpressionError for one that errors or is not a boolean."""
        bindings = self.bindings(program.reads, own, **extra)
        return bool(self._metered(lambda: program.evaluate_bool(bindings, self.budget)))

    def render(self, template: Template) -> JSON:
        """The value of a template of this node. Raises ExpressionError."""
        return self._metered(lambda: template.render(self.bindings(template.reads), self.budget))

    def bindings(self, reads: Reads, own: Mapping[str, JSON] | None = None, **extra: JSON) -> dict[str, JSON]:
        """Values for the roots that an expression of this node reads."""
        return self.tick.bindings(reads, own, self.place, **extra)

    def _metered(self, evaluation: Callable[[], JSON]) -> JSON:
        before = self.budget.work_left
        try:
            return evaluation()
        finally:
            self.tick.work_left -= before - self.budget.work_left

    @property
    def id(self) -> str:
        """The node's id: the step's ref, and in an item `ref@path`."""
        return self.place.id

    @property
    def retry(self) -> Retry:
        """The retry policy of the node: its step's, unless an operator has changed it."""
        tuned = self.tick.state.tuned.get(self.id)
        return self.node.step.retry if tuned is None or tuned.retry is None else tuned.retry

    @property
    def timeout_ms(self) -> int:
        """How long the node's next attempt may take, 0 = without limit."""
        return self.limit_ms(self.node.step.timeout_ms)

    def limit_ms(self, own: int) -> int:
        """How long the node may take or wait, `own` as it is defined, unless an operator has changed it."""
        tuned = self.tick.state.tuned.get(self.id)
        return own if tuned is None or tuned.timeout_ms is None else tuned.timeout_ms

    @property
    def now(self) -> int:
        return self.tick.now

    @property
    def args(self) -> Any:
        return self.node.args
