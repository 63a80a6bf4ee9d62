"""What operators have beyond the controls of a whole run."""

from __future__ import annotations

from dataclasses import dataclass

from ductor.app.batches import Batches
from ductor.app.node_controls import NodeControls
from ductor.app.reset import Resets


@dataclass(frozen=True, slots=True)
class Operations:
    """`nodes` controls single nodes, `resets` forks runs, `batches` controls many. Safe to use from several threads."""

    nodes: NodeControls
    resets: Resets
    batches: Batches
