"""Replays a run's history transition by transition and finds every step that no correct engine would have taken.

Knows the rules on its own (readiness, who may follow whom, counting); of the engine it uses only `evolve`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ductor.engine.evolve import evolve
from ductor.engine.graph import Graph
from ductor.model import transition as tr
from ductor.model.enums import Join, NodeStatus, RunStatus, StepType
from ductor.model.run import HistoryRow, Origin, RunState
from ductor.model.transition import Transition

_S: Final = NodeStatus
_FROM: Final[dict[type, frozenset[NodeStatus]]] = {
    tr.NodeScheduled: frozenset({_S.PENDING, _S.RETRYING}),
    tr.NodeParked: frozenset({_S.PENDING, _S.WAITING}),
    tr.NodeRetrying: frozenset({_S.SCHEDULED}),
    tr.NodeCompleted: frozenset({_S.PENDING, _S.SCHEDULED, _S.WAITING}),
    tr.NodeFailed: frozenset({_S.PENDING, _S.SCHEDULED, _S.WAITING}),
    tr.NodeSkipped: frozenset({_S.PENDING, _S.WAITING}),
    tr.NodeCancelled: frozenset({_S.SCHEDULED, _S.WAITING, _S.RETRYING}),
    tr.NodeChecked: frozenset({_S.SCHEDULED, _S.WAITING, _S.RETRYING}),
}
_STARTS: Final = (tr.NodeScheduled, tr.NodeParked, tr.NodeSkipped)
_LIVE: Final = frozenset({_S.SCHEDULED, _S.WAITING, _S.RETRYING, _S.RUNNING, _S.PAUSED})


class Oracle:
    """One run. `faults` are sentences about what was wrong."""

    def __init__(self, graph: Graph, origin: Origin) -> None:
        self.graph = graph
        self.state = RunState(origin=origin, updated_at=origin.created_at)
        self.faults: list[str] = []
        self.requests: list[str] = []
        self._incoming: dict[str, list[tuple[str, int]]] = {node.ref: [] for node in graph.nodes}
        for node in graph.nodes:
            for edge in node.out:
                self._incoming[graph.nodes[edge.target].ref].append((node.ref, edge.index))
        self._taken: dict[str, tuple[int, ...]] = {}
        self._resolved: set[str] = set()
        self._generations: dict[str, int] = {}

    def replay(self, rows: Sequence[HistoryRow]) -> RunState:
        """Every row in turn; the state after the last."""
        for row in rows:
            if row.seq != self.state.seq + 1:
                self.faults.append(f"history has a row of transition {row.seq} after {self.state.seq}")
                break
            if row.at < self.state.updated_at:
                self.faults.append(f"time ran backwards at transition {row.seq}")
            if not row.transitions:
                self.faults.append(f"commit {row.version} has no transitions")
            for transition in row.transitions:
                self._step(transition, row.at)
            self.state.version = row.version
            told = faults_of(self.state, asks_people(self.graph))
            self.faults += [f"after transition {self.state.seq}: {fault}" for fault in told]
        return self.state

    def _step(self, transition: Transition, at: int) -> None:
        self.faults += [
            f"transition {self.state.seq + 1}, {type(transition).__name__}: {fault}"
            for fault in self._judge(transition)
        ]
        evolve(self.graph, self.state, transition, at)
        self._follow(transition)

    def _judge(self, transition: Transition) -> Iterator[str]:
        state = self.state
        if state.status.terminal and not isinstance(transition, tr.OperatorAudited | tr.RunRedriven):
            yield f"the run has ended as {state.status.value}"
        if isinstance(transition, tr.RunStarted) and state.started_at:
            yield "the run had started"
        if isinstance(transition, tr.OperatorAudited) and transition.request_id:
            self.requests.append(transition.request_id)
        node: str | None = getattr(transition, "node", None)
        if node is not None:
            yield from self._judge_node(transition, node)

    def _judge_node(self, transition: Transition, ref: str) -> Iterator[str]:
        entry = self.state.root.nodes.get(ref)
        status = entry.status if entry else _S.PENDING
        if status not in _FROM[type(transition)]:
            yield f"{ref} was {status.value}"
        starting = isinstance(transition, _STARTS) or (
            status is _S.PENDING and isinstance(transition, tr.NodeCompleted | tr.NodeFailed)
        )
        if starting:
            yield from self._judge_start(transition, ref, status)
        if isinstance(transition, tr.NodeScheduled):
            before = entry.attempt if entry else 0
            if transition.attempt != before + 1:
                yield f"attempt {transition.attempt} of {ref} follows {before}"
            yield from self._judge_generation(ref, transition.generation)
        if isinstance(transition, tr.NodeParked):
            yield from self._judge_parked(transition, ref, status)

    def _judge_parked(self, transition: tr.NodeParked, ref: str, status: NodeStatus) -> Iterator[str]:
        """A node that waits already goes on with the same wait."""
        if status is not _S.WAITING:
            yield from self._judge_generation(ref, transition.generation)
        elif transition.generation != self._generations.get(ref, 0):
            yield f"{ref} waits as generation {transition.generation}, not as it did"

    def _judge_generation(self, ref: str, generation: int) -> Iterator[str]:
        if generation <= self._generations.get(ref, 0):
            yield f"generation {generation} of {ref} is not new"
        self._generations[ref] = generation

    def _judge_start(self, transition: Transition, ref: str, status: NodeStatus) -> Iterator[str]:
        if self.state.status is not RunStatus.RUNNING or self.state.ending:
            yield f"{ref} starts in a run that is {self.state.status.value}, ending: {self.state.ending}"
        if status is not _S.PENDING:
            return
        incoming = self._incoming[ref]
        if any(source not in self._resolved for source, _ in incoming):
            yield f"{ref} is decided before its incoming edges are"
        taken = sum(index in self._taken.get(source, ()) for source, index in incoming)
        node = self.graph.by_ref[ref]
        joined = not incoming or (taken == len(incoming) if node.step.join is Join.ALL else taken > 0)
        skipped = isinstance(transition, tr.NodeSkipped)
        if not joined and not skipped:
            yield f"{ref} starts although {taken} of {len(incoming)} edges are taken"
        if joined and skipped and node.condition is None:
            yield f"{ref} is skipped although {taken} of {len(incoming)} edges are taken"

    def _follow(self, transition: Transition) -> None:
        if isinstance(transition, tr.NodeCompleted) or (isinstance(transition, tr.NodeFailed) and transition.handled):
            self._resolved.add(transition.node)
            self._taken[transition.node] = transition.taken
        elif isinstance(transition, tr.NodeSkipped):
            self._resolved.add(transition.node)
            self._taken[transition.node] = transition.taken


def asks_people(graph: Graph) -> frozenset[str]:
    """The steps that may wait without end and unwatched: for a person there is no other side to look at."""
    return frozenset(node.ref for node in graph.nodes if node.step.type is StepType.APPROVAL)


def faults_of(state: RunState, unwatched: frozenset[str] = frozenset()) -> Iterator[str]:
    """What cannot be in a committed state, whatever came before. `unwatched` steps may wait for nothing but people."""
    nodes = state.root.nodes
    statuses = [entry.status for entry in nodes.values()]
    counted = (
        statuses.count(_S.SCHEDULED),
        statuses.count(_S.WAITING) + statuses.count(_S.RETRYING),
        sum(status.ended for status in statuses),
    )
    kept = (state.root.attempts, state.root.parked, state.root.ended)
    if counted != kept:
        yield f"attempts, parked, ended are {kept}, counted {counted}"
    live = [ref for ref, entry in nodes.items() if entry.status in _LIVE]
    if state.status.terminal:
        if live:
            yield f"live steps {live} in a run that is {state.status.value}"
        if state.wake_at:
            yield "a run that has ended has a wake-up"
        return
    for ref, entry in nodes.items():
        if entry.status.ended and not entry.finished_at:
            yield f"{ref} is {entry.status.value} without an end time"
    yield from _unwatched(state, unwatched)


def _unwatched(state: RunState, unwatched: frozenset[str]) -> Iterator[str]:
    """A wake-up must be armed for the first moment at which there will be something to do."""
    paused = state.status is RunStatus.PAUSED
    moments = [entry.check_at for entry in state.root.nodes.values() if entry.check_at]
    if not paused and not state.ending:
        moments += [entry.deadline for entry in state.root.nodes.values() if entry.deadline]
        moments += [state.deadline] if state.deadline else []
    if moments and not 0 < state.wake_at <= min(moments):
        yield f"the wake-up is at {state.wake_at}, the first thing to do at {min(moments)}"
    for ref, entry in state.root.nodes.items():
        if entry.status is _S.SCHEDULED and not entry.check_at:
            yield f"nobody looks after the attempt of {ref}"
        watched = entry.deadline or entry.check_at or ref in unwatched
        if entry.status in (_S.RETRYING, _S.WAITING) and not watched:
            yield f"{ref} is {entry.status.value} and nobody will look"
