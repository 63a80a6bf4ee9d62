"""Bookkeeping: what a transition does to the state. No rules live here, and it never fails on a transition we wrote.

`evolve` takes ownership of the state that it is given and changes it in place, so that a tick costs what it touches
and not the size of the run. Whoever needs the old state decodes it again.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappush
from typing import Any, Final

from ductor.engine.evolve_controls import EVOLVE_CONTROLS, rest
from ductor.engine.evolve_items import DRAIN_CHECK_MS, EVOLVE_ITEMS
from ductor.engine.graph import Graph
from ductor.engine.keeping import entry_of, mark, move, place_of, resolve, unready
from ductor.engine.revive import revive
from ductor.engine.scopes import Place
from ductor.model import transition as tr
from ductor.model.enums import NodeStatus, RunStatus
from ductor.model.lineage import Linked, Successor, child_key
from ductor.model.run import NodeState, RunState, Signal
from ductor.model.transition import Transition

CONSUMED_MS: Final = 86_400_000
MAX_CONSUMED: Final = 500
"""Of the events of the last day a run remembers so many that it has consumed."""


def evolve(graph: Graph, state: RunState, transition: Transition, at: int) -> RunState:
    """Apply one transition that happened at `at` (epoch ms). Returns the same, changed state."""
    state.seq += 1
    state.updated_at = at
    _EVOLVE[type(transition)](graph, state, transition, at)
    return state


def _run_started(graph: Graph, state: RunState, t: tr.RunStarted, at: int) -> None:
    if state.status is RunStatus.PENDING:
        state.status = RunStatus.RUNNING
    state.started_at = at
    state.deadline = t.deadline
    state.wake_at = 0  # until here it only said when to look whether the run was ever started
    state.context = state.origin.seed_context
    for index in graph.roots:
        heappush(state.root.ready, index)


def _run_paused(_graph: Graph, state: RunState, _t: tr.RunPaused, at: int) -> None:
    state.status = RunStatus.PAUSED
    state.paused_at = at


def _run_resumed(_graph: Graph, state: RunState, _t: tr.RunResumed, at: int) -> None:
    for node in state.root.nodes.values():
        if node.status is NodeStatus.RETRYING:
            node.deadline += at - state.paused_at
    if state.tree is not None:
        state.tree.paused_ms += at - state.paused_at
    state.status = RunStatus.RUNNING
    state.paused_at = 0


def _run_redriven(graph: Graph, state: RunState, t: tr.RunRedriven, _at: int) -> None:
    state.status = RunStatus.RUNNING
    state.ending = state.error = None
    state.reason = ""
    state.duties = ()
    state.linked = {}
    state.finished_at = 0
    state.deadline = t.deadline
    for index in revive(graph, state, state.root, graph.nodes):
        heappush(state.root.ready, index)


def _run_ending(_graph: Graph, state: RunState, t: tr.RunEnding, at: int) -> None:
    state.ending = t.status
    state.status = RunStatus.CANCELLING if t.status is RunStatus.CANCELLED else RunStatus.RUNNING
    state.paused_at = 0
    state.error = t.error
    state.reason = t.reason
    state.merged_into = t.into
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
    state.duties = t.duties
    if state.slot is not None:
        rest(state.slot)
    if owes(state):
        state.wake_at = at + DUTY_CHECK_MS


def owes(state: RunState) -> bool:
    """Whether somebody must still be told, started or closed on behalf of a run that has ended."""
    return bool(state.duties) or any(policy != ABANDON for policy in state.children.values())


ABANDON: Final = "abandon"
"""The parent_close_policy of a child that outlives its parent."""

DUTY_CHECK_MS: Final = 60_000
"""How soon after its end a run first looks whether the others know."""


def _child_ended(_graph: Graph, state: RunState, t: tr.ChildEnded, _at: int) -> None:
    state.children.pop(t.key, None)
    _rest(state)


def _linked_planned(_graph: Graph, state: RunState, t: tr.LinkedPlanned, at: int) -> None:
    state.linked[t.kind] = Linked(state.seq, t.plan, t.undoes)
    if state.status.terminal:
        state.duties = (*state.duties, t.kind)
        state.wake_at = state.wake_at or at + DUTY_CHECK_MS


def _successor_planned(_graph: Graph, state: RunState, t: tr.SuccessorPlanned, _at: int) -> None:
    state.successor = Successor(t.run_id, t.context, t.discard)


def _intent_forwarded(_graph: Graph, _state: RunState, _t: tr.IntentForwarded, _at: int) -> None:
    """It changes the successor, not this run."""


def _late_effect(_graph: Graph, state: RunState, t: tr.LateEffect, _at: int) -> None:
    state.late[t.node] = t.output


def _duty_done(_graph: Graph, state: RunState, t: tr.DutyDone, _at: int) -> None:
    state.duties = tuple(duty for duty in state.duties if duty != t.duty)
    _rest(state)


def _rest(state: RunState) -> None:
    """A run that has ended and owes nothing needs no wake-up any more."""
    if state.status.terminal and not owes(state):
        state.wake_at = 0


def _node_scheduled(graph: Graph, state: RunState, t: tr.NodeScheduled, at: int) -> None:
    place = place_of(graph, state, t.node)
    node = entry_of(place)
    _enter(state, place, node, at)
    move(state, place, node, NodeStatus.SCHEDULED, at)
    node.attempt = t.attempt
    node.generation = t.generation
    node.input = t.input
    node.connection = t.connection
    node.scheduled_at = at
    node.worker = ""
    node.deadline = t.deadline
    if t.child:
        state.children[child_key(t.node, t.attempt, t.generation)] = t.child
    node.check_at = t.check_at
    node.check_every = t.check_every
    mark(state, place, node)


def _enter(state: RunState, place: Place, node: NodeState, at: int) -> None:
    if node.status is NodeStatus.PENDING:
        unready(state, place)
        node.entered_at = at
        node.started_at = at


def _node_parked(graph: Graph, state: RunState, t: tr.NodeParked, at: int) -> None:
    place = place_of(graph, state, t.node)
    node = entry_of(place)
    _enter(state, place, node, at)
    move(state, place, node, NodeStatus.WAITING, at)
    node.generation = t.generation
    node.deadline = t.deadline
    node.input = t.input
    node.check_at = t.check_at
    node.check_every = t.check_every
    mark(state, place, node)


def _node_retrying(graph: Graph, state: RunState, t: tr.NodeRetrying, at: int) -> None:
    place = place_of(graph, state, t.node)
    node = entry_of(place)
    move(state, place, node, NodeStatus.RETRYING, at)
    node.error = t.error
    # A backoff that begins during a pause runs on from the resume: as if it had begun with the pause.
    node.deadline = t.retry_at - (at - state.paused_at if state.paused_at else 0)
    node.check_at = node.check_every = 0
    mark(state, place, node)


def _node_completed(graph: Graph, state: RunState, t: tr.NodeCompleted, at: int) -> None:
    place = place_of(graph, state, t.node)
    node = entry_of(place)
    _enter(state, place, node, at)
    move(state, place, node, NodeStatus.COMPLETED, at)
    node.output = t.output
    node.error = t.error
    node.no_route = t.no_route
    if t.context is not None:
        state.context = t.context
    if t.attributes:
        state.attributes = {**state.attributes, **t.attributes}
    resolve(graph, state, place, t.taken)


def _node_failed(graph: Graph, state: RunState, t: tr.NodeFailed, at: int) -> None:
    place = place_of(graph, state, t.node)
    node = entry_of(place)
    _enter(state, place, node, at)
    move(state, place, node, t.status, at)
    node.output = t.output
    node.error = t.error
    node.handled = t.handled
    if t.handled:
        resolve(graph, state, place, t.taken)


def _node_skipped(graph: Graph, state: RunState, t: tr.NodeSkipped, at: int) -> None:
    place = place_of(graph, state, t.node)
    node = entry_of(place)
    unready(state, place)
    move(state, place, node, NodeStatus.SKIPPED, at)
    resolve(graph, state, place, t.taken)


def _node_cancelled(graph: Graph, state: RunState, t: tr.NodeCancelled, at: int) -> None:
    place = place_of(graph, state, t.node)
    node = entry_of(place)
    if node.status is NodeStatus.PENDING:
        unready(state, place)
    node.handled = t.final
    move(state, place, node, NodeStatus.CANCELLED, at)


def _node_checked(graph: Graph, state: RunState, t: tr.NodeChecked, _at: int) -> None:
    place = place_of(graph, state, t.node)
    node = entry_of(place)
    node.check_at = t.check_at
    node.check_every = t.check_every
    mark(state, place, node)


def _node_watched(graph: Graph, state: RunState, t: tr.NodeWatched, _at: int) -> None:
    place = place_of(graph, state, t.node)
    node = entry_of(place)
    node.worker = t.worker
    node.deadline = t.deadline
    mark(state, place, node)


def _node_overdue(graph: Graph, state: RunState, t: tr.NodeOverdue, _at: int) -> None:
    entry_of(place_of(graph, state, t.node)).deadline = 0


def _attempt_abandoned(_graph: Graph, _state: RunState, _t: tr.AttemptAbandoned, _at: int) -> None:
    """The node itself changes by what follows."""


def _event_consumed(_graph: Graph, state: RunState, t: tr.EventConsumed, at: int) -> None:
    kept = {mark: since for mark, since in state.consumed.items() if since > at - CONSUMED_MS and mark != t.mark}
    newest = list(kept.items())[1 - MAX_CONSUMED :]
    state.consumed = {**dict(newest), t.mark: at}


def _signal_kept(_graph: Graph, state: RunState, t: tr.SignalKept, _at: int) -> None:
    state.signals = (*state.signals, Signal(t.id, t.name, t.payload, t.at))


def _signal_taken(_graph: Graph, state: RunState, t: tr.SignalTaken, _at: int) -> None:
    state.signals = tuple(signal for signal in state.signals if signal.id != t.id)


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
    tr.NodeWatched: _node_watched,
    tr.NodeOverdue: _node_overdue,
    tr.AttemptAbandoned: _attempt_abandoned,
    tr.EventConsumed: _event_consumed,
    tr.SignalKept: _signal_kept,
    tr.SignalTaken: _signal_taken,
    tr.CheckpointReached: _checkpoint_reached,
    tr.WakeArmed: _wake_armed,
    tr.OperatorAudited: _operator_audited,
    tr.ChildEnded: _child_ended,
    tr.LinkedPlanned: _linked_planned,
    tr.SuccessorPlanned: _successor_planned,
    tr.IntentForwarded: _intent_forwarded,
    tr.DutyDone: _duty_done,
    tr.LateEffect: _late_effect,
    **EVOLVE_ITEMS,
    **EVOLVE_CONTROLS,
}
