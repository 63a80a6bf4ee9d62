"""Golden histories: runs recorded with the release that ran them, so that a later engine cannot read them differently.

A recording is never made anew for an engine that reads it differently: it stands for runs that are stored somewhere.
"""

from __future__ import annotations

import msgspec

from ductor.engine.fold import fold
from ductor.engine.graph import compile_graph
from ductor.model.definition import Definition
from ductor.model.run import HistoryRow, Origin, RunState
from ductor.steps.behaviours import BEHAVIOURS
from ductor.testing.invariants import history_rows
from ductor.testing.world import World


class Golden(msgspec.Struct, frozen=True):
    """One run: what it was started with, its history, and the state that this gave."""

    definition: Definition
    origin: Origin
    rows: tuple[HistoryRow, ...]
    state: RunState

    @property
    def kinds(self) -> frozenset[str]:
        """The types of its transitions."""
        return frozenset(type(transition).__name__ for row in self.rows for transition in row.transitions)


def read(data: bytes) -> Golden:
    """A recording. Raises msgspec.ValidationError when this release cannot read it."""
    return msgspec.json.decode(data, type=Golden)


def written(golden: Golden) -> bytes:
    """The recording as a file holds it."""
    return msgspec.json.format(msgspec.json.encode(golden), indent=1) + b"\n"


def replayed(golden: Golden) -> RunState:
    """What this engine makes of the history."""
    return fold(compile_graph(golden.definition, BEHAVIOURS), golden.origin, golden.rows)


def record(world: World, run_id: str) -> Golden:
    """The run as it is now."""
    state, graph = world.state(run_id), world.graph(run_id)
    rows = tuple(history_rows(world, state))
    return Golden(graph.definition, state.origin, rows, fold(graph, state.origin, rows))
