"""What operators have beyond the controls of a whole run, wired once for every backend."""

from __future__ import annotations

from ductor.app.batches import Batches
from ductor.app.control import Controls
from ductor.app.library import Library
from ductor.app.node_controls import NodeControls
from ductor.app.payloads import PayloadStore
from ductor.app.reset import Resets
from ductor.ports import Clock, Ids, Queue, Table, Unit


class Operations:
    """`nodes` controls single nodes, `resets` forks runs, `batches` controls many. Safe to use from several threads."""

    def __init__(
        self,
        *,
        table: Table,
        payloads: PayloadStore,
        library: Library,
        intents: Queue,
        unit: Unit,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self.nodes = NodeControls(table=table, library=library, intents=intents, clock=clock, ids=ids)
        controls = Controls(table=table, intents=intents, clock=clock, ids=ids)
        self.batches = Batches(table=table, controls=controls, intents=intents, clock=clock, ids=ids)
        self.resets = Resets(
            table=table, payloads=payloads, library=library, intents=intents, unit=unit, clock=clock, ids=ids
        )
