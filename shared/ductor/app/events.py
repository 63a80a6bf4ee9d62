"""Publishing events: each reaches every pause that waits for it, once, whatever happens to the publisher on the way."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, Protocol

import msgspec

from ductor.app.access import Caller, Scope, require
from ductor.app.dispatch import intent_message, send_all
from ductor.app.event_rows import EventRows, Received
from ductor.app.refusals import invalid
from ductor.app.refused_starts import RefusedPage, RefusedStart
from ductor.app.waiters import Claimed, Waiters
from ductor.model.causation import RESERVED
from ductor.model.errors import ErrorCode, refuse
from ductor.model.intent import Intent
from ductor.model.json import encode
from ductor.model.waiting import MAX_KEY_CHARS, Event, Waiter, event_mark, waiter_pk
from ductor.ports import Clock, Faults, Ids, Item, Queue, Unit

MAX_NAME_CHARS: Final = 200
MAX_EVENT_ID_CHARS: Final = 256
MAX_PAYLOAD_BYTES: Final = 262_144
"""As much as an event bus carries, and what one row takes with room to spare."""

RESUME_SKEW_MS: Final = 1_000
"""How far clocks of publishers and coordinators may differ when a publication is taken up again."""

TOLD_AT_ONCE: Final = 100


class Started(msgspec.Struct, frozen=True):
    """The runs that an event started, and the starts that were refused and recorded."""

    runs: tuple[str, ...] = ()
    refused: tuple[RefusedStart, ...] = ()


class Starts(Protocol):
    """Starts the runs that events start (`app.event_triggers`)."""

    def listens(self, tenant: str, event_name: str) -> bool:
        """Whether such an event may start any."""
        ...

    def start(self, tenant: str, event: Event) -> Started:
        """Start them; called again when a publication is taken up again."""
        ...

    def refused(self, caller: Caller, limit: int | None, cursor: str | None) -> RefusedPage:
        """What could not be started, newest first."""
        ...


class StartsNothing:
    """No triggers."""

    def listens(self, _tenant: str, _event_name: str) -> bool:
        return False

    def start(self, _tenant: str, _event: Event) -> Started:
        return Started()

    def refused(self, _caller: Caller, _limit: int | None, _cursor: str | None) -> RefusedPage:
        return RefusedPage((), None)


class Published(msgspec.Struct, frozen=True):
    """`matched`: how many pauses the event resolved; 0 also for a repetition of an event.

    `started_runs` are those of triggers, `refused_starts` what triggers wanted to start and could not.
    """

    event_id: str
    matched: int
    started_runs: tuple[str, ...] = ()
    refused_starts: tuple[RefusedStart, ...] = ()


class Events:
    """Accepts events.

    At most once per pause and event, and at least once in all: the order is dedupe row (open), lookback row, claims,
    intents, dedupe row (done). Whoever repeats an event whose first publisher died goes on from there. An event that
    nobody waits for is kept for a day, for pauses that look back.
    """

    def __init__(
        self,
        *,
        waiters: Waiters,
        rows: EventRows,
        intents: Queue,
        unit: Unit,
        clock: Clock,
        ids: Ids,
        faults: Faults,
        starts: Starts | None = None,
    ) -> None:
        self._waiters = waiters
        self._rows = rows
        self._intents = intents
        self._unit = unit
        self._clock = clock
        self._ids = ids
        self._faults = faults
        self._starts = starts or StartsNothing()

    def publish(self, caller: Caller, event: Event) -> Published:
        """Publish for the caller's tenant. Refused with INVALID_ARGUMENT or PAYLOAD_TOO_LARGE, nothing has happened.

        Of refused starts the caller is shown those in environments that it may read.
        """
        require(caller, Scope.EVENTS_PUBLISH)
        check_event(event)
        done = self.accept(caller.tenant, event)
        shown = tuple(one for one in done.refused_starts if caller.may_read(one.environment))
        return msgspec.structs.replace(done, refused_starts=shown)

    def accept(self, tenant: str, event: Event) -> Published:
        """Deliver a well-formed event; when this returns, every pause that it resolved will be told."""
        with self._unit.batch():
            row, received, fresh = self._rows.receive(tenant, event)
            if received.done:
                return Published(event.event_id, 0)
            return self._deliver(tenant, event, row, received, resumed=not fresh)

    def refused_starts(self, caller: Caller, limit: int | None, cursor: str | None) -> RefusedPage:
        """Runs that events should have started in the last 30 days and that were refused, newest first."""
        return self._starts.refused(caller, limit, cursor)

    def hear(self, tenant: str, event: Event) -> Published:
        """Deliver an event of the engine itself, which only starts runs. If nobody listens it costs some reads."""
        if not self._starts.listens(tenant, event.event_name):
            return Published(event.event_id, 0)
        return self.accept(tenant, event)

    def _deliver(self, tenant: str, event: Event, row: Item, received: Received, *, resumed: bool) -> Published:
        event = msgspec.structs.replace(event, received_at=received.received_at)
        self._faults.at("events.after_receive")
        matched = 0
        if event.correlation_key:
            event = self._rows.keep(tenant, event)
            self._faults.at("events.after_keep")
            matched = self._tell(self._claim_all(tenant, event, resumed=resumed))
        started = self._starts.start(tenant, event)
        self._faults.at("events.after_send")
        self._rows.finish(row, Received(received.received_at, True, matched, started.runs))
        return Published(event.event_id, matched, started.runs, started.refused)

    def _tell(self, claimed: Iterator[Intent]) -> int:
        """Tell the runs, a part of them at a time: a publisher that dies has not told nobody. How many pauses."""
        pauses: set[tuple[str, str, int]] = set()
        while told := list(islice(claimed, TOLD_AT_ONCE)):
            self._faults.at("events.after_claim")
            send_all(self._intents, [intent_message(intent, self._ids) for intent in told])
            pauses |= {(intent.run_id, intent.node, intent.generation) for intent in told}
        return len(pauses)

    def _claim_all(self, tenant: str, event: Event, *, resumed: bool) -> Iterator[Intent]:
        """Claim every pause that waits for the event; the intents that tell them."""
        mark = event_mark(event.event_name, event.correlation_key, event.event_id)
        pk = waiter_pk(tenant, event.event_name, event.correlation_key)
        for item, waiter in self._waiters.waiting(pk, self._clock.now_ms()):
            if mark in waiter.seen or not _live_at(waiter, event, resumed=resumed):
                continue
            if not self._waiters.holds(waiter, event):
                continue
            claimed, intent = self._waiters.claim(item, event)
            if claimed is not Claimed.LOST and intent is not None:
                yield intent


def _live_at(waiter: Waiter, event: Event, *, resumed: bool) -> bool:
    """Whether the pause waited when the event came. One that is found at first was there, whatever the clocks say."""
    return not resumed or waiter.since <= event.received_at + RESUME_SKEW_MS


def check_event(event: Event) -> None:
    """Refuse what cannot be an event of somebody else than the engine."""
    _check_text(event.event_name, 1, MAX_NAME_CHARS, "event_name")
    if event.event_name.startswith(RESERVED):
        message = f"names that begin with {RESERVED} are the engine's own; choose another one"
        raise invalid("EVENT_NAME_RESERVED", message, "event_name")
    _check_text(event.event_id, 1, MAX_EVENT_ID_CHARS, "event_id")
    _check_text(event.correlation_key, 0, MAX_KEY_CHARS, "correlation_key")
    try:
        size = len(encode(event.payload))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise invalid("FIELD_INVALID", f"this value cannot be kept as JSON: {error}", "payload") from error
    if size > MAX_PAYLOAD_BYTES:
        message = f"{size} bytes are over the limit of {MAX_PAYLOAD_BYTES}; publish a reference to the data instead"
        raise refuse(ErrorCode.PAYLOAD_TOO_LARGE, "EVENT_TOO_LARGE", message, "payload")


def _check_text(text: str, least: int, most: int, field: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise invalid("FIELD_INVALID", "must be valid Unicode text", field) from error
    if not least <= len(text) <= most:
        raise invalid("FIELD_INVALID", f"{least} to {most} characters", field)
