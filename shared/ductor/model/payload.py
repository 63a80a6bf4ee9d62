"""Values of a run: small ones stand inline in the state, larger ones are referenced and read when somebody needs them."""

from __future__ import annotations

from typing import Final

import msgspec

from ductor.model.json import JSON

INLINE_BYTES: Final = 256
"""Largest encoded value kept in the run header itself."""

ROW_BYTES: Final = 8192
"""Largest encoded value kept in a table row; above it a blob is cheaper (DynamoDB against S3 break-even)."""

MAX_INPUT_BYTES: Final = 1_048_576
"""Largest trigger input; a larger one is refused before a run exists."""

MAX_OUTPUT_BYTES: Final = 5 * 1_048_576
"""Largest step output; a larger one fails the step with OUTPUT_TOO_LARGE."""


class Inline(msgspec.Struct, frozen=True, tag="v", tag_field="k", array_like=True):
    """A value that stands here."""

    value: JSON


class RowRef(msgspec.Struct, frozen=True, tag="r", tag_field="k", array_like=True):
    """A value in a row of the run's own partition (`R#<run_id>`), under `sk`; the row is a payload or an attempt."""

    sk: str
    size: int


class BlobRef(msgspec.Struct, frozen=True, tag="b", tag_field="k", array_like=True):
    """A value in the blob store, content-addressed and owned by its run."""

    key: str
    size: int


Payload = Inline | RowRef | BlobRef
NULL: Final = Inline(None)
