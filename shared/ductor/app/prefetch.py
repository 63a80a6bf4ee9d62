"""Reads the values of many nodes at once: a page of 500 steps must not cost 500 reads one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from ductor.app.headers import run_pk
from ductor.app.payloads import ATTEMPT_PREFIX, PayloadStore
from ductor.model.attempt import Attempt
from ductor.model.json import JSON, decode
from ductor.model.payload import Inline, Payload, RowRef
from ductor.ports import Item, Table

_attempts = msgspec.json.Decoder(Attempt)


def prefetching(
    table: Table, payloads: PayloadStore, run_id: str, wanted: Iterable[Payload]
) -> Callable[[Payload], JSON]:
    """A loader of the run's payloads that has read the rows of `wanted` already. It reads anything else on demand."""
    pk = run_pk(run_id)
    rows = table.batch_get([(pk, payload.sk) for payload in wanted if isinstance(payload, RowRef)])
    read = {sk: item for (_, sk), item in rows.items()}

    def load(payload: Payload) -> JSON:
        item = read.get(payload.sk) if isinstance(payload, RowRef) else None
        if item is None:
            return payloads.load(run_id, payload)
        output = _value(item)
        return output.value if isinstance(output, Inline) else payloads.load(run_id, payload)

    return load


def _value(item: Item) -> Payload:
    if item.sk.startswith(ATTEMPT_PREFIX):
        return _attempts.decode(item.body).output
    return Inline(decode(item.body))
