"""Operators of a simulated world who control all its runs at once, and what must hold of such a batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ductor.app.batches import JOB, OPEN_PK, STILL_MS, Batch, BatchRequest, BatchStatus
from ductor.app.headers import request_sk, run_pk
from ductor.model.lineage import derived_run_id
from ductor.ports import Index
from ductor.testing.world import World

ALL_RUNS: Final = {"started_after": "2000-01-01T00:00:00Z"}
"""A filter whose runs never change their minds about it: so they can be counted afterwards."""

MAX_BATCHES: Final = 2
_OPERATIONS: Final = ("pause", "pause", "resume", "resume", "redrive", "cancel", "terminate")


class ManyAtOnce:
    """Begins batches, and asks for the last one again."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._last: BatchRequest | None = None
        self._count = 0

    def act(self) -> None:
        """Ask for one control of every run there is."""
        rng = self._world.rng
        if not self._world.run_ids():
            return
        if self._last is None or (self._count < MAX_BATCHES and rng.random() < 0.5):
            self._count += 1
            operation = rng.choice(_OPERATIONS)
            self._last = BatchRequest(request_id=f"many{self._count}", operation=operation, filter=ALL_RUNS)
        self._world.ledger.say(f"        {self._last.operation} of all runs, {self._last.request_id}")
        batch_id = derived_run_id("batch", self._world.caller.tenant, self._last.request_id)
        self._world.batches.setdefault(batch_id, frozenset(self._world.run_ids()))
        self._world.operations.batches.begin(self._world.caller, self._last)


def batches_of(world: World) -> list[Batch]:
    """Every batch that was stored."""
    return [_decode(row.body) for row in world.table.rows() if row.pk.startswith("B#") and row.sk == JOB]


def next_look(world: World) -> int | None:
    """When the sweeper next finds a batch that stands still (epoch ms), None when all are done."""
    found = world.table.query(OPEN_PK, index=Index.I3, limit=100).items
    rows = [world.table.get(one.pk, one.sk) for one in found]
    return min((_decode(row.body).moved_at + STILL_MS for row in rows if row is not None), default=None)


def batch_faults(world: World) -> Iterator[str]:
    """A batch comes to its end, counts every run that there was once, and whoever accepted it has answered it."""
    for batch in batches_of(world):
        name = f"batch {batch.batch_id} ({batch.operation})"
        if batch.status is not BatchStatus.COMPLETED:
            yield f"{name} is {batch.status.value} at the end of all time"
            continue
        until = batch.filter.started_before
        runs = [run for run in world.run_ids() if world.state(run).origin.created_at < until]
        counted, there = batch.accepted + batch.refused, len(world.batches[batch.batch_id] & {*runs})
        # A state that could not be read when its turn came is left out.
        if counted > len(runs) or (counted < there and not world.profile.worst.fault):
            yield f"{name} counts {counted} runs; there were {there} at first, and {len(runs)} until it began"
        request = request_sk(f"batch:{batch.batch_id}")
        answered = [run for run in runs if world.table.get(run_pk(run), request) is not None]
        if len(answered) < batch.accepted:
            yield f"{name} was accepted by {batch.accepted} runs and answered by {len(answered)}"
        if not {one.run_id for one in batch.refusals} <= {*runs}:
            yield f"{name} names runs that it is not about"


_decode = msgspec.json.Decoder(Batch).decode
