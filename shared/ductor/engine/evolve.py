"""Bookkeeping: what a transition does to the state. No rules live here, and it never fails on a transition we wrote.

`evolve` takes ownership of the state that it is given and changes it in place, so that a tick costs what it touches
and not the size of the run. Whoever needs the old state decodes it again.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final

from ductor.engine.graph import Graph
from ductor.model import transition as tr
from ductor.model.enums import NodeStatus, RunStatus
from ductor.model.payload import NULL
from ductor.model.run import JoinState, NodeState, RunState, ScopeState
from ductor.model.transition import Transition

DRAIN_CHECK_MS: Final = 15_000
"""How soon somebody looks again after an attempt that was asked to stop."""

_PARKED = frozenset({NodeStatus.WAITING, NodeStatus.RETRYING})


def evolve(graph: Graph, state: RunState, transition: Transition, at: int) -> RunState:
    """Apply one transition that happened at `at` (epoch ms). Returns the same, changed state."""
    state.seq += 1
    state.updated_at = at
    _EVOLVE[type(transition)](graph, state, transition, at)
    return state


def node_of(state: RunState, node: str) -> NodeState:
    """The node's entry, made when it has none yet."""
    entry = state.root.nodes.get(node)
    if entry is None:
        entry = state.root.nodes[node] = NodeState()
    return entry


def _count(scope: ScopeState, status: NodeStatus, by: int) -> None:
    if status is NodeStatus.SCHEDULED:
        scope.attempts += by
    elif status in _PARKED:
        scope.parked += by
    elif status.ended:
        scope.ended += by


def _move(state: RunState, node: NodeState, status: NodeStatus, at: int) -> None:
    _count(state.root, node.status, -1)
    _count(state.root, status, +1)
    node.status = status
    if status.ended:
        node.finished_at = at
        node.ended_seq = state.seq
        node.deadline = node.check_at = node.check_every = 0
        node.input = NULL


def _unready(graph: Graph, state: RunState, ref: str) -> None:
    """Ready nodes are taken in order, so a node that leaves the heap by being decided is its first."""
    ready = state.root.ready
    if ready and ready[0] == graph.by_ref[ref].index:
        heappop(ready)


def _resolve(graph: Graph, state: RunState, ref: str, taken: tuple[int, ...]) -> None:
    """All outgoing edges of `ref` are resolved, those in `taken` as taken; complete joins become ready."""
    scope = state.root
    for edge in graph.by_ref[ref].out:
        target = graph.nodes[edge.target]
        join = scope.joins.get(target.index)
        if join is None:
            join = scope.joins[target.index] = JoinState()
        join.resolved += 1
        join.taken += edge.index in taken
        if join.resolved == target.indegree:
            heappush(scope.ready, target.index)


def _run_started(graph: Graph, state: RunState, t: tr.RunStarted, at: int) -> None:
    if state.status is RunStatus.PENDING:
        state.status = RunStatus.RUNNING
    state.started_at = at
    state.deadline = t.deadline
    state.wake_at = 0  # until here it only said when to look whether the run was ever started
    for index in graph.roots:
        heappush(state.root.ready, index)


def _run_paused(_graph: Graph, state: RunState, _t: tr.RunPaused, at: int) -> None:
    state.status = RunStatus.PAUSED
    state.paused_at = at


def _run_resumed(_graph: Graph, state: RunState, _t: tr.RunResumed, at: int) -> None:
    for node in state.root.nodes.values():
        if node.status is NodeStatus.RETRYING:
            node.deadline += at - state.paused_at
    state.status = RunStatus.RUNNING
    state.paused_at = 0


def _run_redriven(graph: Graph, state: RunState, t: tr.RunRedriven, _at: int) -> None:
    state.status = RunStatus.RUNNING
    state.ending = state.error = None
    state.reason = ""
    state.finished_at = 0
    state.deadline = t.deadline
    for ref, node in state.root.nodes.items():
        if _redrivable(node):
            _count(state.root, node.status, -1)
            node.status = NodeStatus.PENDING
            node.first_attempt = node.attempt + 1
            node.finished_at = node.ended_seq = 0
            node.error = None
            heappush(state.root.ready, graph.by_ref[ref].index)


def _redrivable(node: NodeState) -> bool:
    if node.status is NodeStatus.CANCELLED:
        return True
    return node.status in (NodeStatus.FAILED, NodeStatus.TIMED_OUT) and not node.handled


def _run_ending(_graph: Graph, state: RunState, t: tr.RunEnding, at: int) -> None:
    state.ending = t.status
    state.status = RunStatus.CANCELLING if t.status is RunStatus.CANCELLED else RunStatus.RUNNING
    state.paused_at = 0
    state.error = t.error
    state.reason = t.reason
    for node in state.root.nodes.values():
        if node.status is NodeStatus.SCHEDULED:
            node.check_every = DRAIN_CHECK_MS
            node.check_at = at + DRAIN_CHECK_MS


