"""The chores that keep an installation tidy, for the sweeper. Each is bounded per sweep and may die at any moment."""

from __future__ import annotations

from collections.abc import Callable

from ductor.app.payloads import PayloadStore
from ductor.app.retention import Retention
from ductor.app.slot_repair import SlotSweep
from ductor.ports import Clock, Ids, Queue, Table

Chore = Callable[[], int]


def housekeeping(*, table: Table, payloads: PayloadStore, intents: Queue, clock: Clock, ids: Ids) -> tuple[Chore, ...]:
    """What every sweep ends with, wherever Ductor runs."""
    return (
        SlotSweep(table=table, intents=intents, clock=clock, ids=ids).sweep,
        Retention(table=table, payloads=payloads, clock=clock).sweep,
    )
