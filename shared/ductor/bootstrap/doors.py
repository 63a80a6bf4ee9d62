"""What every use case works with, whatever it stands on."""

from __future__ import annotations

from dataclasses import dataclass

from ductor.app.gate import Gate
from ductor.app.library import Library
from ductor.app.payloads import PayloadStore
from ductor.ports import Clock, Faults, Ids, Queue, Table, Unit


@dataclass(frozen=True, kw_only=True)
class Doors:
    """Ports, and the readers upon them that all use cases share. `gate` None lets every run in."""

    table: Table
    payloads: PayloadStore
    library: Library
    gate: Gate | None
    intents: Queue
    unit: Unit
    clock: Clock
    ids: Ids
    faults: Faults


class NoFaults:
    """Production has no simulated crashes."""

    def at(self, point: str) -> None:
        """Nothing happens here."""
