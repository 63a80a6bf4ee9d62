"""What operators have beyond the controls of a whole run, wired once for every backend."""

from __future__ import annotations

from ductor.app.library import Library
from ductor.app.node_controls import NodeControls
from ductor.ports import Clock, Ids, Queue, Table


class Operations:
    """`nodes` controls single nodes. Safe to use from several threads."""

    def __init__(self, *, table: Table, library: Library, intents: Queue, clock: Clock, ids: Ids) -> None:
        self.nodes = NodeControls(table=table, library=library, intents=intents, clock=clock, ids=ids)
