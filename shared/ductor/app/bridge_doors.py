"""What the use cases of workers outside work with."""

from __future__ import annotations

from dataclasses import dataclass

from ductor.app.payloads import PayloadStore
from ductor.ports import Clock, Faults, Ids, Queue, Table, Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeDoors:
    """The ports behind polls and answers."""

    table: Table
    payloads: PayloadStore
    intents: Queue
    unit: Unit
    clock: Clock
    ids: Ids
    faults: Faults
