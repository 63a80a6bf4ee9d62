"""What was said between a step and a model, entry by entry, written before anything is made of it.

An answer or a tool's result that stands here is never asked for again, by whichever attempt or delivery comes next.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ductor.actions.ai.model import ModelAnswer, ToolResult
from ductor.actions.connection import Connection, without_secrets
from ductor.app.headers import run_pk
from ductor.app.payloads import PayloadStore
from ductor.model.payload import ROW_BYTES, Payload, stage
from ductor.ports import Expect, Item, Put, Table

MAX_ENTRIES: Final = 100_000
_WINDOW: Final = 24


class Turn(msgspec.Struct, frozen=True, tag="turn", omit_defaults=True, kw_only=True):
    """An answer of the model. `opens` is in the first one of a conversation: what the conversation is about."""

    answer: ModelAnswer
    provider: str
    model: str
    took_ms: int
    at: int
    attempt: int
    opens: str = ""


class Called(msgspec.Struct, frozen=True, tag="tool", omit_defaults=True, kw_only=True):
    """A tool call that has ended. `code` is that of its error, empty after a success."""

    tool: str
    result: ToolResult
    took_ms: int
    at: int
    attempt: int
    code: str = ""


class Closed(msgspec.Struct, frozen=True, tag="closed", kw_only=True):
    """The conversation came to nothing. Another attempt of the step begins a new one."""

    code: str
    at: int
    attempt: int


Entry = Turn | Called | Closed


class Conversation(msgspec.Struct):
    """One conversation of a node, as far as it is recorded. `number` counts them from 1."""

    run_id: str
    node: str
    number: int
    opens: str
    entries: list[Entry] = []


class Journal:
    """The rows `J#<node>#<conversation>#<entry>` in the run's partition. Raises UnavailableError as the ports do."""

    def __init__(self, table: Table, payloads: PayloadStore) -> None:
        self._table = table
        self._payloads = payloads

    def open(self, run_id: str, node: str, opens: str, attempt: int) -> Conversation:
        """The conversation that goes on: the last one, unless it was about something else or was closed before.

        One that this very attempt closed comes to the same end again: its worker died before it could tell.
        """
        number = 1
        while True:
            entries = self.entries(run_id, node, number)
            if not entries or (_about(entries) == opens and not _over(entries[-1], attempt)):
                return Conversation(run_id, node, number, opens, entries)
            number += 1

    def all_of(self, run_id: str, node: str) -> list[Entry]:
        """Every entry of a node, those of closed conversations too."""
        found: list[Entry] = []
        number = 1
        while entries := self.entries(run_id, node, number):
            found += entries
            number += 1
        return found

    def append(self, talk: Conversation, entry: Entry, connection: Connection | None) -> Entry:
        """Record the next entry, without the secrets of `connection`.

        Whoever is first wins: another worker's entry in that place is taken over instead, so two workers of one step
        never go different ways. What was recorded.
        """
        value = msgspec.to_builtins(entry)
        payload, stored = stage(
            talk.run_id, value if connection is None else without_secrets(value, connection), ROW_BYTES
        )
        if stored is not None:
            self._payloads.put(talk.run_id, stored)
        sk = _sk(talk.node, talk.number, len(talk.entries))
        row = Item(pk=run_pk(talk.run_id), sk=sk, body=_encode(payload))
        conflict = self._table.write([Put(row, Expect.ABSENT)])
        if conflict is not None:
            if conflict.current is None:
                raise LookupError("an entry of a conversation vanished between two writes")
            row = conflict.current
        recorded = self._entry(talk.run_id, row)
        talk.entries.append(recorded)
        return recorded

    def entries(self, run_id: str, node: str, number: int) -> list[Entry]:
        """The entries of one conversation; they have no gaps."""
        pk = run_pk(run_id)
        first = self._table.get(pk, _sk(node, number, 0))
        entries = [] if first is None else [self._entry(run_id, first)]
        while entries and len(entries) < MAX_ENTRIES:
            places = range(len(entries), len(entries) + _WINDOW)
            rows = self._table.batch_get([(pk, _sk(node, number, place)) for place in places])
            found = [rows.get((pk, _sk(node, number, place))) for place in places]
            for row in found:
                if row is None:
                    return entries
                entries.append(self._entry(run_id, row))
        return entries

    def _entry(self, run_id: str, row: Item) -> Entry:
        found: Entry = msgspec.convert(self._payloads.load(run_id, _decode(row.body)), Entry)
        return found


def _over(last: Entry, attempt: int) -> bool:
    return isinstance(last, Closed) and last.attempt != attempt


def _about(entries: list[Entry]) -> str:
    return entries[0].opens if isinstance(entries[0], Turn) else ""


def _sk(node: str, number: int, place: int) -> str:
    return f"J#{node}#{number:04d}#{place:06d}"


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Payload).decode
