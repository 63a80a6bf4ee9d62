"""The machine's clock and source of chance. The only module of the local backend that reads either."""

from __future__ import annotations

import base64
import secrets
import threading
import time
from typing import Final

_VERSION_7: Final = 0x7
_VARIANT: Final = 0b10 << 62


class SystemClock:
    """`ports.Clock` on the machine's clock; it may step back when that one does."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class SystemIds:
    """`ports.Ids` on the system's secure source."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def uuid(self) -> str:
        """A UUIDv7 that sorts after all that this object made before: 48 bits of milliseconds, 12 of their fraction."""
        now = time.time_ns()
        stamp = (now // 1_000_000 << 12) | (now % 1_000_000 * 4096 // 1_000_000)
        with self._lock:
            self._last = stamp = max(stamp, self._last + 1)
        return format_uuid7(stamp, secrets.randbits(62))

    def token(self, size: int) -> str:
        return base64.urlsafe_b64encode(secrets.token_bytes(size)).decode().rstrip("=")


def format_uuid7(stamp: int, chance: int) -> str:
    """The text of a UUIDv7 from 60 bits of time (48 of milliseconds, 12 below) and 62 bits of chance."""
    high = (stamp >> 12 << 16) | (_VERSION_7 << 12) | (stamp & 0xFFF)
    digits = f"{high:016x}{_VARIANT | chance:016x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
