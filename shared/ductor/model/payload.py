"""Values of a run: small ones stand inline in the state, larger ones are referenced and read when needed."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from ductor.model.json import JSON, encode

INLINE_BYTES: Final = 256
"""Largest encoded value kept in the run header itself."""

ROW_BYTES: Final = 8192
"""Largest encoded value kept in a table row; above it a blob is cheaper (DynamoDB against S3 break-even)."""

MAX_INPUT_BYTES: Final = 1_048_576
"""Largest trigger input; a larger one is refused before a run exists."""

MAX_OUTPUT_BYTES: Final = 5 * 1_048_576
"""Largest step output; a larger one fails the step with OUTPUT_TOO_LARGE."""


class Inline(msgspec.Struct, frozen=True, tag="v", tag_field="k", array_like=True, gc=False):
    """A value that stands here."""

    value: JSON


class RowRef(msgspec.Struct, frozen=True, tag="r", tag_field="k", array_like=True, gc=False):
    """A value in a row of the run's own partition (`R#<run_id>`), under `sk`; the row is a payload or an attempt."""

    sk: str
    size: int


class BlobRef(msgspec.Struct, frozen=True, tag="b", tag_field="k", array_like=True, gc=False):
    """A value in the blob store, content-addressed and owned by its run."""

    key: str
    size: int


Payload = Inline | RowRef | BlobRef
NULL: Final = Inline(None)


def payload_size(payload: Payload) -> int:
    """Bytes of the encoded value, known without reading it."""
    return len(encode(payload.value)) if isinstance(payload, Inline) else payload.size


class Stored(msgspec.Struct, frozen=True):
    """Bytes that must be stored before anything refers to them. `ref` says where."""

    ref: RowRef | BlobRef
    data: bytes


def blob_prefix(run_id: str) -> str:
    """What the keys of all blobs of a run begin with, and no other's."""
    return f"{run_id}/"


def stage(
    run_id: str, value: JSON, inline_bytes: int = INLINE_BYTES, data: bytes | None = None
) -> tuple[Payload, Stored | None]:
    """How `value` is kept: inline when its encoding is at most `inline_bytes`, else by content-addressed reference.

    `data` is its encoding, if that is known. Raises TypeError or ValueError for what JSON cannot hold.
    """
    data = encode(value) if data is None else data
    if len(data) <= inline_bytes:
        return Inline(value), None
    digest = hashlib.sha256(data).hexdigest()[:32]
    ref: RowRef | BlobRef
    if len(data) <= ROW_BYTES:
        ref = RowRef(f"P#{digest}", len(data))
    else:
        ref = BlobRef(blob_prefix(run_id) + digest, len(data))
    return ref, Stored(ref, data)
