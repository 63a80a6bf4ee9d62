"""The bus of a simulated world, a definition that listens to the runs of the others, and what both must come to."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from ductor.app.events import Events
from ductor.app.history import read_history
from ductor.app.library import Library, family_item
from ductor.app.subscriptions import Subscriptions, matches
from ductor.engine.announcing import announcements
from ductor.model.definition import Definition, DefinitionRow, Step, Trigger
from ductor.model.enums import StepType
from ductor.model.lineage import derived_run_id
from ductor.model.waiting import event_digest
from ductor.ports import Put, Table, Telling
from ductor.testing.chaos import Chaos
from ductor.testing.faulty import Faulty

if TYPE_CHECKING:
    from ductor.testing.world import World

LISTENER: Final = "listener"
_ENDS: Final = ("ductor.run.completed", "ductor.run.failed", "ductor.run.*")
_OTHERS: Final = f'EVENT.payload.family_slug != "{LISTENER}"'


class Listening(Faulty):
    """`ports.Bus`: refuses entries, loses replies, hands what it took to the event use case and keeps it in `told`."""

    def __init__(self, events: Callable[[], Events], chaos: Chaos) -> None:
        super().__init__(chaos)
        self._events = events
        self.told: list[Telling] = []

    def put(self, tellings: Sequence[Telling]) -> tuple[int, ...]:
        self._before("put on the bus")
        failed: list[int] = []
        for place, telling in enumerate(tellings):
            if self._chaos.strikes(self._chaos.chances.partial_send):
                failed.append(place)
                continue
            self._events().hear(telling.tenant, telling.event)
            self.told.append(telling)
        self._after("put on the bus")
        return tuple(failed)


def listen(table: Table, row: DefinitionRow) -> None:
    """Let a family that was stored without a publication be started by events."""
    library = Library(table)
    Subscriptions(table, library).cover(row)
    family, version = library.family(row.tenant, row.family_slug)
    newest = msgspec.structs.replace(family, newest_id=row.id, newest_in={**family.newest_in, "": row.id})
    table.write([Put(family_item(row.tenant, newest, version + 1))])


def listener(rng: random.Random) -> Definition:
    """A definition that is started by what happens to others' runs; once in a while also by its own."""
    step = Step(ref="heard", type=StepType.DATAFLOW, args={"operation": "project", "project": {"v": "TRIGGER.payload"}})
    own = rng.random() < 0.1
    trigger = Trigger((_ENDS[0] if own else rng.choice(_ENDS),), condition="" if own else _OTHERS)
    return Definition(family_slug=LISTENER, steps=(step,), triggers=(trigger,))


def unheard(world: World) -> Iterator[str]:
    """At the end of all time everything has been told, under the ids that it has, and nothing else."""
    told = {telling.event.event_id: telling.event for telling in world.bus.told}
    happened = {name_id[1]: name_id[0] for run_id in world.run_ids() for name_id in _happened(world, run_id)}
    happened |= dict(_stalls(world, told))
    for event_id in happened.keys() - told.keys():
        yield f"nobody was told of {happened[event_id]} {event_id}"
    for event_id in told.keys() - happened.keys():
        yield f"{told[event_id].event_name} {event_id} was told and never happened"
    yield from _unstarted(world)


def _happened(world: World, run_id: str) -> Iterator[tuple[str, str]]:
    state = world.state(run_id)
    transitions = [entry.transition for entry in read_history(world.table, state)]
    for command in announcements(state, transitions):
        yield from ((one.name, f"{run_id}:{one.seq}") for one in command.told)


def _stalls(world: World, told: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Of each stall, and of what ended it: a redrive, or else a terminate, which leaves a run that has ended."""
    for (run_id, since), live in world.ledger.stalls.items():
        again = f"{run_id}:redriven:{since}"
        yield f"{run_id}:stalled:{since}", "ductor.run.stalled"
        if live or (live is False and again in told):
            yield again, "ductor.run.redriven"


def _unstarted(world: World) -> Iterator[str]:
    """Each event that the listener listens to has given it one run, or a recorded refusal."""
    definition = world.listener
    if definition is None:
        return
    (trigger,) = definition.triggers
    refused = {one.run_id for one in world.events.refused_starts(world.caller, 200, None).items}
    wanted: set[str] = set()
    for telling in world.bus.told:
        event = telling.event
        own = not trigger.condition or event.payload["family_slug"] != LISTENER
        if own and any(matches(pattern, event.event_name) for pattern in trigger.patterns):
            digest = event_digest(event.event_name, event.correlation_key, event.event_id)
            wanted.add(derived_run_id("event", telling.tenant, LISTENER, "", digest))
    begun = {run_id for run_id in world.run_ids() if _by_event(world, run_id)}
    yield from (f"run {run_id} was to be started by an event" for run_id in wanted - begun - refused)
    yield from (f"run {run_id} was started by no event" for run_id in begun - wanted)


def _by_event(world: World, run_id: str) -> bool:
    """Whether an event started it, and not a run that an event started."""
    origin = world.state(run_id).origin
    return origin.event is not None and not origin.source_run_id and not origin.parent_run_id
