"""The rows of item scopes (`SCOPE#<n>`): read when a run touches them, written with the header that they belong to."""

from __future__ import annotations

from typing import Final

import msgspec

from ductor.app.headers import run_pk
from ductor.model.run import PageState, RunState
from ductor.ports import Item, Put, Table, UnavailableError

SCOPE_PREFIX: Final = "SCOPE#"

MAX_PAGE_BYTES: Final = 350_000
"""A page over this fails its run (DynamoDB ends items at 400 KB)."""

KEPT_PAGES: Final = 24
"""Pages that stay in memory between two ticks of a run."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(PageState).decode


class StaleRunError(UnavailableError):
    """A page was written after the header that is being looked at: start again from the header that is stored now."""


class Pages(dict[int, PageState]):
    """The pages of one run that are in memory; any other is read when it is asked for.

    A page is only valid with the header that was read before it; one that a later commit has written raises
    StaleRunError.
    """

    def __init__(self, table: Table, state: RunState) -> None:
        super().__init__(state.loaded)
        self._table = table
        self._state = state

    def __missing__(self, number: int) -> PageState:
        item = self._table.get(run_pk(self._state.run_id), scope_sk(number))
        if item is None or item.version > self._state.version:
            raise StaleRunError(f"page {number} of run {self._state.run_id} is newer than the header that was read")
        page = self[number] = _decode(item.body)
        return page


def scope_sk(number: int) -> str:
    """Sort key of a page."""
    return f"{SCOPE_PREFIX}{number:06d}"


def attach(table: Table, state: RunState) -> None:
    """Let the state read its pages on demand."""
    if state.tree is not None and not isinstance(state.loaded, Pages):
        state.loaded = Pages(table, state)


def changed(state: RunState, since_seq: int) -> list[PageState]:
    """The pages that transitions after `since_seq` have changed."""
    return [page for page in state.loaded.values() if page.seq > since_seq]


def page_put(state: RunState, page: PageState) -> Put:
    """The write of a changed page. The header's condition, in the same transaction, guards it."""
    return Put(Item(pk=run_pk(state.run_id), sk=scope_sk(page.number), version=state.version, body=_encode(page)))


def let_go(state: RunState) -> None:
    """Forget the pages that were changed longest ago, once they are stored."""
    if len(state.loaded) > KEPT_PAGES and isinstance(state.loaded, Pages):
        for number in sorted(state.loaded, key=lambda each: state.loaded[each].seq)[:-KEPT_PAGES]:
            del state.loaded[number]
