"""Runs as a coordinator and workers would have left them, for tests of what is shown of runs."""

from __future__ import annotations

from typing import Any

import msgspec
from tests.unit.app.world import World

from ductor.app.admission import TriggerRequest
from ductor.app.headers import history_sk, run_pk
from ductor.model.attempt import Attempt, AttemptTask, attempt_sk
from ductor.model.enums import NodeStatus
from ductor.model.payload import Inline
from ductor.model.run import HistoryRow, LastTick, RunState
from ductor.model.transition import (
    Transition,
)
from ductor.ports import Item, Put

DOCUMENT: dict[str, Any] = {
    "family_slug": "order_flow",
    "steps": [
        {"ref": "shown", "type": "action", "action": "core.echo", "title": "Shown", "redaction_policy": "none"},
        {"ref": "hashed", "type": "action", "action": "core.echo"},
        {"ref": "omitted", "type": "action", "action": "core.echo", "redaction_policy": "omit"},
        {"ref": "later", "type": "wait", "args": {"duration": "1h"}},
    ],
    "edges": [
        {"source_ref": "shown", "target_ref": "hashed"},
        {"source_ref": "hashed", "target_ref": "omitted"},
        {"source_ref": "omitted", "target_ref": "later"},
    ],
}


def start(world: World, definition_id: str, **fields: Any) -> str:
    return world.triggers.trigger(world.caller, definition_id, TriggerRequest(**fields)).run_id


def change(world: World, run_id: str, **fields: Any) -> RunState:
    """Commit a state with other fields; `nodes` go into the root scope."""
    state = world.header(run_id)
    state.root.nodes.update(fields.pop("nodes", {}))
    for name, value in fields.items():
        setattr(state, name, value)
    state.root.attempts = sum(node.status is NodeStatus.SCHEDULED for node in state.root.nodes.values())
    parked = (NodeStatus.WAITING, NodeStatus.RETRYING)
    state.root.parked = sum(node.status in parked for node in state.root.nodes.values())
    world.store(state)
    return state


def claim(world: World, run_id: str, node: str, attempt: int, **fields: Any) -> None:
    """An attempt's row, as a worker writes it."""
    task = AttemptTask(run_id, world.tenant, node, attempt, attempt, "core.echo", Inline({"in": 1}))
    row = Attempt(task=task, **fields)
    world.table.write([Put(Item(pk=run_pk(run_id), sk=attempt_sk(node, attempt), body=msgspec.json.encode(row)))])


def record(world: World, run_id: str, *ticks: tuple[Transition, ...]) -> None:
    """History of some ticks: rows for all but the last, which only the header holds."""
    seq = 0
    for tick in ticks[:-1]:
        row = HistoryRow(version=1, at=1_000 + seq, seq=seq + 1, transitions=tick)
        world.table.write([Put(Item(pk=run_pk(run_id), sk=history_sk(seq + 1), body=msgspec.json.encode(row)))])
        seq += len(tick)
    last = LastTick(at=1_000 + seq, seq=seq, transitions=ticks[-1])
    change(world, run_id, seq=seq + len(ticks[-1]), last=last)
