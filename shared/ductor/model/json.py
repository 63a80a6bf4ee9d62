"""JSON values and the one codec for stored bytes. Integers of 64 bits stay exact; NaN and Infinity never get in."""

from __future__ import annotations

from typing import Any

import msgspec

# mypy resolves a recursive alias slowly and unhelpfully; `Any` here always means a plain JSON value.
JSON = Any

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


def encode(value: JSON) -> bytes:
    """Compact JSON. Raises TypeError for what JSON cannot hold."""
    return _encoder.encode(value)


def decode(data: bytes | str) -> JSON:
    """A JSON value from trusted bytes (our own). Requests go through the strict reader of the API instead."""
    return _decoder.decode(data)
