"""Reads a run's history in order: the stored rows, and the last tick's transitions that only the header holds yet."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ductor.app.headers import HISTORY_PREFIX, history_sk, run_pk
from ductor.model.run import HistoryRow, RunState
from ductor.model.transition import Transition
from ductor.ports import Item, Table

_decoder = msgspec.json.Decoder(HistoryRow)


class Numbered(msgspec.Struct, frozen=True):
    """A transition with its number and time (epoch ms)."""

    seq: int
    at: int
    transition: Transition


def read_history(table: Table, state: RunState, after: int = 0) -> Iterator[Numbered]:
    """Transitions with numbers above `after`, without a gap, up to the state given.

    The header keeps the last tick's transitions until the next one is committed, because their row is written only
    then. Rows beyond the header that was read are left out: what is shown fits the state it is shown with.
    """
    expected = after + 1
    for row in _rows(table, state.run_id, expected):
        for entry in _entries(row.seq, row.at, row.transitions):
            if expected <= entry.seq <= state.seq:
                expected = entry.seq + 1
                yield entry
    for entry in _entries(state.last.seq + 1, state.last.at, state.last.transitions):
        if entry.seq >= expected:
            yield entry


def read_row(item: Item) -> HistoryRow:
    """A stored commit. Raises DecodeError, ValidationError for what this release cannot read."""
    return _decoder.decode(item.body)


def recent_history(table: Table, run_id: str, limit: int) -> list[HistoryRow]:
    """Up to `limit` commits before the last one, the oldest of them first."""
    page = table.query(run_pk(run_id), prefix=HISTORY_PREFIX, limit=limit, descending=True)
    return [_decoder.decode(item.body) for item in reversed(page.items)]


def _entries(first: int, at: int, transitions: tuple[Transition, ...]) -> Iterator[Numbered]:
    return (Numbered(seq, at, transition) for seq, transition in enumerate(transitions, first))


def _rows(table: Table, run_id: str, seq: int) -> Iterator[HistoryRow]:
    """Rows from the one that holds `seq` on; a row's key is the number of its first transition."""
    pk = run_pk(run_id)
    start = table.query(pk, low=HISTORY_PREFIX, high=history_sk(seq), limit=1, descending=True).items
    low = start[0].sk if start else HISTORY_PREFIX
    cursor: str | None = None
    while True:
        page = table.query(pk, low=low, high=history_sk(9_999_999_999), cursor=cursor)
        for item in page.items:
            yield _decoder.decode(item.body)
        cursor = page.cursor
        if cursor is None:
            return
