"""Tells the world outside what happened to runs. Events carry references and no values of the run.

Told after the commit, and again whenever the commit's commands are sent again: at least once, each event always under
the same id. What the bus does not take is kept in rows, which the sweeper tells: a bus that is away holds up no run.
Only what an operator removes from the intents queue in that moment is not told. That a run has stalled, or goes on, is
such a row from the start, in the write that makes it so: who cannot read a state cannot send its commands.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

import msgspec

from ductor.app.headers import SHARDS, read_what_is_readable, shard, sort_time, tenant_of
from ductor.engine.graph import Graph
from ductor.model.causation import RUN_EVENT
from ductor.model.command import Announce, Announced, Command
from ductor.model.errors import clip
from ductor.model.intent import Intent
from ductor.model.json import JSON
from ductor.model.run import Origin, RunState
from ductor.model.waiting import Event
from ductor.ports import Bus, Delete, Item, Put, Table, Telling, UnavailableError

TRIES: Final = 2
"""How often what the bus did not take is sent at once."""

KEPT_MS: Final = 14 * 86_400_000
PER_SWEEP: Final = 1_000
_PAGE: Final = 100
_MAX_TEXT: Final = 512


Heard = Callable[[str, Collection[str]], Collection[str]]
"""Of a tenant's events, by their names, those that a definition listens to."""


class Untold:
    """Events that the bus did not take: rows `UT#<shard>`/`<at>#<event id>`, removed when they are told."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def keep(self, tellings: Sequence[Telling]) -> None:
        """Durable when this returns; keeping one again changes nothing."""
        for telling in tellings:
            self._table.write((untold_row(telling),))

    def tell(self, bus: Bus) -> int:
        """Tell a bounded number of them, oldest first; how many. An outage ends it until the next sweep."""
        told = 0
        for number in range(SHARDS):
            while told < PER_SWEEP:
                items = self._table.query(_partition(number), limit=_PAGE).items
                done = self._tell(bus, items)
                told += done
                if not items or done < len(items):
                    break
        return told

    def _tell(self, bus: Bus, items: Sequence[Item]) -> int:
        if not items:
            return 0
        tellings = [msgspec.json.decode(item.body, type=Telling) for item in items]
        try:
            failed = set(bus.put(tellings))
        except UnavailableError:
            return 0
        taken = [item for place, item in enumerate(items) if place not in failed]
        for item in taken:
            self._table.write((Delete(item.pk, item.sk),))
        return len(taken)


class Lifecycle:
    """The handler of `Announce`, for `Dispatcher`. Without `untold`, what the bus does not take is tried again as

    all commands are, and until then the run waits. Without `heard` all are told as if a definition listened.
    """

    def __init__(self, bus: Bus, untold: Untold | None = None, heard: Heard | None = None) -> None:
        self._bus = bus
        self._untold = untold
        self._heard = heard

    def announce(self, _graph: Graph, state: RunState, command: Command, _mark: str) -> Iterable[Intent]:
        """Tell what a commit says has happened."""
        self.tell(tellings(state, command))
        return ()

    def tell(self, events: Sequence[Telling]) -> None:
        """Put them on the bus, in order. Raises UnavailableError when they are neither there nor kept."""
        pending = self._judged(events)
        try:
            for _ in range(TRIES):
                failed = set(self._bus.put(pending))
                pending = [telling for place, telling in enumerate(pending) if place in failed]
                if not pending:
                    return
        except UnavailableError:
            if self._untold is None:
                raise
        if self._untold is None:
            raise UnavailableError(f"the bus did not take {len(pending)} events")
        self._untold.keep(pending)

    def _judged(self, events: Sequence[Telling]) -> Sequence[Telling]:
        """The events, with what nobody listens to marked; one look for each tenant, after all of them have happened."""
        if self._heard is None:
            return events
        names: dict[str, set[str]] = {}
        for one in events:
            names.setdefault(one.tenant, set()).add(one.event.event_name)
        heard = {tenant: self._heard(tenant, asked) for tenant, asked in names.items()}
        return [msgspec.structs.replace(one, unheard=one.event.event_name not in heard[one.tenant]) for one in events]


def tellings(state: RunState, command: Command) -> list[Telling]:
    """The events of an `Announce` of the run's last commit."""
    assert isinstance(command, Announce)
    return [_telling(state, told) for told in command.told]


def untold_row(telling: Telling) -> Put:
    """The write that keeps an event for the sweeper to tell."""
    event = telling.event
    row = Item(
        pk=_partition(shard(event.event_id)),
        sk=f"{sort_time(event.received_at)}#{event.event_id}",
        body=msgspec.json.encode(telling),
        ttl=(event.received_at + KEPT_MS) // 1000,
    )
    return Put(row)


def stall_row(head: Item, what: str, since: int, now: int, reason: str) -> Put:
    """The write that has it told that the run of a header has stalled, or goes on: `what` has happened.

    `since` tells one stall of a run from another. Of a header that nobody can read, the event names the run only.
    """
    state = read_what_is_readable(head) or _nameless(head)
    event = Event(
        event_name=RUN_EVENT + what,
        event_id=f"{state.run_id}:{what}:{since}",
        payload={**_payload(state, state.seq), "reason": clip(reason, _MAX_TEXT)},
        received_at=now,
        depth=state.origin.depth,
    )
    return untold_row(Telling(tenant_of(head), event))


def _nameless(head: Item) -> RunState:
    run_id = head.pk.removeprefix("R#")
    return RunState(origin=Origin(run_id, tenant_of(head), "", "", 0, 0))


def _partition(number: int) -> str:
    return f"UT#{number}"


def _telling(state: RunState, told: Announced) -> Telling:
    event = Event(
        event_name=told.name,
        event_id=f"{state.run_id}:{told.seq}",
        payload=_payload(state, told.seq),
        received_at=state.updated_at,
        depth=state.origin.depth,
    )
    return Telling(state.origin.tenant, event)


def _payload(state: RunState, seq: int) -> dict[str, JSON]:
    """What listeners may route on. Outputs and inputs are read over the API, by whoever may."""
    origin = state.origin
    error = state.error
    return {
        "run_id": state.run_id,
        "status": state.status.value,
        "transition_seq": seq,
        "kind": origin.kind,
        "definition_id": origin.definition_id,
        "family_slug": origin.family_slug,
        "definition_version": origin.definition_version,
        "environment": origin.environment,
        "journey_id": origin.journey_id,
        "root_run_id": origin.root_run_id or origin.run_id,
        "parent_run_id": origin.parent_run_id or None,
        "source_run_id": origin.source_run_id or None,
        "successor_run_id": state.successor.run_id if state.successor is not None else None,
        "subject_type": origin.subject_type,
        "subject_id": origin.subject_id,
        "correlation_labels": [{"key": key, "id": label_id} for key, label_id in origin.labels],
        "error": None if error is None else {"code": error.code, "message": clip(error.message, _MAX_TEXT)},
        "reason": clip(state.reason, _MAX_TEXT),
    }
