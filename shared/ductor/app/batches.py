"""One control over many runs, as a job that is tracked: a row with a cursor that only one advance at a time can move.

Messages in the queue of intents, in a group of its own, move it. Whoever handles one may die at any line: request ids
derive from the batch, so that going over a page again asks nothing twice, and a page is counted in the write that
moves the cursor past it. The sweeper finds a batch whose message was lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from ductor.app.access import Caller, Scope, require
from ductor.app.control import OPERATIONS, Controls, check_texts, operation_hash
from ductor.app.dispatch import send_all
from ductor.app.headers import sort_time
from ductor.app.refusals import invalid, not_found, precondition
from ductor.app.run_filter import RunFilter, read_filter
from ductor.app.run_list import find_runs
from ductor.model.errors import RefusedError
from ductor.model.intent import Intent, IntentKind
from ductor.model.lineage import derived_run_id
from ductor.ports import Clock, Expect, Ids, Index, Item, Outgoing, Put, Queue, Table, UnavailableError

PAGE: Final = 100
PAGES_AT_ONCE: Final = 2
"""Pages that the request itself goes through; messages to whoever handles intents do the rest."""

PAGES_PER_MESSAGE: Final = 2
STILL_MS: Final = 60_000
"""A batch that has not moved for so long has lost its message."""

MAX_TOLD: Final = 20
"""Refusals of single runs that a batch remembers; all are counted."""

JOB: Final = "JOB"
OPEN_PK: Final = "BATCHES"
_NEVER: Final = RunFilter()


class BatchStatus(StrEnum):
    """The states of a batch."""

    RUNNING = "running"
    COMPLETED = "completed"


class Refused(msgspec.Struct, frozen=True):
    """A run that refused the control, and with which code."""

    run_id: str
    code: str


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """A job. `accepted` runs have the control enqueued, `refused` would not take it. Times are epoch ms.

    `environments_write` are those of the key that began it: of runs elsewhere nothing is done, counted or told.
    """

    batch_id: str
    tenant: str
    operation: str
    reason: str
    filter: RunFilter
    request_hash: str
    actor: str
    environments_write: frozenset[str]
    created_at: int
    status: BatchStatus = BatchStatus.RUNNING
    cursor: str | None = None
    accepted: int = 0
    refused: int = 0
    refusals: tuple[Refused, ...] = ()
    finished_at: int = 0
    moved_at: int = 0


class BatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A control and the runs that it is for; `filter` has the names of the list's query."""

    request_id: str
    operation: str
    filter: Mapping[str, str]
    reason: str = ""


