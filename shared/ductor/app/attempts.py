"""Attempt rows: how an attempt is claimed, renewed, ended and revoked, each by one conditional write.

An attempt ends first in its row; everybody else only reports what the row says. A lost condition is answered by
the winner's row, so two writers never both believe that they ended it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ductor.app.headers import run_pk
from ductor.model.attempt import Attempt, AttemptStatus, AttemptTask, attempt_sk
from ductor.model.errors import StepError
from ductor.model.intent import Intent, IntentKind
from ductor.model.payload import INLINE_BYTES, Inline, Payload, RowRef
from ductor.ports import Conflict, Expect, Item, Op, Put, Table

MAX_DELIVERIES: Final = 3
"""How often one attempt is handed to a worker before it counts as lost for good."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Attempt).decode


class Row(msgspec.Struct):
    """An attempt as stored, with the version that its next write must find."""

    attempt: Attempt
    version: int


class Attempts:
    """The attempt rows of all runs."""

    def __init__(self, table: Table, max_deliveries: int = MAX_DELIVERIES) -> None:
        self._table = table
        self._max_deliveries = max_deliveries

    def read(self, run_id: str, node: str, attempt: int) -> Row | None:
        """The row, or None while nobody has claimed the attempt."""
        return _row(self._table.get(run_pk(run_id), attempt_sk(node, attempt)))

    def of(self, item: Item | None) -> Row | None:
        """The row in an item that was read elsewhere."""
        return _row(item)

    def create(self, attempt: Attempt, also: tuple[Op, ...] = ()) -> Row | None:
        """Write the first row of an attempt. None when it was ours to write, else the row that is there already.

        `also` are writes without a condition that happen with it, or not at all.
        """
        conflict = self._table.write((Put(_item(attempt, 1), Expect.ABSENT), *also))
        return None if conflict is None else _winner(conflict)

    def replace(self, row: Row, changed: Attempt, also: tuple[Op, ...] = ()) -> Row | None:
        """Write `changed` over `row`, and `also`. None when it was stored (`row` follows), else the row that won."""
        conflict = self._table.write((Put(_item(changed, row.version + 1), row.version), *also))
        if conflict is not None:
            return _winner(conflict)
        row.attempt = changed
        row.version += 1
        return None

    def take_over(self, row: Row, worker: str, now: int, lease_until: int) -> Row:
        """Claim an attempt whose lease was lost, or end it: WORKER_LOST after its last delivery, REVOKED when it had

        been asked to stop. The row then: `row` itself when that was ours to write, another object when somebody else
        was first.
        """
        changed = self.forsaken(row.attempt, now) or delivered(row.attempt, worker, now, lease_until)
        # Tried once: if the row has changed, its worker may have come back to life.
        return self.replace(row, changed) or row

    def forsaken(self, attempt: Attempt, now: int) -> Attempt | None:
        """How an attempt that nobody holds any more ends, None when it is to be delivered once more."""
        if attempt.cancel_requested:
            return msgspec.structs.replace(attempt, status=AttemptStatus.REVOKED, finished_at=now)
        if attempt.deliveries - attempt.returned < self._max_deliveries:
            return None
        error = StepError("WORKER_LOST", f"no worker finished the attempt in {attempt.deliveries} deliveries")
        return msgspec.structs.replace(attempt, status=AttemptStatus.LOST, finished_at=now, error=error)

    def inspect(self, task: AttemptTask, now: int) -> Intent | AttemptTask | None:
        """What the coordinator must do about an attempt that it waits for.

        Its end, if the row has one; the task, to be sent again, if nobody has claimed it or the claim's lease is
        lost; None while a worker holds it.
        """
        row = self.read(task.run_id, task.node, task.attempt)
        if row is None:
            return task
        if row.attempt.status.ended:
            return finished_intent(row.attempt, now)
        return task if row.attempt.lease_until < now else None

    def revoke(self, task: AttemptTask, now: int) -> Intent | None:
        """Close an attempt that nobody should run any more.

        Unclaimed or with a lost lease it ends here; a live worker is asked to stop and ends it itself (None).
        """
        revoked = Attempt(task=task, status=AttemptStatus.REVOKED, deliveries=0, started_at=now, finished_at=now)
        row = self.create(revoked)
        if row is None:
            return finished_intent(revoked, now)
        while not row.attempt.status.ended:
            lost = row.attempt.lease_until < now
            if row.attempt.cancel_requested and not lost:
                return None
            changed = (
                msgspec.structs.replace(row.attempt, status=AttemptStatus.REVOKED, finished_at=now)
                if lost
                else msgspec.structs.replace(row.attempt, cancel_requested=True)
            )
            winner = self.replace(row, changed)
            if winner is None and not lost:
                return None
            row = winner or row
        return finished_intent(row.attempt, now)


def delivered(attempt: Attempt, worker: str, now: int, lease_until: int) -> Attempt:
    """The attempt as the next worker has it."""
    return msgspec.structs.replace(
        attempt,
        worker=worker,
        deliveries=attempt.deliveries + 1,
        lease_until=lease_until,
        started_at=now,
        heartbeat_at=now,
        idle=False,
    )


def finished_intent(attempt: Attempt, now: int) -> Intent:
    """What the row of an ended attempt tells its run. The same row always gives the same id."""
    task, late = attempt.task, attempt.late_output is not None
    return Intent(
        id=f"{task.run_id}/{task.node}/{task.attempt}/{'late' if late else 'finished'}",
        run_id=task.run_id,
        kind=IntentKind.ATTEMPT_FINISHED,
        at=now,
        node=task.node,
        attempt=task.attempt,
        generation=task.generation,
        status=attempt.status,
        output=_reference(task, attempt.output),
        error=attempt.error,
        late=attempt.late_output,
        ran_ms=max(0, attempt.finished_at - attempt.started_at),
    )


def _reference(task: AttemptTask, output: Payload) -> Payload:
    """How the run refers to an output: small ones travel, those in the attempt row are read there."""
    if not isinstance(output, Inline):
        return output
    size = len(_encode(output.value))
    if size <= INLINE_BYTES:
        return output
    return RowRef(attempt_sk(task.node, task.attempt), size)


def _item(attempt: Attempt, version: int) -> Item:
    task = attempt.task
    return Item(pk=run_pk(task.run_id), sk=attempt_sk(task.node, task.attempt), version=version, body=_encode(attempt))


def _row(item: Item | None) -> Row | None:
    return None if item is None else Row(_decode(item.body), item.version)


def _winner(conflict: Conflict) -> Row:
    """The row that stood in the way; an attempt row is never deleted while its run lives."""
    row = _row(conflict.current)
    if row is None:
        raise LookupError("an attempt row vanished between two writes")
    return row
