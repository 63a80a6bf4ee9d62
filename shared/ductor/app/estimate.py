"""From what a run has counted to what AWS bills for it: the deployment's own rules, in AWS's units. Pure."""

from __future__ import annotations

import math
from typing import Final

import msgspec

from ductor.app.prices import Usage
from ductor.model.usage import Used

FULL_BATCH: Final = 10
"""Messages that one invocation handles, and one request to a queue carries, when there is much to do."""

KB: Final = 1024
READ_KB: Final = 4
ROW_FRAME: Final = 340
"""Bytes of a header row besides its body: keys, index entries, names."""

ATTEMPT_ROW: Final = 590
"""Bytes of an attempt row without a large result."""

ADMISSION_WRITES: Final = 4
"""The header, its two list entries, and the row that finds it by its family."""

API_READS: Final = 3
"""The definition and the environment."""

TRACED: Final = 0.05
PLATFORM_LOG: Final = 680
"""Bytes: what Lambda writes of an invocation, and our metrics of it."""

API_LOG: Final = 730


class Duration(msgspec.Struct, frozen=True):
    """Milliseconds of a function: for an invocation, and for each thing that it does."""

    invocation: float
    each: float
    gb: float = 0.5


# Measured with `make bench-cost`: CPU time at this memory, and declared waits for the services.
TICKS: Final = Duration(12, 28)
ATTEMPTS: Final = Duration(12, 17)
WAKES: Final = Duration(10, 2)
ADMISSION: Final = Duration(36, 0, 1.0)


class Facts(msgspec.Struct, frozen=True):
    """What an estimate needs of a run besides its counts. `packed`: its header's stored size by its plain size."""

    called: bool
    packed: float


def estimate(used: Used, facts: Facts, at_least: int) -> Usage:
    """The usage of a run so far when each batch holds so many messages (1 to 10), of this run or of others.

    A run that does much at once fills its batches by itself.
    """
    batch = min(FULL_BATCH, max(at_least, used.intents / max(1, used.commits)))
    usage = Usage()
    for part in (_admission(facts), _ticks(used, facts, batch), _attempts(used, batch), _wakes(used, batch)):
        usage.add(part)
    usage.add(_events(used, batch))
    return usage


def _admission(facts: Facts) -> Usage:
    usage = Usage(table_writes=ADMISSION_WRITES, fifo_requests=1)
    if facts.called:
        usage.add(Usage(table_reads=API_READS, api_requests=1, log_bytes=API_LOG - PLATFORM_LOG))
        usage.add(_invoked(1, 0, ADMISSION))
    return usage


def _ticks(used: Used, facts: Facts, batch: float) -> Usage:
    commits = max(1, used.commits)
    header = _units((used.headers / commits) * facts.packed + ROW_FRAME)
    history = _units(used.history / commits * _packing(used.history / commits, facts) + 70)
    pages = used.pages * _units(used.page_bytes / max(1, used.pages) * facts.packed + 100)
    usage = Usage(
        table_writes=used.commits * header
        + used.shared * header
        + max(0, used.commits - 1) * history
        + used.rows * _units(used.row_bytes / max(1, used.rows) + 100)
        + 2 * pages
        + used.moves,
        table_reads=used.commits * max(1, header / READ_KB) + used.reads - used.commits,
        blob_puts=used.blobs,
        blob_gets=used.blob_reads,
        fifo_requests=2 * used.intents / batch,
    )
    usage.add(_invoked(used.intents / batch, used.commits, TICKS))
    return usage


def _attempts(used: Used, batch: float) -> Usage:
    result = _units(ATTEMPT_ROW + used.outputs / max(1, used.tasks))
    usage = Usage(
        table_writes=used.tasks * (1 + result) + used.beats,
        queue_requests=3 * used.tasks / batch + used.beats,
        fifo_requests=used.tasks / batch,
    )
    usage.add(_invoked(used.tasks / batch, used.tasks, ATTEMPTS))
    usage.add(Usage(gb_seconds=used.ran_ms / 1000 * ATTEMPTS.gb / batch))
    return usage


def _wakes(used: Used, batch: float) -> Usage:
    """A wake-up that nobody needs any more fires all the same."""
    fired = used.wakes + used.far_wakes
    usage = Usage(
        queue_requests=used.wakes + used.far_wakes + 2 * fired / batch,
        fifo_requests=fired / batch,
        schedules=used.far_wakes,
    )
    usage.add(_invoked(fired / batch, fired, WAKES))
    return usage


def _events(used: Used, batch: float) -> Usage:
    """Whoever tells of the runs of a batch first looks whether a definition listens."""
    return Usage(bus_events=used.events, table_reads=used.events / batch)


def _invoked(invocations: float, things: float, duration: Duration) -> Usage:
    milliseconds = invocations * duration.invocation + things * duration.each
    return Usage(
        invocations=invocations,
        gb_seconds=milliseconds / 1000 * duration.gb,
        log_bytes=invocations * PLATFORM_LOG,
        traces=invocations * TRACED,
    )


def _packing(size: float, facts: Facts) -> float:
    """Rows of up to 600 bytes are stored as they are."""
    return facts.packed if size > 600 else 1.0


def _units(size: float) -> float:
    """Write units of rows of that size on average: at least 1, and half of one more for what is begun of the next."""
    return 1.0 if size <= KB else max(1.0, math.floor(size / KB * 2 + 1) / 2)
