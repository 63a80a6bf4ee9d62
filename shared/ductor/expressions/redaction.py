"""Hides values from readers of a run while keeping them comparable. Never used on what flows between steps."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final, Literal

from ductor.model.json import JSON

Policy = Literal["hashed", "none", "omit"]

_SHOWN_DIGITS: Final = 12


def redact(value: JSON, policy: Policy, tenant_key: bytes) -> JSON:
    """`value` as readers may see it.

    `hashed`: every scalar leaf, null too, becomes `sha256:<12 hex>`, a keyed digest of its type and value; objects,
    their keys and arrays stay. Equal values of one tenant look equal, 1 and 1.0 as well; 1, "1" and true differ.
    `omit`: None. `none`: the value itself. 48 bits compare values, they do not identify them: collisions are possible.
    """
    if policy == "none":
        return value
    if policy == "omit":
        return None
    if policy == "hashed":
        return _hashed(value, hmac.new(tenant_key, digestmod=hashlib.sha256))
    raise ValueError(f"unknown redaction policy {policy!r}")


def _hashed(value: JSON, keyed: hmac.HMAC) -> JSON:
    if isinstance(value, dict):
        return {key: _hashed(item, keyed) for key, item in value.items()}
    if isinstance(value, list):
        return [_hashed(item, keyed) for item in value]
    digest = keyed.copy()
    digest.update(_tagged(value))
    return f"sha256:{digest.hexdigest()[:_SHOWN_DIGITS]}"


def _tagged(value: JSON) -> bytes:
    """One byte string per JSON scalar. Storage may turn 1.0 into 1, so both have one form."""
    if isinstance(value, str):
        return b"s" + value.encode("utf-8", "surrogatepass")
    if value is None:
        return b"z"
    if isinstance(value, bool):
        return b"b1" if value else b"b0"
    if isinstance(value, float):
        return b"n%d" % int(value) if value.is_integer() else b"f" + repr(value).encode()
    return b"n%d" % value
