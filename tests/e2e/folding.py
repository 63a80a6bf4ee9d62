"""Reads a data file that no server has open any more: every run's history must fold to its stored state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from ductor.adapters.local.database import Database
from ductor.adapters.local.table import SqliteTable
from ductor.app.headers import HEAD, HISTORY_PREFIX, SHARDS, read_header, run_pk, tenant_pk
from ductor.app.library import Library
from ductor.app.pages import SCOPE_PREFIX
from ductor.engine.fold import fold
from ductor.engine.graph import compile_graph
from ductor.model.run import HistoryRow, LastTick, PageState, RunState
from ductor.ports import Index
from ductor.steps.behaviours import BEHAVIOURS


class Folded(msgspec.Struct):
    """All runs of a tenant: their states, and those whose history says something else (or has a gap)."""

    states: list[RunState] = []
    faults: list[str] = []


def fold_all(data: Path, tenant: str) -> Folded:
    """Fold every run of the file in `data`."""
    found = Folded()
    with closing(Database(data / "ductor.db")) as database:
        table = SqliteTable(database)
        for run_id in _run_ids(table, tenant):
            state = _state(table, run_id)
            found.states.append(state)
            found.faults += _differences(table, state)
    return found


def _run_ids(table: SqliteTable, tenant: str) -> Iterator[str]:
    for shard in range(SHARDS):
        cursor: str | None = None
        while True:
            page = table.query(tenant_pk(tenant, shard), index=Index.I2, limit=500, cursor=cursor)
            yield from (item.pk.removeprefix("R#") for item in page.items)
            cursor = page.cursor
            if cursor is None:
                break


def _state(table: SqliteTable, run_id: str) -> RunState:
    item = table.get(run_pk(run_id), HEAD)
    assert item is not None
    state = read_header(item)
    state.version = item.version
    if state.tree is not None:
        rows = table.query(run_pk(run_id), prefix=SCOPE_PREFIX, limit=10_000).items
        pages = [msgspec.json.decode(row.body, type=PageState) for row in rows]
        state.loaded = {page.number: page for page in pages}
    return state


def _differences(table: SqliteTable, state: RunState) -> Iterator[str]:
    definition = Library(table).load(state.origin.tenant, state.origin.definition_id)[1]
    items = table.query(run_pk(state.run_id), prefix=HISTORY_PREFIX, limit=10_000).items
    rows = [msgspec.json.decode(item.body, type=HistoryRow) for item in items]
    rows = [row for row in rows if row.seq + len(row.transitions) - 1 <= state.last.seq]
    rows.append(HistoryRow(state.version, state.last.at, state.last.seq + 1, state.last.transitions))
    folded = fold(compile_graph(definition, BEHAVIOURS), state.origin, rows)
    for name in RunState.__struct_fields__:
        stored = LastTick() if name == "last" else getattr(state, name)
        if getattr(folded, name) != stored:
            yield f"run {state.run_id}: {name} is not what its history says"
