"""The counters, joins and marks of scopes, kept in step with their nodes: the common part of all bookkeeping."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Final

from ductor.engine.graph import Graph, GraphNode
from ductor.engine.scopes import Place, find
from ductor.model.enums import NodeStatus
from ductor.model.payload import NULL
from ductor.model.run import JoinState, NodeState, PageState, RunState, ScopeState, TreeState

PARKED: Final = frozenset({NodeStatus.WAITING, NodeStatus.RETRYING, NodeStatus.PAUSED})


def place_of(graph: Graph, state: RunState, node_id: str) -> Place:
    """The place of a node that a transition names; its page is changed by this transition."""
    place = find(graph, state, node_id)
    if place is None:
        raise LookupError(f"{node_id} has no place in the state")
    if place.page is not None:
        touch(state, place.page)
    return place


def touch(state: RunState, page: PageState) -> None:
    """The page changes now. Retry backoffs in it take account of pauses since it was changed last."""
    page.seq = state.seq
    paused_ms = tree_of(state).paused_ms
    if page.paused_ms != paused_ms:
        for item in page.items:
            for node in item.nodes.values():
                if node.status is NodeStatus.RETRYING:
                    node.deadline += paused_ms - page.paused_ms
        page.paused_ms = paused_ms


def tree_of(state: RunState) -> TreeState:
    if state.tree is None:
        state.tree = TreeState()
    return state.tree


def entry_of(place: Place) -> NodeState:
    """The node's entry, made when it has none yet."""
    entry = place.scope.nodes.get(place.node.ref)
    if entry is None:
        entry = place.scope.nodes[place.node.ref] = NodeState()
    return entry


def count(state: RunState, scope: ScopeState, status: NodeStatus, by: int) -> None:
    """One node more or less in `status`."""
    item = None if scope is state.root else state.tree
    if status is NodeStatus.SCHEDULED:
        scope.attempts += by
        if item is not None:
            item.attempts += by
    elif status in PARKED:
        scope.parked += by
        if item is not None:
            item.parked += by
    elif status.ended:
        scope.ended += by


def move(state: RunState, place: Place, node: NodeState, status: NodeStatus, at: int) -> None:
    """Set the node's status; an ended node keeps nothing that only a live one needs."""
    count(state, place.scope, node.status, -1)
    count(state, place.scope, status, +1)
    node.status = status
    if status.ended:
        node.finished_at = at
        node.ended_seq = state.seq
        node.deadline = node.check_at = node.check_every = 0
        node.input = NULL
        node.held = False
        node.backoff_left = None
        node.worker = ""
        if node.cursor:
            tree_of(state).collecting.remove(place.id)
            node.cursor = 0
        if node.scatter is not None:
            _scatter_ended(state, place.id, node)


def _scatter_ended(state: RunState, node_id: str, node: NodeState) -> None:
    """However a scatter ends, its scopes are closed with it: this is that one entry. Pages follow one by one."""
    tree, scatter = tree_of(state), node.scatter
    if node_id in tree.opening:
        tree.opening.remove(node_id)
    if scatter is not None and scatter.running:
        tree.closing[node_id] = 0


def mark(state: RunState, place: Place, node: NodeState) -> None:
    """The header learns when the node's page is due, if that is earlier than it knew."""
    if place.page is None:
        return
    tree = tree_of(state)
    deadline, check = tree.due.get(place.page.number, (0, 0))
    if node.deadline and (not deadline or node.deadline < deadline):
        deadline = node.deadline
    if node.check_at and (not check or node.check_at < check):
        check = node.check_at
    if deadline or check:
        tree.due[place.page.number] = (deadline, check)


def unready(state: RunState, place: Place) -> None:
    """The node has been decided, or never will be: it leaves the heap of its scope."""
    ready, index = place.scope.ready, place.node.index
    if ready and ready[0] == index:
        heappop(ready)
    elif index in ready:
        ready.remove(index)
        heapify(ready)
    if place.page is not None and not ready:
        calm(state, place.page, place.index - place.page.first)


def calm(state: RunState, page: PageState, offset: int) -> None:
    """The item has no ready node any more."""
    if offset in page.ready:
        page.ready.remove(offset)
        heapify(page.ready)
    tree = tree_of(state)
    if not page.ready and page.number in tree.ready:
        tree.ready.remove(page.number)
        heapify(tree.ready)


def push(state: RunState, place: Place, index: int) -> None:
    """A node of the place's scope is ready."""
    heappush(place.scope.ready, index)
    if place.page is None:
        return
    offset = place.index - place.page.first
    if offset not in place.page.ready:
        heappush(place.page.ready, offset)
    tree = tree_of(state)
    if place.page.number not in tree.ready:
        heappush(tree.ready, place.page.number)


def resolve(graph: Graph, state: RunState, place: Place, taken: Iterable[int]) -> None:
    """All outgoing edges of the node are resolved, those in `taken` as taken; complete joins become ready."""
    early: dict[int, bool] | None = None
    for edge in place.node.out:
        target = graph.nodes[edge.target]
        hit = edge.index in taken
        if hit and target.collects:
            _arrive(place.scope, target, place.node.index)
        if target.region != place.node.region:
            continue
        if target.needs:
            early = early or {}
            early[target.index] = early.get(target.index, False) or hit
        else:
            resolve_one(state, place, target, hit)
    for index, hit in early.items() if early else ():
        resolve_one(state, place, graph.nodes[index], hit)


def _arrive(scope: ScopeState, target: GraphNode, source: int) -> None:
    arrived = scope.arrived.setdefault(target.index, [])
    if source not in arrived:
        arrived.append(source)


def resolve_one(state: RunState, place: Place, target: GraphNode, hit: bool) -> None:
    """One incoming edge (or source) of `target`, in the place's scope, is resolved."""
    scope = place.scope
    join = scope.joins.get(target.index)
    if join is None:
        join = scope.joins[target.index] = JoinState()
    join.resolved += 1
    join.taken += hit
    if complete(target, join) and _undecided(scope, target) and (place.above is None or place.open):
        push(state, place, target.index)


def complete(target: GraphNode, join: JoinState) -> bool:
    """Whether nothing that is still to come can change the decision about `target`."""
    if not target.needs:
        return join.resolved == target.indegree
    return join.taken >= target.needs or join.taken + target.indegree - join.resolved < target.needs


def _undecided(scope: ScopeState, target: GraphNode) -> bool:
    entry = scope.nodes.get(target.ref)
    if entry is not None and entry.status is not NodeStatus.PENDING:
        return False
    return not target.needs or target.index not in scope.ready
