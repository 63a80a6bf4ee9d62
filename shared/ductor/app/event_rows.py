"""Published events as rows: one that makes a repetition harmless, and one that later pauses may look back at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ductor.app.headers import sort_time
from ductor.model.waiting import Event, dedupe_pk, event_digest, lookback_pk
from ductor.ports import Clock, Expect, Item, Put, Table

DEDUPE: Final = "DEDUPE"
KEPT_MS: Final = 86_400_000
"""How long an event is remembered, as a repetition and for looking back."""

TTL_SLACK_MS: Final = 3_600_000

_encode = msgspec.json.Encoder().encode


class Received(msgspec.Struct, frozen=True, omit_defaults=True):
    """Body of the dedupe row. While it is not `done`, a repetition goes on where the first publisher died."""

    received_at: int
    done: bool = False
    matched: int = 0
    started_runs: tuple[str, ...] = ()


_received = msgspec.json.Decoder(Received).decode
_event = msgspec.json.Decoder(Event).decode


class EventRows:
    """Reads and writes the rows of events of all tenants."""

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock

    def receive(self, tenant: str, event: Event) -> tuple[Item, Received, bool]:
        """The event's dedupe row, what it says, and whether it was made now: not if it was received within 24 h."""
        pk = dedupe_pk(tenant, event_digest(event.event_name, event.correlation_key, event.event_id))
        while True:
            known = self._table.get(pk, DEDUPE)
            if known is not None and not self._old(_received(known.body).received_at):
                return known, _received(known.body), False
            now = self._clock.now_ms()
            row = _row(pk, Received(now), (known.version if known else 0) + 1)
            if self._table.write((Put(row, known.version if known else Expect.ABSENT),)) is None:
                return row, Received(now), True

    def finish(self, row: Item, received: Received) -> None:
        """Mark the event as dealt with. A lost race means that another publisher of it did."""
        self._table.write((Put(_row(row.pk, received, row.version + 1), row.version),))

    def keep(self, tenant: str, event: Event) -> Event:
        """Make the event findable by pauses that look back; the event as it was kept first."""
        digest = event_digest(event.event_name, event.correlation_key, event.event_id)
        pk = lookback_pk(tenant, event.event_name, event.correlation_key)
        ttl = (event.received_at + KEPT_MS + TTL_SLACK_MS) // 1000
        row = Item(pk=pk, sk=f"{sort_time(event.received_at)}#{digest}", body=_encode(event), ttl=ttl)
        known = self._table.write((Put(row, Expect.ABSENT),))
        return event if known is None or known.current is None else _event(known.current.body)

    def since(self, tenant: str, event_name: str, correlation_key: str, at: int) -> Iterator[Event]:
        """Events of one name and key that were received at `at` (epoch ms) or later, oldest first."""
        pk = lookback_pk(tenant, event_name, correlation_key)
        low = sort_time(max(0, at, self._clock.now_ms() - KEPT_MS))
        cursor: str | None = None
        while True:
            page = self._table.query(pk, low=low, high="~", cursor=cursor)
            yield from (_event(item.body) for item in page.items)
            cursor = page.cursor
            if cursor is None:
                return

    def _old(self, received_at: int) -> bool:
        return received_at + KEPT_MS <= self._clock.now_ms()


def _row(pk: str, received: Received, version: int) -> Item:
    ttl = (received.received_at + KEPT_MS + TTL_SLACK_MS) // 1000
    return Item(pk=pk, sk=DEDUPE, version=version, body=_encode(received), ttl=ttl)
