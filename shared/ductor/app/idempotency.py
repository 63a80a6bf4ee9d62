"""Which run an idempotency key stands for: one row per tenant, definition and key."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from ductor.ports import Item

IDEM: Final = "IDEM"


class Admitted(msgspec.Struct, frozen=True):
    """Body of the row."""

    run_id: str
    request_hash: str


def key_digest(key: str) -> str:
    """The key as a table key can hold it: it may hold anything itself."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def idempotency_pk(tenant: str, definition_id: str, digest: str) -> str:
    """Partition of the row of a key, by its digest."""
    return f"I#{tenant}#{definition_id}#{digest}"


def admitted_run(item: Item) -> str:
    """The run that the row's key stands for."""
    return msgspec.json.decode(item.body, type=Admitted).run_id
