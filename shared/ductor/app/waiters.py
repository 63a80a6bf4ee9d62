"""The rows of pauses that wait for events: claimed by publishers, closed by coordinators, by one conditional write.

Whoever changes a row first wins; the other learns who it was. Never changes run state: what was claimed is told to the
run by an intent, as often as somebody finds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import msgspec

from ductor.app.headers import run_pk
from ductor.app.payloads import PayloadStore
from ductor.expressions import Budget, ExpressionError, compile_cel
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import JSON
from ductor.model.waiting import (
    Claim,
    Event,
    EventWait,
    Registered,
    Waiter,
    collected_sk,
    event_digest,
    registered_sk,
)
from ductor.ports import Check, Delete, Expect, Item, Put, Table

CLOSED_TTL_MS: Final = 86_400_000
"""How long a closed row stays: a late writer that lost its race must not register the pause once more."""

_encode = msgspec.json.Encoder().encode
_waiter = msgspec.json.Decoder(Waiter).decode
_claim = msgspec.json.Decoder(Claim).decode
_registered = msgspec.json.Decoder(Registered).decode


class Claimed(StrEnum):
    """What came of trying to claim a pause for an event."""

    WON = "won"
    HELD = "held"
    LOST = "lost"


class Waiters:
    """Reads and changes waiter rows. Raises UnavailableError as the table does."""

    def __init__(self, table: Table, payloads: PayloadStore) -> None:
        self._table = table
        self._payloads = payloads

    def waiting(self, pk: str, now: int) -> Iterator[tuple[Item, Waiter]]:
        """The rows of a partition that are not closed, read consistently. Outlived closed ones are removed."""
        for item in self._rows(pk, ""):
            waiter = _waiter(item.body)
            if not waiter.closed:
                yield item, waiter
            elif item.ttl is not None and item.ttl * 1000 < now:
                self._table.write((Delete(item.pk, item.sk, item.version),))

    def holds(self, waiter: Waiter, event: Event) -> bool:
        """Whether the condition of the pause is true of the event. One that cannot be evaluated is not true."""
        if not waiter.conditional:
            return True
        one = self.pause(waiter).on[waiter.place]
        try:
            bindings = {**(self._payloads.load(waiter.run_id, one.bound) or {}), "EVENT": view_of(event)}
            return compile_cel(one.condition).evaluate_bool(bindings, Budget())
        except ExpressionError:
            return False

    def pause(self, waiter: Waiter) -> EventWait:
        """What the pause waits for."""
        return msgspec.convert(self._payloads.load(waiter.run_id, waiter.pause), EventWait)

    def claim(self, item: Item, event: Event) -> tuple[Claimed, Intent | None]:
        """Claim the pause for the event. The intent tells the run; it also comes for a pause that the event holds."""
        waiter = _waiter(item.body)
        claim = Claim(
            digest=event_digest(event.event_name, event.correlation_key, event.event_id),
            event_id=event.event_id,
            received_at=event.received_at,
            payload=self._payloads.keep(waiter.run_id, event.payload),
        )
        return self._claim_one(item, waiter, claim) if waiter.exclusive else self._collect(item, waiter, claim)

    def _claim_one(self, item: Item, waiter: Waiter, claim: Claim) -> tuple[Claimed, Intent | None]:
        if not waiter.closed and waiter.claim is None:
            won = _changed(item, msgspec.structs.replace(waiter, claim=claim))
            lost = self._table.write((Put(won, item.version),))
            if lost is None:
                return Claimed.WON, _matched(waiter, claim)
            if lost.current is None:
                return Claimed.LOST, None
            waiter = _waiter(lost.current.body)
        if waiter.claim is not None and waiter.claim.digest == claim.digest:
            return Claimed.HELD, _matched(waiter, waiter.claim)
        return Claimed.LOST, None

    def _collect(self, item: Item, waiter: Waiter, claim: Claim) -> tuple[Claimed, Intent | None]:
        """A set takes each event once, in a row of its own, for as long as the set is open."""
        sk = collected_sk(waiter.node, waiter.generation, waiter.place, claim.digest)
        row = Item(pk=run_pk(waiter.run_id), sk=sk, body=_encode(claim))
        if waiter.closed:
            return Claimed.LOST, None
        lost = self._table.write((Check(item.pk, item.sk, item.version), Put(row, Expect.ABSENT)))
        if lost is None:
            return Claimed.WON, _matched(waiter, claim)
        if lost.index == 1 and lost.current is not None:
            return Claimed.HELD, _matched(waiter, _claim(lost.current.body))
        return Claimed.LOST, None

    def registered(self, run_id: str, node: str, generation: int) -> list[tuple[Item, Registered]]:
        """What a pause has registered: more than once where a commit had failed."""
        rows = self._rows(run_pk(run_id), registered_sk(node, generation))
        return [(item, _registered(item.body)) for item in rows]

    def rows_of(self, listed: Registered) -> list[tuple[Item, Waiter]]:
        """The waiter rows of one registration, as far as they were written."""
        found = self._table.batch_get(listed.rows)
        return [(found[key], _waiter(found[key].body)) for key in listed.rows if key in found]

    def held(self, run_id: str, node: str, generation: int) -> list[Intent]:
        """An intent for each event that holds the pause or a place in its set."""
        found: list[Intent] = []
        for _, listed in self.registered(run_id, node, generation):
            for _, waiter in self.rows_of(listed):
                found += [_matched(waiter, claim) for claim in self._claims(waiter)]
        return found

    def _claims(self, waiter: Waiter) -> list[Claim]:
        if waiter.exclusive:
            return [waiter.claim] if waiter.claim is not None else []
        prefix = collected_sk(waiter.node, waiter.generation, waiter.place)
        return sorted(
            (_claim(item.body) for item in self._rows(run_pk(waiter.run_id), prefix)),
            key=lambda claim: (claim.received_at, claim.digest),
        )

    def close(self, run_id: str, node: str, generation: int, now: int, *, ended: bool = False) -> None:
        """Close every row of the pause that no event holds. After this no event claims it.

        Of a pause that has `ended` the rows that an event holds are closed too: its run knows.
        """
        for _, listed in self.registered(run_id, node, generation):
            for pk, sk in listed.rows:
                self._close_row(pk, sk, now, ended=ended)

    def _close_row(self, pk: str, sk: str, now: int, *, ended: bool) -> None:
        ttl = (now + CLOSED_TTL_MS) // 1000
        while (item := self._table.get(pk, sk)) is not None:
            waiter = _waiter(item.body)
            if waiter.closed or (waiter.claim is not None and not ended):
                return
            shut = _changed(item, msgspec.structs.replace(waiter, closed=True), ttl)
            if self._table.write((Put(shut, item.version),)) is None:
                return

    def remove(self, run_id: str, node: str, generation: int) -> None:
        """Forget an ended pause whose rows are closed: what a set collected, and at last the registration itself."""
        pk = run_pk(run_id)
        for item, listed in self.registered(run_id, node, generation):
            for place in range(0 if listed.exclusive else len(listed.rows)):
                for row in self._rows(pk, collected_sk(node, generation, place)):
                    self._table.write((Delete(row.pk, row.sk),))
            self._table.write((Delete(item.pk, item.sk),))

    def _rows(self, pk: str, prefix: str) -> Iterator[Item]:
        cursor: str | None = None
        while True:
            page = self._table.query(pk, prefix=prefix, cursor=cursor)
            yield from page.items
            cursor = page.cursor
            if cursor is None:
                return


def view_of(event: Event) -> dict[str, JSON]:
    """EVENT, as conditions read it."""
    return {
        "event_name": event.event_name,
        "correlation_key": event.correlation_key,
        "event_id": event.event_id,
        "payload": event.payload,
    }


def _changed(item: Item, waiter: Waiter, ttl: int | None = None) -> Item:
    return msgspec.structs.replace(item, version=item.version + 1, body=_encode(waiter), ttl=ttl)


def _matched(waiter: Waiter, claim: Claim) -> Intent:
    """What tells the run of an event that holds one of its pauses. The same id each time: it is applied once."""
    return Intent(
        id=f"{waiter.run_id}:event:{claim.digest}:{waiter.node}:{waiter.generation}:{waiter.place}",
        run_id=waiter.run_id,
        kind=IntentKind.EVENT_MATCHED,
        at=claim.received_at,
        node=waiter.node,
        generation=waiter.generation,
        output=claim.payload,
        body={
            "token": waiter.token,
            "place": waiter.place,
            "event_id": claim.event_id,
            "received_at": claim.received_at,
        },
    )
