"""What a run costs on AWS so far, as an estimate from its own counts. Reads only."""

from __future__ import annotations

import zlib
from collections import deque
from typing import Final

import msgspec

from ductor.app.access import Caller, Scope, require
from ductor.app.descent import LINK_PREFIX, Link
from ductor.app.estimate import FULL_BATCH, Facts, estimate
from ductor.app.headers import HEAD, read_header, run_pk, tenant_of
from ductor.app.library import Library
from ductor.app.model_bill import ModelLine, ModelUses, model_bill
from ductor.app.prices import Line, Prices, Usage, bill, total
from ductor.app.refusals import precondition, run_not_found
from ductor.model.run import RunState
from ductor.model.usage import Used
from ductor.ports import Item, Table

MAX_RUNS: Final = 500
"""Runs below one that are added up. A larger tree is cut, and says so."""

NOT_INCLUDED: Final = (
    "the services that actions call; models that AI steps ask have an amount of their own where their price is set",
    "definitions that listen to events about this run: the function that starts their runs, and those",
    "reads over the API: lists, snapshots, this answer",
    "storage of rows, payloads and logs over time",
    "retries by AWS itself, lost races and cold starts",
    "what a stack costs while nothing runs: alarms, metrics, empty polls of the queues, the sweeper",
    "the free tier, discounts and taxes",
)

_links = msgspec.json.Decoder(Link)


class Estimate(msgspec.Struct, frozen=True):
    """Amounts in the price list's currency: of all lines, and each."""

    amount: float
    lines: tuple[Line, ...]


class RunCost(msgspec.Struct, frozen=True, kw_only=True):
    """`at_load` is with full batches, `alone` when nothing else runs: the bill lies between them.

    `below` adds up, alike, the runs that this one asked for. `final`: the run has ended. `models` are no part of the
    estimates; `models_truncated`: there are more attempts of AI steps than were looked at.
    """

    run_id: str
    currency: str
    region: str
    prices_as_of: str
    final: bool
    at_load: Estimate
    alone: Estimate
    runs_below: int
    below_at_load: float
    below_alone: float
    truncated: bool
    models: tuple[ModelLine, ...]
    models_below: tuple[ModelLine, ...]
    models_truncated: bool
    counted: dict[str, int]
    not_included: tuple[str, ...] = NOT_INCLUDED


class RunCosts:
    """Estimates for runs of the caller's tenant."""

    def __init__(self, table: Table, prices: Prices, library: Library) -> None:
        self._table = table
        self._library = library
        self._prices = prices

    def read(self, caller: Caller, run_id: str) -> RunCost:
        """The run's own estimate, and the sum of the runs below it.

        NOT_FOUND for an unknown run and for another tenant's alike; FAILED_PRECONDITION `STATE_UNREADABLE` for one
        that this release cannot read.
        """
        require(caller, Scope.WORKFLOW_READ)
        item, state, used = self._readable(caller, run_id)
        below, truncated = self._below(caller, run_id)
        sums = [sum(total(bill(self._usage(other, batch), self._prices)) for other in below) for batch in BATCHES]
        models = ModelUses(self._table, self._library)
        own, theirs = models.of((state,)), models.of(_counted(other)[0] for other in below)
        at_load, alone = (self._estimate(self._usage(item, batch)) for batch in BATCHES)
        return RunCost(
            run_id=run_id,
            currency=self._prices.currency,
            region=self._prices.region,
            prices_as_of=self._prices.as_of,
            final=state.status.terminal,
            at_load=at_load,
            alone=alone,
            runs_below=len(below),
            below_at_load=sums[0],
            below_alone=sums[1],
            truncated=truncated,
            models=model_bill(own, self._prices),
            models_below=model_bill(theirs, self._prices),
            models_truncated=models.truncated,
            counted={name: getattr(used, name) for name in SHOWN},
        )

    def _readable(self, caller: Caller, run_id: str) -> tuple[Item, RunState, Used]:
        item = self._item(caller, run_id) if 0 < len(run_id) <= 64 and run_id.isascii() else None
        if item is None:
            raise run_not_found()
        try:
            state, used = _counted(item)
        except (msgspec.DecodeError, msgspec.ValidationError) as fault:
            raise precondition("STATE_UNREADABLE", "this release cannot read the run's state") from fault
        if not caller.may_read(state.origin.environment):
            raise run_not_found()
        return item, state, used

    def _estimate(self, usage: Usage) -> Estimate:
        lines = bill(usage, self._prices)
        return Estimate(total(lines), tuple(line for line in lines if line.quantity))

    def _usage(self, item: Item, batch: int) -> Usage:
        state, used = _counted(item)
        packed = len(zlib.compress(item.body, 6)) / max(1, len(item.body))
        origin = state.origin
        called = not (origin.parent_run_id or origin.scheduled_at or origin.event is not None)
        return estimate(used, Facts(called, packed), batch)

    def _item(self, caller: Caller, run_id: str) -> Item | None:
        item = self._table.get(run_pk(run_id), HEAD)
        return item if item is not None and tenant_of(item) == caller.tenant else None

    def _below(self, caller: Caller, run_id: str) -> tuple[list[Item], bool]:
        """The headers of all runs that this one led to, nearest first; those that cannot be read are left out."""
        found: list[Item] = []
        waiting, seen = deque([run_id]), {run_id}
        while waiting and len(found) < MAX_RUNS:
            page = self._table.query(run_pk(waiting.popleft()), prefix=LINK_PREFIX, limit=MAX_RUNS)
            for other in (_links.decode(row.body).run_id for row in page.items):
                item = self._item(caller, other) if other not in seen else None
                seen.add(other)
                if item is not None and _readable(item):
                    found.append(item)
                    waiting.append(other)
        return found[:MAX_RUNS], bool(waiting) or len(found) > MAX_RUNS


BATCHES: Final = (FULL_BATCH, 1)
SHOWN: Final = ("commits", "intents", "tasks", "ran_ms", "wakes", "far_wakes", "blobs", "events")


def _counted(item: Item) -> tuple[RunState, Used]:
    """The state, and its counts with the header itself, which cannot count itself before it is written."""
    state = read_header(item)
    used = state.last.used
    used.headers += len(item.body) if used.commits else 0
    return state, used


def _readable(item: Item) -> bool:
    try:
        read_header(item)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return False
    return True
