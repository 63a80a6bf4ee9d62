"""In-memory ports: they behave like DynamoDB and SQS, repeat exactly for one seed, and never read real time."""

from __future__ import annotations

from ductor.testing.memory.queue import MemoryQueue
from ductor.testing.memory.secrets import MemorySecrets
from ductor.testing.memory.table import MemoryTable
from ductor.testing.memory.world import MemoryBlobs, MemoryTimers, NullUnit, SeededIds, VirtualClock

__all__ = [
    "MemoryBlobs",
    "MemoryQueue",
    "MemorySecrets",
    "MemoryTable",
    "MemoryTimers",
    "NullUnit",
    "SeededIds",
    "VirtualClock",
]
