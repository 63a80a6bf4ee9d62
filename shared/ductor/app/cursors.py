"""Opaque cursors of lists. A cursor says where a list goes on, and only for the tenant and filter it was made for."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

import msgspec

from ductor.app.refusals import invalid

MAX_LIMIT: Final = 200
DEFAULT_LIMIT: Final = 50
_MAX_CURSOR_LENGTH: Final = 4_096


class _Cursor(msgspec.Struct, frozen=True, array_like=True):
    binding: str
    position: str


def binding(tenant: str, subject: object) -> str:
    """What a cursor is bound to: the tenant and everything that decides the list (`subject`, any msgspec value)."""
    data = msgspec.json.encode([tenant, subject], order="sorted")
    return hashlib.sha256(data).hexdigest()[:16]


def seal(bound_to: str, position: str) -> str:
    """The cursor for going on after `position`."""
    data = msgspec.json.encode(_Cursor(bound_to, position))
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unseal(bound_to: str, cursor: str | None) -> str | None:
    """The position in a cursor, None without one. Refuses with CURSOR_INVALID what was not made for this very list."""
    if not cursor:
        return None
    try:
        if len(cursor) > _MAX_CURSOR_LENGTH:
            raise ValueError("too long")
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        found = msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=_Cursor)
    except (ValueError, msgspec.MsgspecError) as error:
        raise _refused() from error
    if found.binding != bound_to:
        raise _refused()
    return found.position


def page_size(limit: int | None) -> int:
    """Entries per page: 50 unless asked otherwise, 1 to 200."""
    if limit is None:
        return DEFAULT_LIMIT
    if not 1 <= limit <= MAX_LIMIT:
        raise invalid("FIELD_INVALID", f"limit must be between 1 and {MAX_LIMIT}", "limit")
    return limit


def _refused() -> Exception:
    return invalid("CURSOR_INVALID", "this cursor belongs to another list; start again without one", "cursor")
