"""Values too large for the run header: put before anything refers to them, read when somebody needs them.

Content-addressed and owned by their run, so writing one twice is harmless and nothing is ever changed in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ductor.app.headers import run_pk
from ductor.model.attempt import Attempt
from ductor.model.json import JSON, decode
from ductor.model.payload import BlobRef, Inline, Payload, RowRef, Stored, blob_prefix, stage
from ductor.ports import Blobs, Item, Put, Table

ATTEMPT_PREFIX: Final = "A#"
READ_AT_ONCE: Final = 100


class PayloadMissingError(LookupError):
    """A stored reference leads nowhere: the value was removed, or the storage lost it."""


class PayloadStore:
    """Reads and writes payloads. Raises UnavailableError as the ports do."""

    def __init__(self, table: Table, blobs: Blobs) -> None:
        self._table = table
        self._blobs = blobs

    def keep(self, run_id: str, value: JSON) -> Payload:
        """Store `value` where its size belongs and return how to find it."""
        payload, stored = stage(run_id, value)
        if stored is not None:
            self.put(run_id, stored)
        return payload

    def put(self, run_id: str, stored: Stored) -> None:
        """Make staged bytes durable."""
        if isinstance(stored.ref, BlobRef):
            self._blobs.put(stored.ref.key, stored.data)
        else:
            self._table.write((Put(Item(pk=run_pk(run_id), sk=stored.ref.sk, body=stored.data)),))

    def remove_some(self, run_id: str, limit: int) -> int:
        """Remove up to `limit` large values of a run that is gone; how many there were."""
        keys = self._blobs.keys(blob_prefix(run_id), limit)
        for key in keys:
            self._blobs.delete(key)
        return len(keys)

    def load(self, run_id: str, payload: Payload) -> JSON:
        """The value. Raises PayloadMissingError when a reference leads nowhere."""
        if isinstance(payload, Inline):
            return payload.value
        if isinstance(payload, BlobRef):
            data = self._blobs.get(payload.key)
            if data is None:
                raise PayloadMissingError(f"blob {payload.key} of run {run_id} is gone")
            return decode(data)
        return self._from_row(run_id, payload)

    def load_rows(self, run_id: str, refs: Sequence[RowRef]) -> dict[RowRef, JSON]:
        """The values of many references to rows, a hundred at a time. Raises PayloadMissingError like `load`."""
        found: dict[RowRef, JSON] = {}
        for start in range(0, len(refs), READ_AT_ONCE):
            some = refs[start : start + READ_AT_ONCE]
            items = self._table.batch_get([(run_pk(run_id), ref.sk) for ref in some])
            found.update({ref: self._value(run_id, ref, items.get((run_pk(run_id), ref.sk))) for ref in some})
        return found

    def _from_row(self, run_id: str, ref: RowRef) -> JSON:
        return self._value(run_id, ref, self._table.get(run_pk(run_id), ref.sk))

    def _value(self, run_id: str, ref: RowRef, item: Item | None) -> JSON:
        if item is None:
            raise PayloadMissingError(f"row {ref.sk} of run {run_id} is gone")
        if not ref.sk.startswith(ATTEMPT_PREFIX):
            return decode(item.body)
        output = _decode_attempt(item.body).output
        if not isinstance(output, Inline):
            raise PayloadMissingError(f"attempt {ref.sk} of run {run_id} holds no output of its own")
        return output.value


_decode_attempt = msgspec.json.Decoder(Attempt).decode
