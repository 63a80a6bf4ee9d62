"""Task tokens: what a worker outside proves its claim with. A token names one delivery of one attempt and is signed.

The secret stands in the attempt's row, so every delivery's token can be told from a forged one, the last one's from
those before it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final

import msgspec

from ductor.model.attempt import Attempt

MAC_BYTES: Final = 18
MAX_TOKEN: Final = 2_048


class TokenRef(msgspec.Struct, frozen=True):
    """What a token says. Nothing of it is believed before `genuine`."""

    run_id: str
    node: str
    attempt: int
    delivery: int
    mac: str


def issue(attempt: Attempt) -> str:
    """The token of the attempt's present delivery: URL-safe, without `:` and `/`."""
    task = attempt.task
    name = f"{task.run_id}/{task.node}/{task.attempt}/{attempt.deliveries}"
    return f"{_base64(name.encode())}.{_mac(attempt.secret, name)}"


def read(token: str) -> TokenRef | None:
    """What a token names, None for a text that is none."""
    encoded, _, mac = token.partition(".")
    if not mac or len(token) > MAX_TOKEN or not token.isascii():
        return None
    try:
        name = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
        run_id, node, attempt, delivery = name.split("/")
        ref = TokenRef(run_id, node, int(attempt), int(delivery), mac)
    except (binascii.Error, ValueError):
        return None
    # The one spelling that was issued: anything else would name the same claim by a second token.
    canonical = _base64(f"{run_id}/{node}/{ref.attempt}/{ref.delivery}".encode()) == encoded
    return ref if canonical and run_id and node and 0 < ref.attempt < 1_000_000 else None


def genuine(ref: TokenRef, attempt: Attempt) -> bool:
    """Whether the token was issued for a delivery of this attempt. Takes the same time for every wrong one."""
    name = f"{ref.run_id}/{ref.node}/{ref.attempt}/{ref.delivery}"
    offered = hmac.compare_digest(_mac(attempt.secret, name), ref.mac)
    return offered and bool(attempt.secret) and ref.delivery <= attempt.deliveries


def _mac(secret: str, name: str) -> str:
    return _base64(hmac.digest(secret.encode(), name.encode(), hashlib.sha256)[:MAC_BYTES])


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