class Batches:
    """Begins, advances and shows batches. Safe to use from several threads and processes."""

    def __init__(self, *, table: Table, controls: Controls, intents: Queue, clock: Clock, ids: Ids) -> None:
        self._table = table
        self._controls = controls
        self._intents = intents
        self._clock = clock
        self._ids = ids

    def begin(self, caller: Caller, request: BatchRequest) -> Batch:
        """Store the job and begin with it. The runs are those that match and were admitted before now.

        Idempotent by `request_id` per tenant. Refuses with INVALID_ARGUMENT `FILTER_REQUIRED` a filter that names
        nothing, `OPERATION_UNKNOWN`; FAILED_PRECONDITION `REQUEST_ID_REUSED`.
        """
        require(caller, Scope.RUN_WRITE)
        check_texts(request.request_id, request.reason)
        if request.operation not in OPERATIONS:
            raise invalid("OPERATION_UNKNOWN", f"one of {', '.join(OPERATIONS)}", "operation")
        now = self._clock.now_ms()
        wanted = read_filter(request.filter.items(), now, "filter.")
        if wanted == _NEVER:
            raise invalid("FILTER_REQUIRED", "say which runs; a filter that names nothing would mean all", "filter")
        digest = operation_hash(request.operation, "", dict(request.filter))
        until = min(wanted.started_before or now + 1, now + 1)
        batch = Batch(
            batch_id=derived_run_id("batch", caller.tenant, request.request_id),
            tenant=caller.tenant,
            operation=request.operation,
            reason=request.reason,
            filter=msgspec.structs.replace(wanted, started_before=until),
            request_hash=digest,
            actor=caller.key_id,
            environments_write=frozenset(caller.environments_write),
            created_at=now,
            moved_at=now,
        )
        lost = self._table.write((Put(_item(batch, 1), Expect.ABSENT),))
        if lost is not None:
            return self._repeated(caller, batch)
        return self._advance(batch, 1)

    def get(self, caller: Caller, batch_id: str) -> Batch:
        """How far a batch is. NOT_FOUND for an unknown one and another tenant's alike.

        And for one of a key that may write to more environments: it names runs there.
        """
        require(caller, Scope.RUN_WRITE)
        item = self._table.get(_pk(batch_id), JOB) if 0 < len(batch_id) <= 64 and batch_id.isascii() else None
        batch = _decode(item.body) if item is not None else None
        if batch is None or batch.tenant != caller.tenant or not all(map(caller.may_write, batch.environments_write)):
            raise not_found("BATCH_NOT_FOUND", "this tenant has no such batch", "batch_id")
        return batch

    def deliver(self, intents: Sequence[Intent]) -> None:
        """A message says that a batch is to go on: some pages, then the next message.

        Told of a version that is no longer the row's, somebody else has moved the cursor and may have died before the
        next message was sent: it is sent again, under the id that lets the queue drop it when it was. Raises
        UnavailableError; then the message comes again.
        """
        item = self._table.get(_pk(intents[0].run_id), JOB)
        batch = _decode(item.body) if item is not None else None
        if item is None or batch is None or batch.status is not BatchStatus.RUNNING:
            return
        version = item.version
        if any(intent.body == version for intent in intents):
            batch, version = self._pages(batch, version, PAGES_PER_MESSAGE)
        if batch.status is BatchStatus.RUNNING:
            self._tell(batch, version)

    def sweep(self) -> int:
        """Send a message for every batch that stands still: its last one was lost. How many there were."""
        page = self._table.query(OPEN_PK, index=Index.I3, limit=PAGE)
        resumed = 0
        for found in page.items:
            item = self._table.get(found.pk, found.sk)
            batch = _decode(item.body) if item is not None else None
            still = batch is not None and batch.status is BatchStatus.RUNNING
            if item is not None and batch is not None and still and batch.moved_at + STILL_MS <= self._clock.now_ms():
                self._tell(batch, item.version, again=self._ids.token(6))
                resumed += 1
        return resumed

    def _tell(self, batch: Batch, version: int, again: str = "") -> None:
        """Ask whoever handles intents to go on. One id per version: the queue keeps a second chain from forming."""
        mark = f"{batch.batch_id}:{version}{again}"
        intent = Intent(mark, batch.batch_id, IntentKind.BATCH, self._clock.now_ms(), body=version)
        send_all(self._intents, [Outgoing(msgspec.json.encode(intent), batch.batch_id, mark)])

    def _repeated(self, caller: Caller, batch: Batch) -> Batch:
        item = self._table.get(_pk(batch.batch_id), JOB)
        known = _decode(item.body) if item is not None else batch
        if known.request_hash != batch.request_hash or not all(map(caller.may_write, known.environments_write)):
            raise precondition("REQUEST_ID_REUSED", "this request_id stands for another batch", "request_id")
        return known

    def _advance(self, batch: Batch, version: int) -> Batch:
        """What the request itself does. Storage that cannot be reached is no refusal: the job is durable."""
        try:
            batch, version = self._pages(batch, version, PAGES_AT_ONCE)
            if batch.status is BatchStatus.RUNNING:
                self._tell(batch, version)
        except UnavailableError:
            pass  # the sweeper goes on from the stored cursor
        return batch

    def _pages(self, batch: Batch, version: int, pages: int) -> tuple[Batch, int]:
        """So many pages, each counted once. Stops where somebody else was faster; what is stored as far as known."""
        for _ in range(pages):
            if batch.status is not BatchStatus.RUNNING:
                break
            after = self._page(batch)
            if self._table.write((Put(_item(after, version + 1), version),)) is not None:
                break
            batch, version = after, version + 1
        return batch, version

    def _page(self, batch: Batch) -> Batch:
        found = find_runs(self._table, batch.tenant, batch.filter, PAGE, batch.cursor)
        caller = Caller(
            batch.actor, batch.tenant, frozenset({Scope.RUN_WRITE}), environments_write=batch.environments_write
        )
        # A key that is bound to environments learns nothing of runs elsewhere, not even how many there are.
        own = [header for header, state in found.items if caller.may_write(state.origin.environment)]
        refusals = self._controls.send_each(caller, own, batch.operation, f"batch:{batch.batch_id}", batch.reason)
        refused = [Refused(run_id, _code(refusal)) for run_id, refusal in refusals.items()]
        done, now = found.next_cursor is None, self._clock.now_ms()
        return msgspec.structs.replace(
            batch,
            cursor=found.next_cursor,
            accepted=batch.accepted + len(own) - len(refused),
            refused=batch.refused + len(refused),
            refusals=(*batch.refusals, *refused)[:MAX_TOLD],
            status=BatchStatus.COMPLETED if done else BatchStatus.RUNNING,
            moved_at=now,
            finished_at=now if done else 0,
        )


def _code(refusal: RefusedError) -> str:
    return refusal.violations[0].code if refusal.violations else refusal.error_code.value


def _pk(batch_id: str) -> str:
    return f"B#{batch_id}"


def _item(batch: Batch, version: int) -> Item:
    is_open = batch.status is BatchStatus.RUNNING
    i3 = (OPEN_PK, f"{sort_time(batch.created_at)}#{batch.batch_id}") if is_open else None
    return Item(pk=_pk(batch.batch_id), sk=JOB, version=version, body=_encode(batch), i3=i3)


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Batch).decode
