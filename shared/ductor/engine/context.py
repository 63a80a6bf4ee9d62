"""What a tick knows while it runs: graph, state, time, and the values that expressions may read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from ductor.engine.evolve import evolve
from ductor.engine.graph import Graph, GraphNode
from ductor.expressions import Budget, Program, Reads, Template
from ductor.model.errors import StepError
from ductor.model.json import JSON
from ductor.model.payload import BlobRef, Inline, Payload, RowRef, Stored, stage
from ductor.model.run import NodeState, RunState
from ductor.model.transition import NodeScheduled, Transition

Load = Callable[[Payload], JSON]
"""Reads a payload of this run. Payloads are immutable, so the same argument always gives the same value."""

CONTEXT_INLINE_BYTES: Final = 4_096
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
        self.starts = 0
        self.soonest = 0
        self._load = load
        self._fresh: dict[str, JSON] = {}
        self._roots: dict[str, JSON] = {}

    def apply(self, transition: Transition) -> None:
        """Record the transition and let the state follow."""
        evolve(self.graph, self.state, transition, self.now)
        self.transitions.append(transition)
        self.starts += isinstance(transition, NodeScheduled)
        due = _due_of(transition)
        if due and (not self.soonest or due < self.soonest):
            self.soonest = due

    def keep(self, value: JSON, inline_bytes: int | None = None) -> Payload:
        """A payload for `value`; what does not fit inline is stored before the commit."""
        if inline_bytes is None:
            payload, stored = stage(self.state.run_id, value)
        else:
            payload, stored = stage(self.state.run_id, value, inline_bytes)
        if stored is not None:
            key = _key(stored.ref)
            self.stores[key] = stored
            self._fresh[key] = value
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

    def bindings(self, reads: Reads, own: Mapping[str, JSON] | None = None, **extra: JSON) -> dict[str, JSON]:
        """Values for the roots that an expression reads. `own` overlays STEPS with a result not applied yet."""
        bound: dict[str, JSON] = dict(extra)
        for root in reads.roots:
            if root == "STEPS":
                bound[root] = self._steps(reads, own or {})
            elif root in _ROOTS and root not in bound:
                bound[root] = self._root(root)
        return bound

    def _steps(self, reads: Reads, own: Mapping[str, JSON]) -> dict[str, JSON]:
        refs = self.graph.by_ref if reads.all_steps else reads.steps
        return {ref: own[ref] if ref in own else self.step_view(ref) for ref in refs if ref in self.graph.by_ref}

    def step_view(self, ref: str) -> dict[str, JSON]:
        """What STEPS["ref"] shows. `output` is absent until there is one, so that reading it too early is an error."""
        node = self.state.root.nodes.get(ref)
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


def _due_of(transition: Transition) -> int:
    """When this transition wants the run to wake, 0 = it does not."""
    deadline = getattr(transition, "deadline", 0) or getattr(transition, "retry_at", 0)
    check = getattr(transition, "check_at", 0)
    return min(deadline, check) if deadline and check else deadline or check


class NodeContext:
    """A tick's view of one node, as behaviours get it."""

    def __init__(self, tick: TickContext, node: GraphNode) -> None:
        self.tick = tick
        self.node = node
        self.entry = tick.state.root.nodes.get(node.ref) or NodeState()
        self.budget = Budget()

    def evaluate(self, program: Program, own: Mapping[str, JSON] | None = None, **extra: JSON) -> JSON:
        """The value of an expression of this node; all of them share the node's budget. Raises ExpressionError."""
        return self._metered(lambda: program.evaluate(self.tick.bindings(program.reads, own, **extra), self.budget))

    def holds(self, program: Program, own: Mapping[str, JSON] | None = None, **extra: JSON) -> bool:
        """Whether a condition is true. Raises ExpressionError for one that errors or is not a boolean."""
        bindings = self.tick.bindings(program.reads, own, **extra)
        return bool(self._metered(lambda: program.evaluate_bool(bindings, self.budget)))

    def render(self, template: Template) -> JSON:
        """The value of a template of this node. Raises ExpressionError."""
        return self._metered(lambda: template.render(self.tick.bindings(template.reads), self.budget))

    def _metered(self, evaluation: Callable[[], JSON]) -> JSON:
        before = self.budget.work_left
        try:
            return evaluation()
        finally:
            self.tick.work_left -= before - self.budget.work_left

    @property
    def id(self) -> str:
        return self.node.ref

    @property
    def now(self) -> int:
        return self.tick.now

    @property
    def args(self) -> Any:
        return self.node.args
