"""A bounded cache for values that never change, shared by the threads that answer requests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from ductor.app.cache import Cache

K = TypeVar("K")
V = TypeVar("V")


class SharedCache(Generic[K, V]):
    """At most `size` entries. Two threads may make the same value at the same time; one of them is kept."""

    def __init__(self, size: int) -> None:
        self._entries: Cache[K, V] = Cache(size)
        self._lock = threading.Lock()

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of `key`, made outside the lock when it is not there. What `make` raises is not kept."""
        with self._lock:
            known = self._entries.get(key)
        if known is not None:
            return known
        value = make()
        with self._lock:
            self._entries.put(key, value)
        return value
