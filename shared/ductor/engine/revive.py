"""What a redrive takes back in a scope: failures that nothing handled, and what was cancelled because of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ductor.engine.graph import Graph, GraphNode
from ductor.engine.keeping import complete, count
from ductor.model.enums import NodeStatus
from ductor.model.run import JoinState, NodeState, RunState, ScopeState

_FAILED = frozenset({NodeStatus.FAILED, NodeStatus.TIMED_OUT})


def revive(graph: Graph, state: RunState, scope: ScopeState, nodes: Iterable[GraphNode]) -> list[int]:
    """Make nodes of the scope pending again, each with a fresh retry budget. Gives the indexes of those to decide now.

    A join that decided early and failed gets its failed branches back; one that succeeded keeps its losers as they are.
    """
    known = [(node, scope.nodes[node.ref]) for node in nodes if node.ref in scope.nodes]
    again = [node for node, entry in known if _redrivable(entry)]
    for node in again:
        _reset(state, scope, scope.nodes[node.ref])
        join = scope.joins.get(node.index)
        if node.needs and join is not None and join.taken < node.needs:
            again += _branches_back(graph, state, scope, node)
    return sorted({node.index for node in again if _to_decide(scope, node)})


def _redrivable(entry: NodeState) -> bool:
    return (entry.status in _FAILED or entry.status is NodeStatus.CANCELLED) and not entry.handled


def _reset(state: RunState, scope: ScopeState, entry: NodeState) -> None:
    count(state, scope, entry.status, -1)
    entry.status = NodeStatus.PENDING
    entry.first_attempt = entry.attempt + 1
    entry.finished_at = entry.ended_seq = 0
    entry.error = None
    entry.handled = False


def _branches_back(graph: Graph, state: RunState, scope: ScopeState, join: GraphNode) -> list[GraphNode]:
    back: list[GraphNode] = []
    for _, steps in join.branches:
        for index in sorted(steps):
            node = graph.nodes[index]
            entry = scope.nodes.get(node.ref)
            if entry is None or not entry.handled:
                continue
            if entry.status in _FAILED:
                _reset(state, scope, entry)
                _unresolve(graph, state, scope, node)
                back.append(node)
            elif entry.status is NodeStatus.CANCELLED:
                _reset(state, scope, entry)
                back.append(node)
    return back


def _unresolve(graph: Graph, state: RunState, scope: ScopeState, source: GraphNode) -> None:
    """The node's edges, all resolved as not taken, are open again; what was skipped for them is pending again."""
    seen: set[int] = set()
    for edge in source.out:
        target = graph.nodes[edge.target]
        if target.region != source.region or (target.needs and target.index in seen):
            continue
        seen.add(target.index)
        scope.joins[target.index].resolved -= 1
        entry = scope.nodes.get(target.ref)
        if entry is not None and entry.status is NodeStatus.SKIPPED:
            _reset(state, scope, entry)
            _unresolve(graph, state, scope, target)


def _to_decide(scope: ScopeState, node: GraphNode) -> bool:
    if node.index in scope.ready:
        return False
    join = scope.joins.get(node.index) or JoinState()
    return complete(node, join)


def complete_nodes(graph: Graph, scope: ScopeState, body: Sequence[int]) -> list[int]:
    """Nodes of a body whose incoming edges are all resolved and which have not been decided."""
    found = []
    for index in body:
        node = graph.nodes[index]
        entry = scope.nodes.get(node.ref)
        if (entry is None or entry.status is NodeStatus.PENDING) and index in scope.joins and _to_decide(scope, node):
            found.append(index)
    return found
