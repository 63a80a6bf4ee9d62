"""The values that a fork takes with it: copies that it owns, stored in portions before its header refers to them.

A portion is one unit: where units are transactions of the whole installation, a large fork holds up nobody for long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ductor.app.payloads import PayloadStore
from ductor.model.json import JSON
from ductor.model.payload import Inline, Payload, RowRef, Stored, stage
from ductor.ports import Unit

PORTION: Final = 100
PORTION_BYTES: Final = 1_000_000
"""A portion is stored when it holds so many values, or so many bytes."""


class ForkValues:
    """Of one fork. What `keep` and `copy` have returned may be read from the fork after `store` only."""

    def __init__(self, payloads: PayloadStore, unit: Unit, source_id: str, fork_id: str) -> None:
        self._payloads = payloads
        self._unit = unit
        self._source_id = source_id
        self._fork_id = fork_id
        self._copies: dict[Payload, Payload] = {}
        self._pending: list[Stored] = []
        self._bytes = 0

    def rows(self, refs: Sequence[RowRef]) -> dict[RowRef, JSON]:
        """Values in rows of the source."""
        return self._payloads.load_rows(self._source_id, refs)

    def copy(self, payload: Payload) -> Payload:
        """A payload of the source as one of the fork; the same one gives the same again."""
        if isinstance(payload, Inline):
            return payload
        if payload not in self._copies:
            self._copies[payload] = self.keep(self._payloads.load(self._source_id, payload))
        return self._copies[payload]

    def keep(self, value: JSON) -> Payload:
        """How the fork refers to a value."""
        payload, stored = stage(self._fork_id, value)
        if stored is not None:
            self._pending.append(stored)
            self._bytes += len(stored.data)
        if len(self._pending) >= PORTION or self._bytes >= PORTION_BYTES:
            self.store()
        return payload

    def store(self) -> None:
        """Store what has not been yet. Raises UnavailableError; then it may be asked for again."""
        with self._unit.batch():
            for stored in self._pending:
                self._payloads.put(self._fork_id, stored)
        self._pending, self._bytes = [], 0
