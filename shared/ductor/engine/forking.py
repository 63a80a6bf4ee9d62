"""Forks: which results of a run still hold at a point of its history, and the first state of a run that goes on there.

A result holds if everything that it was decided by holds. The end of a scatter holds only together with its gather's;
results in its items may hold without (`fork_items`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from ductor.engine.evolve import evolve
from ductor.engine.fork_items import ItemPlans, ScatterPlan, kept_of, top_scatter
from ductor.engine.graph import Graph, GraphNode
from ductor.engine.regions import ROOT
from ductor.model import transition as tr
from ductor.model.enums import NodeStatus, StepType
from ductor.model.payload import Payload
from ductor.model.run import LastTick, Origin, RunState
from ductor.model.transition import Kept, Transition

End = tr.NodeCompleted | tr.NodeFailed | tr.NodeSkipped | tr.NodeCancelled
Told = tuple[int, int, Transition]
"""A transition with its number and time (epoch ms)."""

Copy = Callable[[Payload], Payload]
"""A payload of the source as one that the fork owns."""


class ForkPlan(msgspec.Struct, frozen=True):
    """`kept` are the ends that hold, in order; `adopted` the results of later steps that are taken over.

    `scatters` are those that go on with the source's items, by node id.
    """

    kept: tuple[End, ...]
    adopted: dict[str, Kept]
    scatters: dict[str, ScatterPlan] = {}

    @property
    def nodes(self) -> tuple[str, ...]:
        """The steps of the run itself whose results come from the source."""
        return (*(end.node for end in self.kept), *self.adopted)

    @property
    def steps(self) -> set[str]:
        """The steps that have a result of the source, in whatever item."""
        inside = [node for plan in self.scatters.values() for node in (*plan.kept, *plan.adopted)]
        return {*self.nodes, *(node.partition("@")[0] for node in inside)}


class Source(msgspec.Struct, frozen=True):
    """A run as it was at transition `seq`, and the ends of its own steps in all of its history.

    `in_items` are the completions of nodes in items: until the point, and the last ones of all.
    """

    at_point: RunState
    ends: tuple[tuple[int, End], ...]
    in_items: dict[str, tuple[int, tr.NodeCompleted]] = {}
    later: dict[str, tuple[int, tr.NodeCompleted]] = {}


def read_source(graph: Graph, origin: Origin, history: Iterable[Told], seq: int) -> Source:
    """Fold the history up to transition `seq` (0 = nothing)."""
    state = RunState(origin=origin, updated_at=origin.created_at)
    ends: list[tuple[int, End]] = []
    inside: dict[str, tuple[int, tr.NodeCompleted]] = {}
    later: dict[str, tuple[int, tr.NodeCompleted]] = {}
    for number, at, transition in history:
        if number == seq + 1 and isinstance(transition, tr.NodeCancelled | tr.CheckpointReached):
            seq = number  # one decision with what came before: a join that was reached, and who lost it
        if number <= seq:
            evolve(graph, state, transition, at)
        if not isinstance(transition, End):
            continue
        if "@" not in transition.node:
            ends.append((number, transition))
        elif isinstance(transition, tr.NodeCompleted):
            (inside if number <= seq else later)[transition.node] = (number, transition)
    return Source(state, tuple(ends), inside, later)


def plan_fork(graph: Graph, source: Source, rerun: Collection[str], preserve: Collection[str]) -> ForkPlan:
    """What holds when the steps in `rerun` are run again in any case."""
    dropped = {graph_ref for node in rerun for graph_ref in (top_scatter(graph, _ref(node)), _ref(node)) if graph_ref}
    while True:
        kept = _kept(graph, source, dropped)
        names = {end.node for end in kept}
        torn = {
            node.ref
            for node in graph.nodes
            if node.ref in names and node.gather != ROOT and graph.nodes[node.gather].ref not in names
        }
        if not torn:
            break
        dropped |= torn
    own = [ref for ref in preserve if graph.by_ref[_ref(ref)].region == ROOT]
    adopted = {ref: _adopted(graph, source, ref) for ref in own if ref not in names}
    return ForkPlan(kept, adopted, _scatters(graph, source, names, rerun, preserve))


def _ref(node: str) -> str:
    return node.partition("@")[0]


def _scatters(
    graph: Graph, source: Source, kept: Collection[str], rerun: Collection[str], preserve: Collection[str]
) -> dict[str, ScatterPlan]:
    """Scatters of the run itself whose start holds, though not their end, and those in their items."""
    plans = ItemPlans(graph, source.at_point, source.in_items, rerun)
    incoming = _incoming(graph)
    for index in graph.bodies[ROOT]:
        node = graph.nodes[index]
        begun = node.step.type is StepType.SCATTER and node.ref not in kept
        if begun and not node.contained and all(ref in kept for ref in incoming[node.ref]):
            plans.plan(node.ref)
    plans.adopt({**source.in_items, **source.later}, preserve)
    return plans.found


def _kept(graph: Graph, source: Source, dropped: set[str]) -> tuple[End, ...]:
    nodes = source.at_point.root.nodes
    ended = {ref: entry.ended_seq for ref, entry in nodes.items() if entry.status.ended}
    incoming = _incoming(graph)
    kept: dict[str, End] = {}
    for number, end in source.ends:
        if ended.get(end.node) != number or end.node in dropped or not _final(end):
            continue
        decided_by = [ref for ref in incoming[end.node] if 0 < ended.get(ref, 0) < number]
        if all(ref in kept for ref in decided_by) and _lost_rightly(graph, end, kept):
            kept[end.node] = end
    return tuple(kept.values())


def _final(end: End) -> bool:
    """Whether the run went on from this end, so that it is a result."""
    if isinstance(end, tr.NodeFailed):
        return end.handled
    return not isinstance(end, tr.NodeCancelled) or end.final


def _lost_rightly(graph: Graph, end: End, kept: Mapping[str, End]) -> bool:
    """A loser stays one only while the join that it lost is kept."""
    if not isinstance(end, tr.NodeCancelled):
        return True
    index = graph.by_ref[end.node].index
    return any(any(index in steps for _, steps in node.branches) and node.ref in kept for node in graph.nodes)


def _incoming(graph: Graph) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {node.ref: [] for node in graph.nodes}
    for node in graph.nodes:
        for edge in node.out:
            found[graph.nodes[edge.target].ref].append(node.ref)
    return found


def _adopted(graph: Graph, source: Source, ref: str) -> Kept:
    ends = [end for _, end in source.ends if end.node == ref and isinstance(end, tr.NodeCompleted)]
    return kept_of(graph.by_ref[ref], ends[-1])


def preservable(node: GraphNode) -> bool:
    """Whether a result of the step means anything without what led to it."""
    return node.gather == ROOT and node.scatter == ROOT and not node.needs


_WITH_INPUT: Final = frozenset({StepType.ACTION, StepType.BRIDGE, StepType.AI_ACTION, StepType.AI_AGENT})


def overridable(node: GraphNode) -> bool:
    """Whether the step has an input that can be given."""
    return node.step.type in _WITH_INPUT


def first_state(
    graph: Graph,
    origin: Origin,
    plan: ForkPlan,
    forked: tr.RunForked,
    audit: tr.OperatorAudited,
    wake_after_ms: int,
    copy: Copy,
    slot: tr.SlotAsked | None = None,
) -> RunState:
    """The fork after its first commit: everything kept is in it, and all that follows is ready.

    With `slot` it waits until its definition's concurrency lets it go on.
    """
    at, limit = origin.created_at, graph.definition.run_timeout_ms
    state = RunState(origin=origin, updated_at=at, version=FIRST_VERSION)
    wake = at + (min(wake_after_ms, limit) if limit else wake_after_ms)
    done = [
        forked,
        audit,
        tr.RunStarted(at + limit if limit else 0),
        *_copied(graph, plan.kept, copy),
        *((slot,) if slot else ()),
        tr.WakeArmed(wake),
    ]
    for transition in done:
        evolve(graph, state, transition, at)
    state.last = LastTick(at=at, transitions=tuple(done))
    return state


FIRST_VERSION: Final = 2
"""The version of a run that has been admitted and has ticked once."""


def _copied(graph: Graph, kept: Sequence[End], copy: Copy) -> Iterator[Transition]:
    reached: set[str] = set()
    for end in kept:
        if isinstance(end, tr.NodeCompleted):
            context = None if end.context is None else copy(end.context)
            yield msgspec.structs.replace(end, output=copy(end.output), context=context)
            new = [name for name in graph.by_ref[end.node].checkpoints if name not in reached]
            reached.update(new)
            yield from (tr.CheckpointReached(name) for name in new)
        elif isinstance(end, tr.NodeFailed):
            yield msgspec.structs.replace(end, output=copy(end.output))
        elif isinstance(end, tr.NodeCancelled):
            yield msgspec.structs.replace(end, live=False)
        else:
            yield end


class Target(msgspec.Struct, frozen=True):
    """A point to fork from: everything up to transition `seq` has happened. `at` is epoch ms."""

    seq: int
    at: int
    node: str
    reason: str


def targets(origin: Origin, history: Iterable[Told]) -> Iterator[Target]:
    """Points that make a difference: the beginning, after each step that ended, before each that failed."""
    yield Target(0, origin.created_at, "", "the beginning: nothing is kept")
    for number, at, transition in history:
        if not isinstance(transition, End):
            continue
        node = transition.node
        if "@" in node and not isinstance(transition, tr.NodeFailed):
            continue  # in items only what failed: there may be thousands that did not
        if isinstance(transition, tr.NodeFailed):
            yield Target(number - 1, at, node, f"before {node} failed with {transition.error.code}")
        elif isinstance(transition, tr.NodeCompleted):
            yield Target(number, at, node, f"after {node} completed")
        elif isinstance(transition, tr.NodeSkipped):
            yield Target(number, at, node, f"after {node} was skipped")


def completed(state: RunState, ref: str) -> bool:
    """Whether the step has a result without an error."""
    entry = state.root.nodes.get(ref)
    return entry is not None and entry.status is NodeStatus.COMPLETED and entry.error is None
