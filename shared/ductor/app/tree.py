"""The tree of runs that one trigger led to: children, compensations, hooks and successors. Reads only."""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec

from ductor.app.access import Caller, Scope, require
from ductor.app.descent import LINK_PREFIX, Link
from ductor.app.headers import HEAD, read_what_is_readable, run_pk, tenant_of
from ductor.app.refusals import run_not_found
from ductor.model.lineage import WORKFLOW
from ductor.model.run import RunState, effective_status
from ductor.ports import Table

MAX_RUNS: Final = 500
"""Runs of one answer. A larger tree is cut, and says so."""

_MAX_ID_LENGTH: Final = 64
_links = msgspec.json.Decoder(Link)


class TreeRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run; its `relation` to `asked_by` is `root`, `child`, `compensation`, `hook` or `successor`. Times: epoch ms.

    `node` is the subworkflow step that a child belongs to.
    """

    run_id: str
    relation: str
    asked_by: str
    node: str
    workflow_type: str
    definition_version: int
    status: str
    nesting_depth: int
    created_at: int
    finished_at: int | None


class RunTree(msgspec.Struct, frozen=True):
    """Runs in the order of their distance from the root."""

    root_run_id: str
    runs: tuple[TreeRun, ...]
    truncated: bool


class RunTrees:
    """Reads trees of runs, always the caller's own tenant's."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def read(self, caller: Caller, run_id: str) -> RunTree:
        """The whole tree that a run belongs to. NOT_FOUND for an unknown run and for another tenant's alike."""
        require(caller, Scope.WORKFLOW_READ)
        own = self._state(caller, run_id) if 0 < len(run_id) <= _MAX_ID_LENGTH and run_id.isascii() else None
        if own is None:
            raise run_not_found()
        root = own.origin.root_run_id or run_id
        if self._state(caller, root) is None:
            root = run_id  # of the tree only what hangs on this run can still be found
        found: list[TreeRun] = []
        waiting: deque[tuple[str, Link]] = deque([("", Link(root))])
        while waiting and len(found) < MAX_RUNS:
            asker, link = waiting.popleft()
            state = self._state(caller, link.run_id)
            if state is None:
                continue
            found.append(_shown(state, asker, link))
            waiting.extend((link.run_id, other) for other in self._links(link.run_id))
        return RunTree(root, tuple(found), truncated=bool(waiting))

    def _state(self, caller: Caller, run_id: str) -> RunState | None:
        item = self._table.get(run_pk(run_id), HEAD)
        return read_what_is_readable(item) if item is not None and tenant_of(item) == caller.tenant else None

    def _links(self, run_id: str) -> list[Link]:
        page = self._table.query(run_pk(run_id), prefix=LINK_PREFIX, limit=MAX_RUNS)
        return [_links.decode(item.body) for item in page.items]


def _shown(state: RunState, asker: str, link: Link) -> TreeRun:
    origin = state.origin
    return TreeRun(
        run_id=state.run_id,
        relation=_relation(asker, link),
        asked_by=asker,
        node=origin.parent_node,
        workflow_type=origin.family_slug,
        definition_version=origin.definition_version,
        status=effective_status(state).value,
        nesting_depth=origin.nesting_depth,
        created_at=origin.created_at,
        finished_at=state.finished_at or None,
    )


def _relation(asker: str, link: Link) -> str:
    if not asker:
        return "root"
    if link.successor:
        return "successor"
    return "child" if link.kind == WORKFLOW else link.kind
