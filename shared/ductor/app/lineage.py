"""What the dispatcher needs to know of runs that belong together: one table of doors and handlers for all of them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ductor.app.children import Children
from ductor.app.descent import Descent
from ductor.app.digests import Digests
from ductor.app.dispatch import AttemptDoor, Handler
from ductor.app.gate import Gate
from ductor.app.library import Library
from ductor.app.linked import LinkedRuns
from ductor.app.payloads import PayloadStore
from ductor.app.slot_admission import SlotAdmission
from ductor.app.slot_commands import SlotCommands
from ductor.app.successors import Successors
from ductor.model.command import CloseChild, ForwardIntent, StartLinked, StartSuccessor, TellParent
from ductor.model.enums import StepType
from ductor.ports import Clock, Ids, Queue, Table


class Lineage(msgspec.Struct, frozen=True):
    """`doors` carry out attempts of step types, `handlers` commands: see `Dispatcher`."""

    doors: Mapping[StepType, AttemptDoor]
    handlers: Mapping[type, Handler]


def lineage(
    *,
    table: Table,
    payloads: PayloadStore,
    intents: Queue,
    clock: Clock,
    ids: Ids,
    library: Library,
    gate: Gate | None = None,
) -> Lineage:
    """Children, compensations, hooks, successors, slots and digests, ready for a dispatcher. Not thread-safe."""
    descent = Descent(table=table, payloads=payloads, intents=intents, clock=clock, ids=ids)
    slots = SlotAdmission(table, payloads, clock)
    children, linked = Children(descent, library, gate, slots), LinkedRuns(descent, table)
    successors = Successors(descent)
    return Lineage(
        doors={StepType.SUBWORKFLOW: children},
        handlers={
            TellParent: children.tell_parent,
            CloseChild: children.close,
            StartLinked: linked.start,
            StartSuccessor: successors.start,
            ForwardIntent: successors.forward,
            **SlotCommands(table, clock).handlers(),
            **Digests(table, payloads, clock).handlers(),
        },
    )
