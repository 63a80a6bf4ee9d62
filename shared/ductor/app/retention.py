"""Removes runs whose tenant keeps them no longer, with everything that is theirs. A family of runs goes leaves first.

A run is first taken out of every list and closed to intents, by one conditional write; from then on it counts as gone,
and its rows and values follow in an order in which a crash loses nothing: the header goes last, and finds the rest.
Nothing of that needs to happen at once, so it is deleted plainly; only the first and the last write have a condition.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

import msgspec

from ductor.app.allowance import Allowance
from ductor.app.descent import LINK_PREFIX, Link
from ductor.app.entitlements import RETENTION_PK, EntitlementStore, retention_item
from ductor.app.headers import (
    HEAD,
    HISTORY_PREFIX,
    SHARDS,
    expiring_pk,
    is_expiring,
    is_stalled,
    is_unborn,
    mark_expiring,
    mark_removed,
    read_header,
    removed_pk,
    run_pk,
    sort_time,
    tenant_pk,
    unborn_pk,
)
from ductor.app.history import read_row
from ductor.app.idempotency import IDEM, admitted_run, idempotency_pk
from ductor.app.payloads import PayloadStore
from ductor.app.run_index import first_keys, later_keys
from ductor.engine.evolve import owes
from ductor.model.run import RunState
from ductor.ports import Clock, Delete, Index, Item, Put, Table

DAY_MS: Final = 86_400_000
UNBORN_MS: Final = 3_600_000
"""How long after a fork was begun it is held to have died. One that is still at it then begins anew."""

QUIET_MS: Final = 1_200_000
"""How long the header of one stays when all else has gone: until then no sweep is at its values that began before. A

