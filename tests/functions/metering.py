"""Counts the requests that are made to AWS, by operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from botocore.client import BaseClient


@contextmanager
def metered() -> Iterator[Counter[str]]:
    """What is requested within, of whatever client."""
    counts: Counter[str] = Counter()
    call = BaseClient._make_api_call

    def counted(self: Any, operation: str, arguments: Any) -> Any:
        counts[operation] += 1
        return call(self, operation, arguments)

    with mock.patch.object(BaseClient, "_make_api_call", counted):
        yield counts
