"""Bookkeeping of what operators do to single nodes: the part of `evolve` for their transitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from ductor.engine.graph import Graph
from ductor.engine.keeping import entry_of, mark, move, place_of, push, unready
from ductor.model import transition as tr
from ductor.model.enums import NodeStatus, RunStatus
from ductor.model.payload import NULL
from ductor.model.run import Fork, RunState, Tuning
from ductor.model.slots import SlotState


def _node_held(graph: Graph, state: RunState, t: tr.NodeHeld, at: int) -> None:
    node = entry_of(place_of(graph, state, t.node))
    node.held = True
    node.held_at = at


def _node_rested(graph: Graph, state: RunState, t: tr.NodeRested, at: int) -> None:
    place = place_of(graph, state, t.node)
    node = entry_of(place)
    if node.status is NodeStatus.RETRYING:
        # While the run is paused backoffs stand still, so this is what is left of it now.
        node.backoff_left = max(0, node.deadline - (state.paused_at or at))
        node.deadline = 0
    else:
        unready(state, place)
    move(state, place, node, NodeStatus.PAUSED, at)


def _node_released(graph: Graph, state: RunState, t: tr.NodeReleased, at: int) -> None:
    place = place_of(graph, state, t.node)
    node = entry_of(place)
    node.held = False
    node.held_at = 0
    if node.status is not NodeStatus.PAUSED:
        return
    if node.backoff_left is None:
        move(state, place, node, NodeStatus.PENDING, at)
        push(state, place, place.node.index)
        return
    move(state, place, node, NodeStatus.RETRYING, at)
    node.backoff_left = None
    # As for a backoff that begins during a pause: the resume adds the whole pause.
    node.deadline = t.retry_at - (at - state.paused_at if state.paused_at else 0)
    mark(state, place, node)


def _node_reset(graph: Graph, state: RunState, t: tr.NodeReset, at: int) -> None:
    place = place_of(graph, state, t.node)
    node = entry_of(place)
    move(state, place, node, NodeStatus.PENDING, at)
    node.first_attempt = node.attempt + 1
    node.resets += 1
    node.deadline = node.check_at = node.check_every = 0
    node.input = NULL
    node.connection = ""
    node.error = None
    node.backoff_left = None
    push(state, place, place.node.index)


def _node_tuned(graph: Graph, state: RunState, t: tr.NodeTuned, _at: int) -> None:
    known = state.tuned.get(t.node, Tuning())
    if t.retry is not None:
        known = msgspec.structs.replace(known, retry=t.retry)
    if t.timeout_ms is not None:
        known = msgspec.structs.replace(known, timeout_ms=t.timeout_ms)
    state.tuned = {**state.tuned, t.node: known}
    if t.deadline:
        place = place_of(graph, state, t.node)
        node = entry_of(place)
        node.deadline = t.deadline
        mark(state, place, node)


def _run_forked(_graph: Graph, state: RunState, t: tr.RunForked, _at: int) -> None:
    state.fork = Fork(t.kept, t.overrides, t.preserved, t.items)


def _node_adopted(graph: Graph, state: RunState, t: tr.NodeAdopted, _at: int) -> None:
    entry_of(place_of(graph, state, t.node)).foreign = True


def _slot_asked(_graph: Graph, state: RunState, t: tr.SlotAsked, at: int) -> None:
    state.slot = SlotState(t.key, t.lease, t.place, at, check_at=t.check_at, check_every=t.check_every)
    state.deadline = 0  # the time limit of a run counts from when it may work
    if state.status is RunStatus.RUNNING and state.ending is None:
        state.status = RunStatus.PENDING
    if not state.started_at:
        state.wake_at = 0  # until here it only said when to look whether the run was ever started


def _slot_granted(_graph: Graph, state: RunState, t: tr.SlotGranted, _at: int) -> None:
    if state.slot is not None:
        rest(state.slot)
        state.slot.held = True
    if state.started_at and state.status is RunStatus.PENDING:
        state.status = RunStatus.RUNNING
        state.deadline = t.deadline


def _slot_left(_graph: Graph, state: RunState, _t: tr.SlotLeft, _at: int) -> None:
    if state.slot is not None:
        rest(state.slot)


def _slot_checked(_graph: Graph, state: RunState, t: tr.SlotChecked, _at: int) -> None:
    if state.slot is not None:
        state.slot.check_at = t.check_at
        state.slot.check_every = t.check_every


def rest(slot: SlotState) -> None:
    """The run neither waits for the slot nor has it."""
    slot.held = False
    slot.since = slot.check_at = slot.check_every = 0


EVOLVE_CONTROLS: Final[dict[type, Callable[[Graph, RunState, Any, int], None]]] = {
    tr.RunForked: _run_forked,
    tr.NodeHeld: _node_held,
    tr.NodeRested: _node_rested,
    tr.NodeAdopted: _node_adopted,
    tr.NodeReleased: _node_released,
    tr.NodeReset: _node_reset,
    tr.NodeTuned: _node_tuned,
    tr.SlotAsked: _slot_asked,
    tr.SlotGranted: _slot_granted,
    tr.SlotLeft: _slot_left,
    tr.SlotChecked: _slot_checked,
}