fork that is asked for again has the same id, so what it stores could be taken for what is to be removed.
"""

AGAIN_MS: Final = 3_600_000
"""How long after it has looked at all runs of a tenant the next look begins."""

MAX_OPS_PER_SWEEP: Final = 5_000
"""Rows looked at or removed by one sweep. What is left is gone on with by the next."""

PAGE: Final = 100
_END: Final = "~"
_AFTER_HISTORY: Final = HISTORY_PREFIX + _END
_log = logging.getLogger("ductor")


class Walk(msgspec.Struct, frozen=True, omit_defaults=True):
    """Body of `N#<tenant>`/`RETENTION`: where a look at a tenant's old runs has got to.

    Rows of earlier releases name places in another index: such a look begins anew.
    """

    shard: int = 0
    after: str | None = None


class Retention:
    """A chore of the sweeper. It may run anywhere, also twice at once."""

    def __init__(self, *, table: Table, payloads: PayloadStore, clock: Clock) -> None:
        self._table = table
        self._payloads = payloads
        self._plans = EntitlementStore(table)
        self._clock = clock

    def sweep(self) -> int:
        """Go on with what is being removed, then look for more; how many runs have gone."""
        budget = Allowance(self._clock, MAX_OPS_PER_SWEEP)
        self._forget_unborn(budget)
        self._forget_removed(budget)
        gone = sum(self._remove(item, budget) for item in self._expiring(budget))
        page = self._table.query(RETENTION_PK, high=sort_time(self._clock.now_ms()), index=Index.I3, limit=PAGE)
        for found in page.items:
            if budget.left <= 0:
                break
            item = self._table.get(found.pk, found.sk)
            if item is not None:
                gone += self._walk(item, budget)
        return gone

    def _forget_unborn(self, budget: Allowance) -> None:
        """Forks that were refused, or whose maker died: from now on they are runs to be removed."""
        until = self._clock.now_ms() - UNBORN_MS
        for number in range(SHARDS):
            page = self._table.query(unborn_pk(number), high=sort_time(until), index=Index.I3, limit=PAGE)
            for found in page.items:
                item = self._table.get(found.pk, HEAD) if budget.left > 0 else None
                if item is not None and is_unborn(item):
                    budget.spend(1)
                    self._table.write((Put(mark_expiring(item, self._clock.now_ms()), item.version),))

    def _forget_removed(self, budget: Allowance) -> None:
        """Nobody removes anything of these any more: they may be begun again."""
        until = self._clock.now_ms() - QUIET_MS
        for number in range(SHARDS):
            page = self._table.query(removed_pk(number), high=sort_time(until), index=Index.I3, limit=PAGE)
            for found in page.items:
                item = self._table.get(found.pk, HEAD) if budget.left > 0 else None
                if item is not None and item.i3 == found.i3:
                    budget.spend(1)
                    self._table.write((Delete(item.pk, HEAD, item.version),))

    def _expiring(self, budget: Allowance) -> Iterator[Item]:
        for number in range(SHARDS):
            page = self._table.query(expiring_pk(number), index=Index.I3, limit=PAGE)
            for found in page.items:
                item = self._table.get(found.pk, HEAD) if budget.left > 0 else None
                if item is not None and is_expiring(item) and item.i3 == found.i3:
                    yield item

    def _walk(self, item: Item, budget: Allowance) -> int:
        """Through a tenant's old runs, page by page, oldest first. Nearly all of them have ended."""
        tenant = item.pk.removeprefix("N#")
        days = self._plans.get(tenant).retention_days
        if not days:
            self._table.write((Delete(item.pk, item.sk, item.version),))
            return 0
        until = self._clock.now_ms() - days * DAY_MS
        walk, gone = msgspec.json.decode(item.body, type=Walk), 0
        while budget.left > 0 and walk.shard < SHARDS:
            budget.spend(1)
            page = self._table.query(
                tenant_pk(tenant, walk.shard), high=sort_time(until), index=Index.I2, limit=PAGE, cursor=walk.after
            )
            gone += sum(self._expire(found.pk, until, budget) for found in page.items)
            if budget.left <= 0:
                break  # whoever of this page was not reached is looked at again
            walk = Walk(walk.shard, page.cursor) if page.cursor else Walk(walk.shard + 1)
        done = walk.shard >= SHARDS
        at = self._clock.now_ms() + AGAIN_MS if done else 0
        body = msgspec.json.encode(Walk() if done else walk)
        self._table.write((Put(retention_item(tenant, at, body, item.version + 1), item.version),))
        return gone

    def _expire(self, pk: str, until: int, budget: Allowance) -> int:
        """Begin with one run, if nobody needs it any more."""
        budget.spend(1)
        item = self._table.get(pk, HEAD) if budget.left > 0 else None
        if item is None or not self._may_go(item, until, budget):
            return 0
        fenced = mark_expiring(item, self._clock.now_ms())
        if self._table.write((Put(fenced, item.version),)) is not None:
            return 0  # somebody has done something with it, so it is judged anew
        return self._remove(fenced, budget)

    def _may_go(self, item: Item, until: int, budget: Allowance) -> bool:
        if is_stalled(item) or is_expiring(item):
            return False
        try:
            state = read_header(item)
        except (msgspec.DecodeError, msgspec.ValidationError):
            return False
        if not state.status.terminal or state.finished_at > until or owes(state):
            return False
        return not self._is_awaited(state) and not self._leads(state, budget)

    def _is_awaited(self, state: RunState) -> bool:
        """Whether the run that asked for this one still lives: it looks here how things are."""
        asker = state.origin.parent_run_id
        item = self._table.get(run_pk(asker), HEAD) if asker else None
        if item is None or is_expiring(item):
            return False
        try:
            return not read_header(item).status.terminal
        except (msgspec.DecodeError, msgspec.ValidationError):
            return True

    def _leads(self, state: RunState, budget: Allowance) -> bool:
        """Whether runs that this one asked for are still there; those that go on in its place do not count."""
        for page in self._pages(run_pk(state.run_id), LINK_PREFIX, LINK_PREFIX + _END):
            links = [msgspec.json.decode(item.body, type=Link) for item in page]
            asked = [(run_pk(link.run_id), HEAD) for link in links if not link.successor]
            budget.spend(len(asked))
            if self._table.batch_get(asked):
                return True
        return False

    def _pages(self, pk: str, low: str, high: str) -> Iterator[tuple[Item, ...]]:
        cursor: str | None = None
        while True:
            page = self._table.query(pk, low=low, high=high, cursor=cursor, limit=PAGE)
            yield page.items
            cursor = page.cursor
            if cursor is None:
                return

    def _remove(self, item: Item, budget: Allowance) -> int:
        """Everything of a run that is closed: 1 when it has gone, 0 when the rest is left to the next sweep.

        What is left is the cursor: whoever goes on finds nothing of what has gone, and reads none of it again. A run
        that this release cannot read stays closed, and keeps no other from being removed.
        """
        budget.spend(1)
        try:
            state = read_header(item)
            self._forget_key(state)
            if not (self._remove_blobs(state.run_id, budget) and self._remove_rows(item.pk, budget)):
                return 0
            if not self._remove_history(state, budget):
                return 0
        except (msgspec.DecodeError, msgspec.ValidationError):
            _log.exception("%s is to be removed and cannot be read", item.pk)
            return 0
        self._table.remove(sorted(first_keys(state.origin) | later_keys(state.origin, state.last.transitions)))
        born = state.version > 0
        last = Delete(item.pk, HEAD, item.version) if born else Put(self._marked(item), item.version)
        self._table.write((last,))
        return 1

    def _marked(self, item: Item) -> Item:
        return mark_removed(item, self._clock.now_ms())

    def _forget_key(self, state: RunState) -> None:
        """The idempotency key is free again: it is kept for a day after the end, and at least that has passed."""
        if not state.origin.idempotency:
            return
        pk = idempotency_pk(state.origin.tenant, state.origin.definition_id, state.origin.idempotency)
        row = self._table.get(pk, IDEM)
        if row is not None and admitted_run(row) == state.run_id:
            self._table.write((Delete(pk, IDEM, row.version),))

    def _remove_blobs(self, run_id: str, budget: Allowance) -> bool:
        """Large values. Each belongs to one run, whose id its key begins with; whoever takes one over has a copy."""
        while budget.left > 0:
            removed = self._payloads.remove_some(run_id, PAGE)
            budget.spend(removed)
            if removed < PAGE:
                return True
        return False

    def _remove_rows(self, pk: str, budget: Allowance) -> bool:
        """All rows of the run's partition but its header and its history."""
        for low, high in (("", HISTORY_PREFIX), (_AFTER_HISTORY, _END)):
            for page in self._pages(pk, low, high):
                if budget.left <= 0:
                    return False
                doomed = [(row.pk, row.sk) for row in page if row.sk != HEAD]
                budget.spend(len(doomed))
                self._table.remove(doomed)
        return True

    def _remove_history(self, state: RunState, budget: Allowance) -> bool:
        """The history, and before each part of it the rows that this part enters the run under: only it names them."""
        for page in self._pages(run_pk(state.run_id), HISTORY_PREFIX, _AFTER_HISTORY):
            if budget.left <= 0:
                return False
            told = [transition for row in page for transition in read_row(row).transitions]
            listed = sorted(later_keys(state.origin, told))
            budget.spend(len(listed) + len(page))
            self._table.remove(listed)
            self._table.remove([(row.pk, row.sk) for row in page])
        return True
