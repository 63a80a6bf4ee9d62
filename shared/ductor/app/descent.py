"""Admission of runs that other runs ask for: children, compensations, hooks, successors. Each exactly once.

Their ids derive from who asks, so asking again finds the run that is there and only sends its start again.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ductor.app.dispatch import intent_message, send_all
from ductor.app.headers import HEAD, header_item, is_expiring, is_stalled, read_header, run_pk
from ductor.app.payloads import PayloadStore
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import JSON
from ductor.model.lineage import WORKFLOW
from ductor.model.payload import Inline, Payload
from ductor.model.run import Origin, RunState
from ductor.ports import Clock, Expect, Ids, Item, Put, Queue, Table

START_WAKE_MS: Final = 60_000
LINK_PREFIX: Final = "L#"
MAX_SUCCESSORS: Final = 1_000
"""How many moves to a successor are followed at once; a run that continues more often is found at the next look."""


class Link(msgspec.Struct, frozen=True, omit_defaults=True):
    """Row `R#<run>`/`L#<other run>`: a run that this one asked for."""

    run_id: str
    kind: str = WORKFLOW
    node: str = ""
    successor: bool = False


class Descent:
    """Begins runs on behalf of others and finds out how they are."""

    def __init__(self, *, table: Table, payloads: PayloadStore, intents: Queue, clock: Clock, ids: Ids) -> None:
        self._table = table
        self._payloads = payloads
        self._intents = intents
        self._clock = clock
        self._ids = ids

    @property
    def now(self) -> int:
        """Epoch milliseconds."""
        return self._clock.now_ms()

    def begin(self, origin: Origin, asker: str, *, successor: bool = False) -> None:
        """Admit the run unless it was, and have it started unless it has."""
        state = RunState(origin=origin, updated_at=origin.created_at, wake_at=origin.created_at + START_WAKE_MS)
        link = Link(origin.run_id, origin.kind, origin.parent_node, successor)
        row = Item(pk=run_pk(asker), sk=f"{LINK_PREFIX}{origin.run_id}", body=msgspec.json.encode(link))
        conflict = self._table.write((Put(header_item(state), Expect.ABSENT), Put(row)))
        if conflict is not None and conflict.current is not None:
            self.restart(conflict.current)
            return
        self._start(origin)

    def restart(self, item: Item) -> None:
        """Send the start of a run again if nobody has seen it start."""
        state = readable(item)
        if state is not None and not state.started_at and not state.status.terminal:
            self._start(state.origin)

    def _start(self, origin: Origin) -> None:
        self.tell(Intent(f"{origin.run_id}:start", origin.run_id, IntentKind.START, self.now, origin.created_by))

    def tell(self, intent: Intent) -> None:
        """Send an intent to another run."""
        send_all(self._intents, [intent_message(intent, self._ids)])

    def header(self, run_id: str) -> Item | None:
        item = self._table.get(run_pk(run_id), HEAD)
        return None if item is None or is_expiring(item) else item

    def newest(self, run_id: str) -> Item | None:
        """The header of the run or, after continue-as-new, of the last run that goes on for it."""
        item = self.header(run_id)
        for _ in range(MAX_SUCCESSORS):
            state = readable(item) if item is not None else None
            if state is None or state.successor is None:
                return item
            following = self.header(state.successor.run_id)
            if following is None:
                return item
            item = following
        return item

    def load(self, run_id: str, payload: Payload) -> JSON:
        """The value behind a payload of another run."""
        return self._payloads.load(run_id, payload)

    def keep(self, run_id: str, value: JSON) -> Payload:
        """Store a value with the run that will refer to it."""
        return self._payloads.keep(run_id, value)

    def copy(self, source: str, payload: Payload, target: str) -> Payload:
        """A payload of run `source` as one of run `target`, which owns it from then on."""
        if isinstance(payload, Inline):
            return payload
        return self._payloads.keep(target, self._payloads.load(source, payload))


def readable(item: Item) -> RunState | None:
    """The state of a run that is sound; None for one that is stalled or that this release cannot read."""
    if is_stalled(item):
        return None
    try:
        state = read_header(item)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
    state.version = item.version
    return state
