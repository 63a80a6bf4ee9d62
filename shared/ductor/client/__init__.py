"""For programs that work for Ductor from outside: the worker of bridge steps. Needs a server's address and a key."""

from __future__ import annotations

from ductor.client.access import Access, AccessError
from ductor.client.errors import (
    ApiError,
    FatalTaskError,
    RetryableTaskError,
    TaskCancelled,
    TaskError,
    UnreachableError,
)
from ductor.client.task import Task
from ductor.client.worker import Worker

__all__ = [
    "Access",
    "AccessError",
    "ApiError",
    "FatalTaskError",
    "RetryableTaskError",
    "Task",
    "TaskCancelled",
    "TaskError",
    "UnreachableError",
    "Worker",
]
