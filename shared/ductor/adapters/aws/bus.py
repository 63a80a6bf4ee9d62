"""The bus on EventBridge: events about runs out, with their tenant where the rule that feeds events in looks for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from ductor.adapters.aws import faults
from ductor.adapters.aws.clients import Clients
from ductor.model.json import encode
from ductor.ports import Telling, UnavailableError

SOURCE: Final = "ductor"
"""`source` of what the engine puts on the bus. Rules that let others put events there should not allow it."""

TENANT: Final = "ductor/tenant/"
"""What an entry of `resources` that names a tenant begins with."""

MAX_ENTRIES: Final = 10
MAX_BYTES: Final = 262_144
"""Of one request; the limit was raised in January 2026, but not everywhere at once."""


class EventBridgeBus:
    """`ports.Bus` on one event bus, by its name."""

    def __init__(self, name: str, clients: Clients) -> None:
        self._name = name
        self._clients = clients

    def put(self, tellings: Sequence[Telling]) -> tuple[int, ...]:
        """Put all, ten and 256 KB at a time. An entry that EventBridge refuses, for whatever reason, may be sent again.

        Raises UnavailableError, also when the bus or the permission is missing: events wait until that is put right.
        """
        failed: list[int] = []
        for batch in _batches([self._entry(telling) for telling in tellings]):
            try:
                with faults.translated():
                    answer = self._clients("events").put_events(Entries=[entry for _, entry in batch])
            except faults.AwsRefusedError as refused:
                raise UnavailableError(str(refused)) from refused
            results = answer.get("Entries", ())
            failed += [place for (place, _), result in zip(batch, results, strict=True) if result.get("ErrorCode")]
        return tuple(failed)

    def _entry(self, telling: Telling) -> dict[str, Any]:
        event = telling.event
        detail: dict[str, Any] = {"unheard": True} if telling.unheard else {}
        detail |= {
            "event_id": event.event_id,
            "correlation_key": event.correlation_key,
            "causation_depth": event.depth,
            "payload": event.payload,
        }
        return {
            "EventBusName": self._name,
            "Source": SOURCE,
            "DetailType": event.event_name,
            "Detail": encode(detail).decode(),
            "Resources": [TENANT + telling.tenant],
            "Time": datetime.fromtimestamp(event.received_at / 1000, UTC),
        }


def _batches(entries: Sequence[dict[str, Any]]) -> Iterator[list[tuple[int, dict[str, Any]]]]:
    """Entries with their places, in order, as many as one request takes."""
    batch: list[tuple[int, dict[str, Any]]] = []
    size = 0
    for place, entry in enumerate(entries):
        length = _size(entry)
        if batch and (len(batch) == MAX_ENTRIES or size + length > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((place, entry))
        size += length
    if batch:
        yield batch


def _size(entry: dict[str, Any]) -> int:
    """As EventBridge counts: the texts in UTF-8, and 14 bytes for the time."""
    texts = (entry["Source"], entry["DetailType"], entry["Detail"], *entry["Resources"])
    return 14 + sum(len(text.encode()) for text in texts)