def _run_ended(_graph: Graph, state: RunState, t: tr.RunEnded, at: int) -> None:
    state.status = t.status
    state.ending = None
    state.paused_at = state.deadline = state.wake_at = 0
    state.finished_at = at
    state.output = t.output
    state.error = t.error
    state.reason = t.reason


def _node_scheduled(graph: Graph, state: RunState, t: tr.NodeScheduled, at: int) -> None:
    node = node_of(state, t.node)
    _enter(graph, state, t.node, node, at)
    _move(state, node, NodeStatus.SCHEDULED, at)
    node.attempt = t.attempt
    node.generation = t.generation
    node.input = t.input
    node.connection = t.connection
    node.scheduled_at = at
    node.deadline = 0
    node.check_at = t.check_at
    node.check_every = t.check_every


def _enter(graph: Graph, state: RunState, ref: str, node: NodeState, at: int) -> None:
    if node.status is NodeStatus.PENDING:
        _unready(graph, state, ref)
        node.entered_at = at
        node.started_at = at


def _node_parked(graph: Graph, state: RunState, t: tr.NodeParked, at: int) -> None:
    node = node_of(state, t.node)
    _enter(graph, state, t.node, node, at)
    _move(state, node, NodeStatus.WAITING, at)
    node.generation = t.generation
    node.deadline = t.deadline
    node.input = t.input
    node.check_at = t.check_at
    node.check_every = t.check_every


def _node_retrying(_graph: Graph, state: RunState, t: tr.NodeRetrying, at: int) -> None:
    node = node_of(state, t.node)
    _move(state, node, NodeStatus.RETRYING, at)
    node.error = t.error
    # A backoff that begins during a pause runs on from the resume: as if it had begun with the pause.
    node.deadline = t.retry_at - (at - state.paused_at if state.paused_at else 0)
    node.check_at = node.check_every = 0


def _node_completed(graph: Graph, state: RunState, t: tr.NodeCompleted, at: int) -> None:
    node = node_of(state, t.node)
    _enter(graph, state, t.node, node, at)
    _move(state, node, NodeStatus.COMPLETED, at)
    node.output = t.output
    node.error = t.error
    node.no_route = t.no_route
    if t.context is not None:
        state.context = t.context
    if t.attributes:
        state.attributes = {**state.attributes, **t.attributes}
    _resolve(graph, state, t.node, t.taken)


def _node_failed(graph: Graph, state: RunState, t: tr.NodeFailed, at: int) -> None:
    node = node_of(state, t.node)
    _enter(graph, state, t.node, node, at)
    _move(state, node, t.status, at)
    node.output = t.output
    node.error = t.error
    node.handled = t.handled
    if t.handled:
        _resolve(graph, state, t.node, t.taken)


def _node_skipped(graph: Graph, state: RunState, t: tr.NodeSkipped, at: int) -> None:
    node = node_of(state, t.node)
    _unready(graph, state, t.node)
    _move(state, node, NodeStatus.SKIPPED, at)
    _resolve(graph, state, t.node, t.taken)


def _node_cancelled(_graph: Graph, state: RunState, t: tr.NodeCancelled, at: int) -> None:
    _move(state, node_of(state, t.node), NodeStatus.CANCELLED, at)


def _node_checked(_graph: Graph, state: RunState, t: tr.NodeChecked, _at: int) -> None:
    node = node_of(state, t.node)
    node.check_at = t.check_at
    node.check_every = t.check_every


def _checkpoint_reached(_graph: Graph, state: RunState, t: tr.CheckpointReached, at: int) -> None:
    state.checkpoints = {**state.checkpoints, t.name: at}


def _wake_armed(_graph: Graph, state: RunState, t: tr.WakeArmed, _at: int) -> None:
    state.wake_at = t.at


def _operator_audited(_graph: Graph, _state: RunState, _t: tr.OperatorAudited, _at: int) -> None:
    """An audit entry changes nothing but the sequence."""


_EVOLVE: dict[type, Callable[[Graph, RunState, Any, int], None]] = {
    tr.RunStarted: _run_started,
    tr.RunPaused: _run_paused,
    tr.RunResumed: _run_resumed,
    tr.RunRedriven: _run_redriven,
    tr.RunEnding: _run_ending,
    tr.RunEnded: _run_ended,
    tr.NodeScheduled: _node_scheduled,
    tr.NodeParked: _node_parked,
    tr.NodeRetrying: _node_retrying,
    tr.NodeCompleted: _node_completed,
    tr.NodeFailed: _node_failed,
    tr.NodeSkipped: _node_skipped,
    tr.NodeCancelled: _node_cancelled,
    tr.NodeChecked: _node_checked,
    tr.CheckpointReached: _checkpoint_reached,
    tr.WakeArmed: _wake_armed,
    tr.OperatorAudited: _operator_audited,
}
