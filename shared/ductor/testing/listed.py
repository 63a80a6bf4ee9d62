"""What lists must find: every run by its status, at any moment; and once it has begun, by where it comes from."""

from __future__ import annotations

from collections.abc import Iterator

from ductor.app.commit import never_ticked
from ductor.app.headers import shard
from ductor.app.run_filter import RunFilter
from ductor.app.run_index import ended_pk, first_keys, index_sort
from ductor.app.run_list import find_runs
from ductor.model.enums import RunStatus
from ductor.model.run import RunState, effective_status
from ductor.testing.memory import MemoryTable

_PAGE = 200


def unlisted(table: MemoryTable, state: RunState) -> Iterator[str]:
    """The lists that the run is missing from. Indexes of the memory's table do not lag."""
    status, tenant = effective_status(state), state.origin.tenant
    filters = [RunFilter(status=status)] if status.terminal else [RunFilter(status=status), RunFilter(active_only=True)]
    for wanted in filters:
        if not _holds(table, tenant, wanted, state.run_id):
            yield f"is {status.value} and not in the list of such runs"
    if not never_ticked(state.last):
        keys = first_keys(state.origin)
        if status.terminal and status is not RunStatus.COMPLETED:
            ended = ended_pk(tenant, state.origin.family_slug, status, shard(state.run_id))
            keys.add((ended, index_sort(state.origin)))
        missing = keys - table.batch_get(sorted(keys)).keys()
        if missing:
            yield f"has begun and is not found by {sorted(missing)}"


def _holds(table: MemoryTable, tenant: str, wanted: RunFilter, run_id: str) -> bool:
    cursor: str | None = None
    while True:
        page = find_runs(table, tenant, wanted, _PAGE, cursor)
        if any(state.run_id == run_id for _, state in page.items):
            return True
        cursor = page.next_cursor
        if cursor is None:
            return False
