"""Wake-ups of runs: near ones wait in the timers queue, far ones in EventBridge Scheduler, which ends in that queue.

A wake-up may come early; whoever receives it arms it again for the rest. It is never armed away.
"""

from __future__ import annotations

import hashlib
import math
from datetime import UTC, datetime
from typing import Final

import msgspec
from botocore.exceptions import ClientError

from ductor.adapters.aws import faults
from ductor.adapters.aws.clients import Clients
from ductor.adapters.aws.scheduler import EXISTS, ScheduleTarget
from ductor.ports import Clock, UnavailableError

MINUTE_MS: Final = 60_000
MAX_DELAY_MS: Final = 900_000
"""SQS delays a message by 15 minutes at most."""

MAX_AHEAD_MS: Final = 366 * 24 * 60 * MINUTE_MS
"""A schedule is never set farther ahead; what is left then is armed again."""

_GRID_MS: Final = 30 * 24 * 60 * MINUTE_MS


class Wake(msgspec.Struct, frozen=True):
    """The body of a message in the timers queue: which run, and when (epoch ms)."""

    run_id: str
    at: int


class AwsTimers:
    """`ports.Timers` on SQS and EventBridge Scheduler. A wake-up comes up to two minutes early: check its deadline.

    `queue_url` is the queue that `target` names, where near wake-ups wait themselves.
    """

    def __init__(self, target: ScheduleTarget, queue_url: str, clients: Clients, clock: Clock) -> None:
        self._target = target
        self._queue_url = queue_url
        self._clients = clients
        self._clock = clock

    def arm(self, run_id: str, at: int) -> None:
        now = self._clock.now_ms()
        if at - now <= MAX_DELAY_MS:
            self._delay(Wake(run_id, at), max(0, at - now))
        else:
            self._schedule(Wake(run_id, at), fire_time(at, now))

    def disarm(self, run_id: str, at: int) -> bool:
        """Take back the schedule of a far wake-up, so that waits which ended early do not fill the quota of schedules.

        Best effort: False when it stays, and then it fires for nothing. A near one is in the queue, and stays there.
        """
        now = self._clock.now_ms()
        if at - now <= MAX_DELAY_MS:
            return True
        try:
            with faults.translated():
                self._target.delete(self._clients, schedule_name(Wake(run_id, at), fire_time(at, now)))
        except (UnavailableError, faults.AwsRefusedError):
            return False
        return True

    def _delay(self, wake: Wake, delay_ms: int) -> None:
        with faults.translated():
            self._clients("sqs").send_message(
                QueueUrl=self._queue_url, MessageBody=_text(wake), DelaySeconds=math.ceil(delay_ms / 1000)
            )

    def _schedule(self, wake: Wake, fire_at: int) -> None:
        when = datetime.fromtimestamp(fire_at / 1000, UTC)
        name, expression = schedule_name(wake, fire_at), f"at({when:%Y-%m-%dT%H:%M:%S})"
        request = self._target.request(name, expression, "UTC", _text(wake))
        with faults.translated():
            try:
                self._clients("scheduler").create_schedule(**request, ActionAfterCompletion="DELETE")
            except ClientError as error:
                if faults.code_of(error) != EXISTS:
                    raise  # else the same wake-up is armed already


def fire_time(at: int, now: int) -> int:
    """When a schedule for `at` must fire: on a full minute, at least one before `at`, at most 366 days from `now`.

    Scheduler fires anywhere within that minute, so never after `at`. Beyond the 366 days the time lies on a grid of
    30 days, so that arming the same wake-up again soon gives the same schedule.
    """
    wanted = (at - MINUTE_MS) // MINUTE_MS * MINUTE_MS
    farthest = now + MAX_AHEAD_MS
    return wanted if wanted <= farthest else farthest // _GRID_MS * _GRID_MS


def schedule_name(wake: Wake, fire_at: int) -> str:
    """At most 64 characters, the same for the same wake-up. A deadline farther away gets a new one at each hop."""
    return "wake-" + hashlib.sha256(f"{wake.run_id}/{wake.at}/{fire_at}".encode()).hexdigest()[:48]


def read_wake(body: bytes | str) -> Wake:
    """The wake-up in a message. Raises msgspec.DecodeError, ValidationError."""
    return _decode(body)


def _text(wake: Wake) -> str:
    return _encode(wake).decode()


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Wake).decode
