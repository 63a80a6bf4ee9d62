"""The use cases of an installation, each put together when it is first asked for, and imported no sooner."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from ductor.bootstrap.doors import Doors
from ductor.ports import Clock, CronSchedules, Ids, Queue, Table, Unit

if TYPE_CHECKING:
    from ductor.app.batches import Batches
    from ductor.app.bridge import Bridge
    from ductor.app.control import Controls
    from ductor.app.decisions import Decisions
    from ductor.app.events import Events
    from ductor.app.keys import Keys
    from ductor.app.operations import Operations
    from ductor.app.payloads import PayloadStore
    from ductor.app.scheduling import Scheduling
    from ductor.app.signals import Signals
    from ductor.app.successors import Continuations
    from ductor.app.sweeper import Sweeper
    from ductor.app.tenants import Tenants
    from ductor.app.trigger import Triggers

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class _UponRuns(Protocol[T_co]):
    """Makes a use case."""

    def __call__(
        self, *, table: Table, payloads: PayloadStore, intents: Queue, unit: Unit, clock: Clock, ids: Ids
    ) -> T_co: ...


class UseCases:
    """One object of each per process, upon the same doors. Ask for all that threads will share before they start."""

    def __init__(self, doors: Doors) -> None:
        self.doors = doors

    @cached_property
    def tenants(self) -> Tenants:
        from ductor.app.tenants import Tenants

        return Tenants(self.doors.table, self.doors.clock, self.doors.ids)

    @cached_property
    def keys(self) -> Keys:
        from ductor.app.keys import Keys

        return Keys(self.doors.table, self.doors.clock, self.doors.ids)

    @cached_property
    def triggers(self) -> Triggers:
        from ductor.app.trigger import Triggers

        return self._upon_runs(partial(Triggers, library=self.doors.library, gate=self.doors.gate))

    @cached_property
    def events(self) -> Events:
        from ductor.app.event_rows import EventRows
        from ductor.app.event_triggers import EventTriggers
        from ductor.app.events import Events
        from ductor.app.waiters import Waiters

        doors = self.doors
        return Events(
            waiters=Waiters(doors.table, doors.payloads),
            rows=EventRows(doors.table, doors.clock),
            intents=doors.intents,
            unit=doors.unit,
            clock=doors.clock,
            ids=doors.ids,
            faults=doors.faults,
            starts=EventTriggers(table=doors.table, library=doors.library, triggers=self.triggers, gate=doors.gate),
        )

    @cached_property
    def controls(self) -> Controls:
        from ductor.app.control import Controls

        doors = self.doors
        return Controls(table=doors.table, intents=doors.intents, clock=doors.clock, ids=doors.ids)

    @cached_property
    def batches(self) -> Batches:
        from ductor.app.batches import Batches

        doors = self.doors
        return Batches(
            table=doors.table, controls=self.controls, intents=doors.intents, clock=doors.clock, ids=doors.ids
        )

    @cached_property
    def operations(self) -> Operations:
        from ductor.app.node_controls import NodeControls
        from ductor.app.operations import Operations
        from ductor.app.reset import Resets

        doors = self.doors
        nodes = NodeControls(
            table=doors.table, library=doors.library, intents=doors.intents, clock=doors.clock, ids=doors.ids
        )
        resets = self._upon_runs(partial(Resets, library=doors.library))
        return Operations(nodes, resets, self.batches)

    @cached_property
    def signals(self) -> Signals:
        from ductor.app.signals import Signals

        return self._upon_runs(Signals)

    @cached_property
    def decisions(self) -> Decisions:
        from ductor.app.decisions import Decisions

        return self._upon_runs(partial(Decisions, library=self.doors.library))

    @cached_property
    def continuations(self) -> Continuations:
        from ductor.app.successors import Continuations

        return self._upon_runs(Continuations)

    def bridge(self, pause: Callable[[int], bool], look_ms: int) -> Bridge:
        """What workers outside talk to. A waiting poll looks again after `look_ms` at the latest, through `pause`."""
        from ductor.app.bridge import Bridge
        from ductor.app.bridge_doors import BridgeDoors

        doors = self._upon_runs(partial(BridgeDoors, faults=self.doors.faults))
        return Bridge(doors, pause=pause, look_ms=look_ms)

    def scheduling(self, outside: CronSchedules | None = None) -> Scheduling:
        """Schedules that `outside` calls for; None where this process fires by itself."""
        from ductor.app.scheduling import Scheduling

        return Scheduling(
            table=self.doors.table,
            triggers=self.triggers,
            library=self.doors.library,
            clock=self.doors.clock,
            ids=self.doors.ids,
            outside=outside,
        )

    def sweeper(self, scheduling: Scheduling, *also: Callable[[], int]) -> Sweeper:
        """The net under everything, with all chores; `also` is what the ground it stands on asks for."""
        from ductor.app.housekeeping import housekeeping
        from ductor.app.sweeper import Sweeper

        doors = self.doors
        tidying = housekeeping(
            table=doors.table, payloads=doors.payloads, intents=doors.intents, clock=doors.clock, ids=doors.ids
        )
        return Sweeper(
            table=doors.table,
            intents=doors.intents,
            clock=doors.clock,
            ids=doors.ids,
            also=(*tidying, self.batches.sweep, *scheduling.chores, *also),
        )

    def _upon_runs(self, make: _UponRuns[T]) -> T:
        """What asks things of runs stands upon the same six doors."""
        return make(
            table=self.doors.table,
            payloads=self.doors.payloads,
            intents=self.doors.intents,
            unit=self.doors.unit,
            clock=self.doors.clock,
            ids=self.doors.ids,
        )
