"""The queues of bridge tasks, as rows: one partition per tenant, environment and task type, in order of time.

A row stands at the moment from which somebody may take it: the oldest unclaimed task comes first, a claimed one is
looked at again when its worker's lease is over. A row is a hint and never a claim; the attempt's own row decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ductor.app.headers import sort_time
from ductor.model.attempt import AttemptTask
from ductor.ports import Delete, Expect, Item, Op, Put, Table

KEPT_MS: Final = 30 * 86_400_000
"""How long a row stays that nobody looks at again; a task that is still wanted is put back by its run."""

_END: Final = "~"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AttemptTask).decode


class Waiting(msgspec.Struct, frozen=True):
    """A row of a queue: the task, and since when (epoch ms) somebody may look at it."""

    task: AttemptTask
    place: int


class BridgeQueue:
    """Reads and writes the rows of all queues. A task's `action` is its task type."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def put(self, task: AttemptTask, at: int) -> None:
        """Make the task visible from `at` on. A row that stands there already stays."""
        self._table.write((Put(_item(task, at), Expect.ABSENT),))

    def remove(self, task: AttemptTask, at: int) -> None:
        """Forget the row that stands at `at`; there may be none."""
        self._table.write((Delete(queue_pk(task), place_sk(task, at)),))

    def move(self, waiting: Waiting, to: int) -> None:
        """Look at the task again at `to`, and not before."""
        self._table.write(moved(waiting.task, waiting.place, to))

    def visible(self, tenant: str, environment: str, task_types: Iterable[str], now: int, limit: int) -> list[Waiting]:
        """Up to `limit` rows of each task type that may be looked at by `now`, the oldest of them all first."""
        found: list[tuple[str, Waiting]] = []
        for task_type in task_types:
            rows = self._table.query(
                f"BQ#{tenant}#{environment}#{task_type}", low="", high=f"{sort_time(now)}{_END}", limit=limit
            ).items
            found += [(row.sk, Waiting(_decode(row.body), int(row.sk.partition("#")[0]))) for row in rows]
        return [waiting for _, waiting in sorted(found, key=lambda one: one[0])]


def moved(task: AttemptTask, place: int, to: int) -> tuple[Op, ...]:
    """The writes that take the row of a task from one place to another."""
    return () if place == to else (Delete(queue_pk(task), place_sk(task, place)), placed(task, to))


def placed(task: AttemptTask, at: int) -> Put:
    """The write that puts the row of a task into a place, for a month at most."""
    return Put(msgspec.structs.replace(_item(task, at), ttl=(at + KEPT_MS) // 1000))


def queue_pk(task: AttemptTask) -> str:
    """The partition of the task's queue."""
    return f"BQ#{task.tenant}#{task.environment}#{task.action}"


def place_sk(task: AttemptTask, at: int) -> str:
    """Sort key of the task's row at a moment: tasks of one moment stand in the order of their names."""
    return f"{sort_time(at)}#{task.run_id}/{task.node}/{task.attempt:06d}"


def _item(task: AttemptTask, at: int) -> Item:
    return Item(pk=queue_pk(task), sk=place_sk(task, at), body=_encode(task))
