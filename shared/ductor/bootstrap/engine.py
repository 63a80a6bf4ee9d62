"""The coordinator and what it sends with: for every backend, and for the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ductor.app.attempts import Attempts
from ductor.app.bridge_door import BridgeDoor
from ductor.app.bridge_queue import BridgeQueue
from ductor.app.commit import Committer
from ductor.app.coordinator import Coordinator
from ductor.app.dispatch import Dispatcher, Handler, Sender
from ductor.app.event_rows import EventRows
from ductor.app.lineage import lineage
from ductor.app.resends import Resends
from ductor.app.stalls import Stalls
from ductor.app.wait_commands import WaitCommands
from ductor.app.waiters import Waiters
from ductor.bootstrap.doors import Doors
from ductor.model.command import Announce
from ductor.model.enums import StepType
from ductor.model.intent import Intent
from ductor.ports import Queue, Timers
from ductor.steps.behaviours import BEHAVIOURS


def dispatcher(
    doors: Doors, *, steps: Queue, timers: Timers, announce: Handler, tasks: Sender | None = None
) -> Dispatcher:
    """Carries out every command there is; `announce` tells what happened to runs, `tasks` is another way to `steps`."""
    lines = lineage(
        table=doors.table,
        payloads=doors.payloads,
        intents=doors.intents,
        clock=doors.clock,
        ids=doors.ids,
        library=doors.library,
        gate=doors.gate,
    )
    attempts = Attempts(doors.table)
    waits = WaitCommands(Waiters(doors.table, doors.payloads), EventRows(doors.table, doors.clock), doors.clock)
    return Dispatcher(
        intents=doors.intents,
        steps=tasks or steps,
        timers=timers,
        attempts=Resends(attempts, steps),
        clock=doors.clock,
        ids=doors.ids,
        handlers={**waits.handlers(), **lines.handlers, Announce: announce},
        doors={**lines.doors, StepType.BRIDGE: BridgeDoor(BridgeQueue(doors.table), attempts, doors.clock)},
    )


def committer(doors: Doors, make: Callable[..., Committer] = Committer) -> Committer:
    """Ticks and commits; `make` is the class, with what it takes besides."""
    return make(
        table=doors.table,
        payloads=doors.payloads,
        definitions=lambda tenant, definition_id: doors.library.load(tenant, definition_id)[1],
        behaviours=BEHAVIOURS,
        clock=doors.clock,
        faults=doors.faults,
    )


def stalls(doors: Doors, committer: Committer, dispatcher: Dispatcher) -> Stalls:
    """What becomes of runs that cannot go on."""
    return Stalls(
        table=doors.table,
        committer=committer,
        dispatcher=dispatcher,
        clock=doors.clock,
        ids=doors.ids,
        faults=doors.faults,
    )


def coordinator(
    doors: Doors,
    committer: Committer,
    dispatcher: Dispatcher,
    stalls: Stalls,
    *,
    batches: Callable[[Sequence[Intent]], None],
    cached_runs: int = 0,
) -> Coordinator:
    """The single writer of run state. It remembers so many runs between its batches."""
    return Coordinator(
        table=doors.table,
        committer=committer,
        dispatcher=dispatcher,
        stalls=stalls,
        unit=doors.unit,
        faults=doors.faults,
        cached_runs=cached_runs,
        batches=batches,
    )
