"""Attempts that a worker holds, and how their executions went: what passes between claiming, running and finishing."""

from __future__ import annotations

import threading
from typing import Final

import msgspec

from ductor.actions.context import StopSign
from ductor.actions.registry import Action
from ductor.app.attempts import Row
from ductor.model.attempt import AttemptTask
from ductor.model.errors import StepError
from ductor.model.intent import Intent
from ductor.model.json import JSON

NOT_OURS: Final = -1
"""The delivery of a claim that was given back: nothing renews, fails or times it out any more."""


class Claimed:
    """An attempt that this worker holds. `row` is guarded by `lock`: the watchdog and the action both touch it.

    `lock` is taken inside a unit, never around one: whoever waits for its turn to write must not hold it.
    `delivery` tells this claim from a later one of the same attempt, by whomever. `deadline` is set when the action
    begins, `limit_ms` before: waiting for a free thread is no part of a timeout.
    """

    def __init__(self, row: Row, receipt: str, action: Action | None, limit_ms: int, now: int) -> None:
        self.row = row
        self.receipt = receipt
        self.delivery = row.attempt.deliveries
        self.action = action
        self.limit_ms = limit_ms
        self.deadline = 0
        self.beat_at = now
        self.written_at = now
        self.details: JSON = row.attempt.heartbeat_details
        self.usage = row.attempt.usage
        self.lock = threading.Lock()
        self.stop = StopSign()

    @property
    def task(self) -> AttemptTask:
        return self.row.attempt.task


class Finished(msgspec.Struct):
    """How the execution of a claimed attempt went. `data` are the encoded bytes of `output`.

    `begun` False: the storage did not give the input, or did not let a step of several moves go on; the attempt is to
    be delivered again.
    """

    claimed: Claimed
    output: JSON = None
    data: bytes = b""
    error: StepError | None = None
    begun: bool = True


class Claims(msgspec.Struct):
    """What became of a batch of tasks: held by us, to acknowledge, to retry after ms, to bury, runs to tell."""

    held: list[Claimed] = []
    done: list[str] = []
    later: list[tuple[str, int]] = []
    buried: list[tuple[str, str]] = []
    replies: list[Intent] = []


def overrun(claimed: Claimed, now: int) -> StepError | None:
    """Why a running attempt must end at `now`, if it must."""
    if claimed.row.attempt.status.ended or not claimed.deadline:
        return None
    if now >= claimed.deadline:
        return StepError("ATTEMPT_TIMEOUT", "the attempt ran past its timeout")
    limit = claimed.task.heartbeat_timeout_ms
    if limit and now >= claimed.beat_at + limit:
        return StepError("HEARTBEAT_TIMEOUT", f"the attempt gave no sign of life for {limit} ms")
    return None
