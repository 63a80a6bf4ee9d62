"""How long to wait before the next attempt. Pure arithmetic; jitter comes from a hash, not from a random source."""

from __future__ import annotations

import hashlib
from typing import Final

from ductor.model.definition import Retry
from ductor.model.errors import StepError

_MAX_EXPONENT: Final = 64
"""Beyond this every allowed multiplier but 1 is past any allowed cap, and 2.0**1024 would overflow."""


def delay_ms(retry: Retry, failures: int) -> int:
    """Backoff after the `failures`-th failed attempt (from 1), before jitter: capped, never below the previous one."""
    exponent = min(max(failures - 1, 0), _MAX_EXPONENT)
    return int(min(retry.max_backoff_ms, retry.backoff_ms * retry.backoff_multiplier**exponent))


def jittered_ms(retry: Retry, failures: int, key: str) -> int:
    """`delay_ms` moved within ± its jitter share, by a hash of `key` (run, node, attempt). Never negative."""
    base = delay_ms(retry, failures)
    if not retry.jitter or not base:
        return base
    digest = hashlib.sha256(key.encode()).digest()
    spread = int.from_bytes(digest[:8], "big") / 2**63 - 1.0
    return max(0, base + int(base * retry.jitter * spread))


def may_retry(retry: Retry, failures: int, error: StepError, elapsed_ms: int) -> bool:
    """Whether the policy allows another attempt after `failures` failed ones and `elapsed_ms` since the first began."""
    if failures >= retry.max_attempts or not error.retryable or error.code in retry.non_retryable_codes:
        return False
    return not retry.max_elapsed_ms or elapsed_ms < retry.max_elapsed_ms
