"""Replays a run's history transition by transition and finds every step that no correct engine would have taken.

Knows the rules on its own (readiness, who may follow whom, counting); of the engine it uses only `evolve`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ductor.engine.evolve import evolve, owes
from ductor.engine.graph import Graph
from ductor.engine.operating import REPEATS
from ductor.engine.scopes import find
from ductor.model import transition as tr
from ductor.model.enums import Join, NodeStatus, RunStatus, StepType
from ductor.model.run import HistoryRow, Origin, RunState, TreeState
from ductor.model.transition import Transition

_S: Final = NodeStatus
_FROM: Final[dict[type, frozenset[NodeStatus]]] = {
    tr.NodeScheduled: frozenset({_S.PENDING, _S.RETRYING}),
    tr.NodeParked: frozenset({_S.PENDING, _S.WAITING}),
    tr.NodeRetrying: frozenset({_S.SCHEDULED}),
    tr.NodeCompleted: frozenset({_S.PENDING, _S.SCHEDULED, _S.WAITING}),
    tr.NodeFailed: frozenset({_S.PENDING, _S.SCHEDULED, _S.WAITING}),
    tr.NodeSkipped: frozenset({_S.PENDING, _S.WAITING}),
    tr.NodeCancelled: frozenset({_S.SCHEDULED, _S.WAITING, _S.RETRYING, _S.PAUSED}),
    tr.NodeHeld: frozenset({_S.PENDING, _S.SCHEDULED, _S.RETRYING}),
    tr.NodeRested: frozenset({_S.PENDING, _S.RETRYING}),
    tr.NodeAdopted: frozenset({_S.PENDING}),
    tr.NodeReleased: frozenset({_S.PENDING, _S.SCHEDULED, _S.PAUSED}),
    tr.NodeReset: frozenset({_S.SCHEDULED, _S.WAITING, _S.RETRYING, _S.PAUSED}),
    tr.NodeTuned: frozenset({_S.PENDING, _S.SCHEDULED, _S.WAITING, _S.RETRYING, _S.PAUSED}),
    tr.NodeChecked: frozenset({_S.SCHEDULED, _S.WAITING, _S.RETRYING}),
    tr.NodeWatched: frozenset({_S.SCHEDULED}),
    tr.NodeOverdue: frozenset({_S.SCHEDULED}),
    tr.AttemptAbandoned: frozenset({_S.SCHEDULED}),
    tr.LateEffect: frozenset(_S),
    tr.ScatterOpened: frozenset({_S.PENDING}),
    tr.ScatterReopened: frozenset({_S.PENDING}),
    tr.PageOpened: frozenset({_S.WAITING}),
    tr.ItemsStarted: frozenset({_S.WAITING}),
    tr.ItemEnded: frozenset({_S.WAITING}),
    tr.PageClosed: frozenset({_S.COMPLETED, _S.FAILED, _S.CANCELLED, _S.WAITING}),
    tr.GatherCollected: frozenset({_S.PENDING, _S.WAITING}),
}
_AFTERWARDS: Final = (
    tr.OperatorAudited,
    tr.RunRedriven,
    tr.DutyDone,
    tr.ChildEnded,
    tr.IntentForwarded,
    tr.LateEffect,
    tr.LinkedPlanned,
    tr.WakeArmed,
)
_STARTS: Final = (tr.NodeScheduled, tr.NodeParked, tr.NodeSkipped)
_PARKED: Final = (_S.WAITING, _S.RETRYING, _S.PAUSED)
_LIVE: Final = frozenset({_S.SCHEDULED, _S.WAITING, _S.RETRYING, _S.RUNNING, _S.PAUSED})

LOOK_AT_LEAST_MS: Final = 86_400_000
"""The longest time between two looks after something that may have been lost."""


class Oracle:
    """One run. `faults` are sentences about what was wrong."""

    def __init__(self, graph: Graph, origin: Origin) -> None:
        self.graph = graph
        self.state = RunState(origin=origin, updated_at=origin.created_at)
        self.faults: list[str] = []
        self.requests: list[str] = []
        self._kept: frozenset[str] = frozenset()
        self._incoming: dict[str, list[tuple[str, int]]] = {node.ref: [] for node in graph.nodes}
        for node in graph.nodes:
            for edge in node.out:
                if graph.nodes[edge.target].region == node.region:
                    self._incoming[graph.nodes[edge.target].ref].append((node.ref, edge.index))
        self._entered = {graph.nodes[edge.target].ref for node in graph.nodes for edge in node.entries}
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
            told = faults_of(self.state, unwatched_of(self.graph))
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
        closes = isinstance(transition, tr.PageClosed) or "@" in getattr(transition, "node", "")
        closing = state.status in (RunStatus.TERMINATED, RunStatus.CONTINUED_AS_NEW) and closes
        if state.status.terminal and not closing and not isinstance(transition, _AFTERWARDS):
            yield f"the run has ended as {state.status.value}"
        if isinstance(transition, tr.RunForked) and state.seq:
            yield "a fork begins with its source"
        if isinstance(transition, tr.RunForked):
            self._kept = frozenset(kept.partition("@")[0] for kept in transition.kept)
        if isinstance(transition, tr.RunStarted) and state.started_at:
            yield "the run had started"
        if isinstance(transition, tr.OperatorAudited) and transition.request_id and transition.code not in REPEATS:
            self.requests.append(transition.request_id)
        node: str | None = getattr(transition, "node", None)
        if node is not None:
            yield from self._judge_node(transition, node)

    def _judge_node(self, transition: Transition, ref: str) -> Iterator[str]:
        place = find(self.graph, self.state, ref)
        entry = place.entry if place else None
        status = entry.status if entry else _S.PENDING
        lost = isinstance(transition, tr.NodeCancelled) and transition.final and status is _S.PENDING
        if status not in _FROM[type(transition)] and not lost:
            yield f"{ref} was {status.value}"
        if place is None:
            yield f"{ref} has no place"
            return
        starting = isinstance(transition, _STARTS) or (
            status is _S.PENDING and isinstance(transition, tr.NodeCompleted | tr.NodeFailed)
        )
        goes_on = isinstance(transition, tr.NodeParked | tr.NodeSkipped) and status is _S.WAITING
        if starting and not goes_on:
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
        place = find(self.graph, self.state, ref)
        if place is None or place.node.needs or place.node.ref in self._entered:
            return
        if not place.open:
            yield f"{ref} starts in a scope that is closed"
        at = f"@{place.path}" if place.path else ""
        incoming = [(f"{source}{at}", index) for source, index in self._incoming[place.node.ref]]
        if any(source not in self._resolved for source, _ in incoming):
            yield f"{ref} is decided before its incoming edges are"
        taken = sum(index in self._taken.get(source, ()) for source, index in incoming)
        node = place.node
        joined = not incoming or (taken == len(incoming) if node.step.join is Join.ALL else taken > 0)
        skipped = isinstance(transition, tr.NodeSkipped)
        if not joined and not skipped:
            yield f"{ref} starts although {taken} of {len(incoming)} edges are taken"
        # A fork keeps a wait that its source had begun and then given up: there it is a skip from the start.
        if joined and skipped and node.condition is None and ref.partition("@")[0] not in self._kept:
            yield f"{ref} is skipped although {taken} of {len(incoming)} edges are taken"

    def _follow(self, transition: Transition) -> None:
        if isinstance(transition, tr.NodeFailed) and not transition.handled:
            return
        if isinstance(transition, tr.NodeFailed | tr.NodeCompleted | tr.NodeSkipped):
            self._resolved.add(transition.node)
            self._taken[transition.node] = transition.taken


def asks_people(graph: Graph) -> frozenset[str]:
    """The steps that may wait without end and unwatched: for a person there is no other side to look at."""
    return frozenset(node.ref for node in graph.nodes if node.step.type is StepType.APPROVAL)


def unwatched_of(graph: Graph) -> frozenset[str]:
    """The steps that need no deadline and no check: those that ask people, and those that wait for their own items."""
    inside = (StepType.SCATTER, StepType.GATHER)
    return asks_people(graph) | {node.ref for node in graph.nodes if node.step.type in inside}


def faults_of(state: RunState, unwatched: frozenset[str] = frozenset()) -> Iterator[str]:
    """What cannot be in a committed state, whatever came before. `unwatched` steps may wait for nothing but people."""
    nodes = state.root.nodes
    statuses = [entry.status for entry in nodes.values()]
    counted = (
        statuses.count(_S.SCHEDULED),
        sum(statuses.count(status) for status in _PARKED),
        sum(status.ended for status in statuses),
    )
    kept = (state.root.attempts, state.root.parked, state.root.ended)
    if counted != kept:
        yield f"attempts, parked, ended are {kept}, counted {counted}"
    live = [ref for ref, entry in nodes.items() if entry.status in _LIVE]
    if state.status.terminal:
        if live:
            yield f"live steps {live} in a run that is {state.status.value}"
        if bool(state.wake_at) != owes(state):
            yield f"a run that has ended has the wake-up {state.wake_at} and owes {state.duties} {state.children}"
        return
    for ref, entry in nodes.items():
        if entry.status.ended and not entry.finished_at:
            yield f"{ref} is {entry.status.value} without an end time"
    yield from _unwatched(state, unwatched)
    if state.tree is not None:
        yield from _pages(state, state.tree)


def _pages(state: RunState, tree: TreeState) -> Iterator[str]:
    """The header's marks of the pages agree with the pages."""
    items = [item for page in state.loaded.values() for item in page.items]
    statuses = [entry.status for item in items for entry in item.nodes.values()]
    counted = (statuses.count(_S.SCHEDULED), sum(statuses.count(status) for status in _PARKED))
    if counted != (tree.attempts, tree.parked):
        yield f"attempts, parked in pages are {(tree.attempts, tree.parked)}, counted {counted}"
    ready = sorted(page.number for page in state.loaded.values() if page.ready)
    if ready != sorted(tree.ready):
        yield f"pages {ready} have ready steps, the header says {tree.ready}"
    for page in state.loaded.values():
        offsets = sorted(offset for offset, item in enumerate(page.items) if item.ready)
        if offsets != sorted(page.ready):
            yield f"items {offsets} of page {page.number} have ready steps, the page says {page.ready}"
        deadline, check = tree.due.get(page.number, (0, 0))
        for item in page.items:
            for ref, entry in item.nodes.items():
                if entry.check_at and not 0 < check <= entry.check_at:
                    yield f"{ref} in page {page.number} is to be looked at before the page is"
                if entry.deadline and not 0 < deadline <= entry.deadline:
                    yield f"{ref} in page {page.number} is due before the page is"
                if entry.status is _S.SCHEDULED and not entry.check_at:
                    yield f"nobody looks after the attempt of {ref} in page {page.number}"


