"""Outputs as they are handed to programs: the value itself, or where its bytes lie when an answer could not hold it."""

from __future__ import annotations

from typing import Final

import msgspec

from ductor.app.payloads import PayloadStore
from ductor.app.presenting import is_large
from ductor.model.json import JSON
from ductor.model.payload import BlobRef, Payload, payload_size
from ductor.ports import Links

MAX_HANDED_BYTES: Final = 2_000_000
"""Largest encoded output in an answer on Lambda. Its answers end at 6 MB, and a body travels as a JSON string, which
makes three bytes of one where the text is all quotes or the runtime spells out what is not ASCII."""

LINK_SECONDS: Final = 900

MAX_SHOWN_BYTES: Final = 1_000_000
"""Of encoded outputs in one snapshot. They are JSON in a JSON string, on Lambda in a JSON string once more: that makes
up to four bytes of one, and an answer has at most 6 MB."""


class Elsewhere(msgspec.Struct, frozen=True):
    """The value is the JSON document at `url`, of so many bytes. Whoever has the address may read it for a while."""

    url: str
    bytes: int


class Handing:
    """Hands outputs out. Without links every value is handed out as it is."""

    def __init__(self, payloads: PayloadStore, links: Links | None = None) -> None:
        self._payloads = payloads
        self._links = links

    def is_elsewhere(self, payload: Payload) -> bool:
        """Whether it is handed out as an address, which takes no reading of it."""
        return self._links is not None and payload_size(payload) > MAX_HANDED_BYTES

    def payload(self, run_id: str, payload: Payload) -> JSON | Elsewhere:
        """Raises PayloadMissingError for a value that is gone; an address of one that is gone leads nowhere."""
        if self._links is None or not isinstance(payload, BlobRef) or not self.is_elsewhere(payload):
            return self._payloads.load(run_id, payload)
        return Elsewhere(self._links.link(payload.key, LINK_SECONDS), payload.size)

    def value(self, run_id: str, value: JSON, size: int) -> JSON | Elsewhere:
        """A value of about `size` bytes that was put together just now. A large one is stored first, with its run."""
        if self._links is None or size <= MAX_HANDED_BYTES:
            return value
        return self.payload(run_id, self._payloads.keep(run_id, value))


class Room:
    """What one answer may show of outputs: each up to 8 KB, and all together 1 MB. The others are read on their own."""

    def __init__(self) -> None:
        self._left = MAX_SHOWN_BYTES

    def takes(self, output: Payload) -> bool:
        """Whether this one is shown; then there is less room for others."""
        if is_large(output) or payload_size(output) > self._left:
            return False
        self._left -= payload_size(output)
        return True
