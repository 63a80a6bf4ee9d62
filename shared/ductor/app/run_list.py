"""Lists of runs, newest first, merged from the shards of an index. Lists may lag behind by the index's delay."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice
from typing import Final

import msgspec

from ductor.app.cursors import binding, page_size, seal, unseal
from ductor.app.headers import (
    HEAD,
    SHARDS,
    is_expiring,
    read_what_is_readable,
    run_pk,
    sort_time,
    starting_pk,
    starting_sort,
    status_pk,
    tenant_of,
    tenant_pk,
)
from ductor.app.run_filter import ACTIVE, RunFilter, matches
from ductor.app.run_index import (
    ENDED,
    JOURNEY,
    PARENT,
    ROOT,
    SCHEDULE,
    SUBJECT,
    TYPE,
    alike,
    attribute_pk,
    label_pk,
    origin_pk,
)
from ductor.model.enums import RunStatus
from ductor.model.run import RunState
from ductor.ports import Index, Item, Table

_ILL: Final = frozenset(status for status in RunStatus if status.terminal and status is not RunStatus.COMPLETED)

MAX_SCANNED: Final = 1_000
"""Runs looked at for one page. A page may then be short, or even empty, and still have a next one."""

_CHUNK: Final = 100


class FoundRuns(msgspec.Struct, frozen=True):
    """The header rows of one page, and where the next one begins."""

    items: tuple[tuple[Item, RunState], ...]
    next_cursor: str | None


def find_runs(table: Table, tenant: str, wanted: RunFilter, limit: int | None, cursor: str | None) -> FoundRuns:
    """One page of runs. The index only finds them: what is tested and shown is the header as it is now."""
    size = page_size(limit)
    bound_to = binding(tenant, ["runs", msgspec.to_builtins(wanted)])
    keys = _newest_first(table, tenant, wanted, unseal(bound_to, cursor), max(8, size // 4))
    found: list[tuple[Item, RunState]] = []
    scanned = 0
    while scanned < MAX_SCANNED:
        chunk = list(islice(keys, min(_CHUNK, size + 1)))
        headers = _headers(table, chunk)
        for place, (sort, run_id) in enumerate(chunk):
            header = headers.get(run_id)
            if header is not None and matches(wanted, header[1]):
                found.append(header)
            if len(found) == size:
                more = place + 1 < len(chunk) or next(keys, None) is not None
                return FoundRuns(tuple(found), seal(bound_to, sort) if more else None)
        scanned += len(chunk)
        if len(chunk) < min(_CHUNK, size + 1):
            return FoundRuns(tuple(found), None)
    return FoundRuns(tuple(found), seal(bound_to, chunk[-1][0]))


def _newest_first(
    table: Table, tenant: str, wanted: RunFilter, before: str | None, first: int
) -> Iterator[tuple[str, str]]:
    """(sort key, run id) of candidates, merged over all shards, without repetitions."""
    low = sort_time(wanted.started_after)
    high = f"{sort_time(wanted.started_before - 1)}#~" if wanted.started_before else "~"
    high = min(high, before) if before else high
    places = list(_partitions(tenant, wanted))
    streams = [_stream(table, pk, index, low, high, first) for pk, index in places]
    if any(pk == status_pk(tenant, RunStatus.PENDING, 0) for pk, _ in places):
        streams += [_starting(table, tenant, number, low, high) for number in range(SHARDS)]
    streams += [_alone(table, tenant, run_id, low, high) for run_id in {wanted.root_run_id, wanted.journey_id} - {""}]
    last = before
    for sort in heapq.merge(*streams, reverse=True):
        # A run that is just changing its status may stand in two partitions for a moment.
        if sort != last:
            last = sort
            yield sort, sort.split("#", 1)[1]


def _partitions(tenant: str, wanted: RunFilter) -> Iterator[tuple[str, Index | None]]:
    """Where the candidates are: in the partition of what names the fewest runs."""
    statuses = (wanted.status,) if wanted.status else ACTIVE if wanted.active_only else ()
    few = [(name, value) for name, value in _origins(wanted) if value]
    rare = bool(statuses) and wanted.status is not RunStatus.COMPLETED
    family = wanted.workflow_type or wanted.schedule
    if rare and few and few[0][0] in (TYPE, SCHEDULE):
        # Few runs are alive, and of those that ended otherwise than well each family's are apart.
        few = [(ENDED, f"{alike(family)}#{wanted.status}")] if wanted.status in _ILL else []
    for number in range(SHARDS):
        if wanted.labels:
            yield label_pk(tenant, *wanted.labels[0], number), None
        elif wanted.attributes:
            yield attribute_pk(tenant, *wanted.attributes[0], number), None
        elif wanted.journey_id and few[0][0] == JOURNEY:
            # Of the trees of a journey only the roots have a row of their own.
            yield origin_pk(tenant, JOURNEY, wanted.journey_id, number), None
            yield origin_pk(tenant, ROOT, wanted.journey_id, number), None
        elif few:
            yield origin_pk(tenant, *few[0], number), None
        elif not statuses or wanted.status is RunStatus.COMPLETED:
            yield tenant_pk(tenant, number), Index.I2
        else:
            yield from ((status_pk(tenant, status, number), Index.I1) for status in statuses)


def _origins(wanted: RunFilter) -> tuple[tuple[str, str], ...]:
    """What a run may be found by, the most telling first."""
    return (
        (PARENT, wanted.parent_run_id),
        (ROOT, wanted.root_run_id),
        (JOURNEY, wanted.journey_id),
        (SUBJECT, wanted.subject_id),
        (SCHEDULE, alike(wanted.schedule)),
        (TYPE, alike(wanted.workflow_type)),
    )


def _alone(table: Table, tenant: str, run_id: str, low: str, high: str) -> Iterator[str]:
    """A run that is its own root: it has no row that says so."""
    if not run_id.isascii():
        return
    item = table.get(run_pk(run_id), HEAD)
    if item is not None and tenant_of(item) == tenant and item.i2 is not None and low <= item.i2[1] <= high:
        yield item.i2[1]


def _stream(table: Table, pk: str, index: Index | None, low: str, high: str, first: int) -> Iterator[str]:
    """The keys of one partition; few at first, because a page needs only some of each."""
    cursor: str | None = None
    limit = first
    while True:
        page = table.query(pk, low=low, high=high, index=index, limit=limit, cursor=cursor, descending=True)
        limit = min(limit * 4, _CHUNK)
        for item in page.items:
            pair = (pk, item.sk) if index is None else item.i1 if index is Index.I1 else item.i2
            if pair is not None:
                yield pair[1]
        cursor = page.cursor
        if cursor is None:
            return


def _starting(table: Table, tenant: str, number: int, low: str, high: str) -> Iterator[str]:
    """The keys of a tenant's runs before their first tick, among those of all tenants: few, but for a backlog.

    Of a backlog the newest are looked at; what lies behind is listed when it has begun.
    """
    cursor: str | None = None
    for _ in range(MAX_SCANNED // _CHUNK):
        page = table.query(
            starting_pk(number), low=low, high=high, index=Index.I3, limit=_CHUNK, cursor=cursor, descending=True
        )
        yield from (sort for item in page.items if (sort := starting_sort(item, tenant)) is not None)
        cursor = page.cursor
        if cursor is None:
            return


def _headers(table: Table, chunk: list[tuple[str, str]]) -> dict[str, tuple[Item, RunState]]:
    rows = table.batch_get([(run_pk(run_id), HEAD) for _, run_id in chunk])
    found: dict[str, tuple[Item, RunState]] = {}
    for item in rows.values():
        state = None if is_expiring(item) else read_what_is_readable(item)
        if state is not None:
            found[state.run_id] = item, state
    return found