def _unwatched(state: RunState, unwatched: frozenset[str]) -> Iterator[str]:
    """A wake-up must be armed for the first moment at which there will be something to do."""
    paused = state.status is RunStatus.PAUSED
    due = state.tree.due.values() if state.tree else ()
    moments = [entry.check_at for entry in state.root.nodes.values() if entry.check_at]
    moments += [check for _, check in due if check]
    moments += [state.slot.check_at] if state.slot and state.slot.awaited else []
    if not paused and not state.ending:
        moments += [deadline for deadline, _ in due if deadline]
        moments += [entry.deadline for entry in state.root.nodes.values() if entry.deadline]
        moments += [state.deadline] if state.deadline else []
    if moments and not 0 < state.wake_at <= min(moments):
        yield f"the wake-up is at {state.wake_at}, the first thing to do at {min(moments)}"
    for ref, entry in state.root.nodes.items():
        if entry.status is _S.SCHEDULED and not entry.check_at:
            yield f"nobody looks after the attempt of {ref}"
        if entry.check_at > state.updated_at + LOOK_AT_LEAST_MS:
            yield f"the next look after {ref} is more than a day away"
        watched = entry.deadline or entry.check_at or ref in unwatched
        if entry.status in (_S.RETRYING, _S.WAITING) and not watched:
            yield f"{ref} is {entry.status.value} and nobody will look"
