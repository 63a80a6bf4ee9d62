"""History folded: the proof that the stored state is what its transitions say, and the base of reset."""

from __future__ import annotations

from collections.abc import Iterable

from ductor.engine.evolve import evolve
from ductor.engine.graph import Graph
from ductor.model.run import HistoryRow, LastTick, Origin, RunState


def fold(graph: Graph, origin: Origin, rows: Iterable[HistoryRow]) -> RunState:
    """The state after `rows`, from the first on. Raises ValueError for a gap or a repetition in their numbers."""
    state = RunState(origin=origin, updated_at=origin.created_at)
    for row in rows:
        if row.seq != state.seq + 1:
            raise ValueError(f"history has a row of transition {row.seq} after {state.seq}")
        for transition in row.transitions:
            evolve(graph, state, transition, row.at)
        state.version = row.version
    state.last = LastTick()
    return state
