"""Backfills: the runs of past occurrences, as a job that is tracked. A row with a cursor that one advance can move.

Whoever advances it may die at any line: an occurrence is started together with the row that says so, and going over it
again finds that row.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Final

import msgspec

from ductor.app.allowance import Allowance
from ductor.app.headers import sort_time
from ductor.app.refusals import invalid, not_found
from ductor.app.schedule_firing import Firing, active_run, counting, occurrence_run_id
from ductor.app.schedule_requests import Requests, ScheduleRequest, request_puts
from ductor.app.schedule_rows import (
    BACKFILL_PREFIX,
    KEPT_S,
    Decided,
    Occurrence,
    Overlap,
    Schedule,
    decode_occurrence,
    occurrence_put,
    occurrence_sk,
    read_schedule,
    schedule_pk,
    schedule_put,
)
from ductor.app.trigger import Cause
from ductor.model.recurrence import ScheduleKey
from ductor.ports import Clock, Expect, Index, Item, Op, Put, Table, UnavailableError
from ductor.schedules import Spec, next_after, preview

MAX_OCCURRENCES: Final = 1_000
PAGE: Final = 20
PAGES_AT_ONCE: Final = 2
"""What the request itself goes through; the sweeper does the rest."""

PAGES_PER_SWEEP: Final = 100
JOBS_PER_SWEEP: Final = 20
OPEN_PK: Final = "BACKFILLS"
_MAX_RACES: Final = 20


class BackfillStatus(StrEnum):
    """The states of a backfill; `stopped`: the schedule was gone before it was done."""

    RUNNING = "running"
    COMPLETED = "completed"
    STOPPED = "stopped"


class Range(msgspec.Struct, frozen=True):
    """From the first to the last instant, both included (epoch ms)."""

    start_at: int = 0
    end_at: int = 0


class BackfillRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which occurrences to run. An empty `overlap_policy` is allow_all: they all lie in the past.

    `said` is the range as it was written: what is relative to now names other instants when it is sent again.
    """

    range: Range = Range()
    said: tuple[str, ...] = ()
    overlap_policy: str = ""
    request_id: str = ""
    reason: str = ""


class Backfill(msgspec.Struct, frozen=True, kw_only=True):
    """A job. `started` runs are its own; `fired_before` occurrences had their run already. Times are epoch ms.

    Every occurrence up to `reached` is decided. `spec` is the timetable as it was when the job began.
    """

    request_id: str
    key: ScheduleKey
    range: Range
    spec: Spec
    overlap: Overlap
    actor: str
    created_at: int
    reached: int
    status: BackfillStatus = BackfillStatus.RUNNING
    started: int = 0
    fired_before: int = 0
    skipped: int = 0
    refused: int = 0
    finished_at: int = 0


class Backfills:
    """Begins, advances and shows backfills. Safe to use from several threads and processes."""

    def __init__(self, *, table: Table, firing: Firing, clock: Clock) -> None:
        self._table = table
        self._firing = firing
        self._clock = clock
        self._requests = Requests(table)

    def begin(
        self, schedule: Schedule, wanted: BackfillRequest, request: ScheduleRequest, overlap: Overlap
    ) -> Backfill:
        """Store the job and begin with it. An occurrence that has fired has its run already, and gets no second one.

        Idempotent by `request_id`. INVALID_ARGUMENT for a range that is empty or lies ahead, `BACKFILL_TOO_LARGE` for
        more than 1,000 occurrences.
        """
        known = self._requests.known(schedule.key, request)
        if known is not None:
            return self.get(schedule.key, request.request_id)
        now = self._clock.now_ms()
        check_range(schedule.spec, wanted.range, now)
        job = Backfill(
            request_id=request.request_id,
            key=schedule.key,
            range=wanted.range,
            spec=schedule.spec,
            overlap=overlap,
            actor=request.actor,
            created_at=now,
            reached=wanted.range.start_at - 1,
        )
        if self._table.write((_put(job, 0), *request_puts(schedule.key, request))) is not None:
            self._requests.known(schedule.key, request)
            return self.get(schedule.key, request.request_id)
        return self._advance(job, 1, Allowance(self._clock, PAGES_AT_ONCE))

    def get(self, key: ScheduleKey, request_id: str) -> Backfill:
        """How far a job is. NOT_FOUND `BACKFILL_NOT_FOUND`."""
        item = self._table.get(schedule_pk(key), _sk(request_id)) if request_id else None
        if item is None:
            raise not_found("BACKFILL_NOT_FOUND", "this schedule has no such backfill", "request_id")
        return _decode(item.body)

    def sweep(self) -> int:
        """Go on with jobs that are not done, the oldest first; how many there were."""
        allowed = Allowance(self._clock, PAGES_PER_SWEEP)
        page = self._table.query(OPEN_PK, index=Index.I3, limit=JOBS_PER_SWEEP)
        for found in page.items:
            item = self._table.get(found.pk, found.sk) if allowed.left > 0 else None
            job = _decode(item.body) if item is not None else None
            if item is not None and job is not None and job.status is BackfillStatus.RUNNING:
                self._advance(job, item.version, allowed)
        return len(page.items)

    def _advance(self, job: Backfill, version: int, allowed: Allowance) -> Backfill:
        """So many pages. Stops where somebody else was faster, or storage cannot be reached."""
        try:
            while allowed.left > 0:
                if job.status is not BackfillStatus.RUNNING:
                    break
                allowed.spend(1)
                after = self._page(job)
                if self._table.write((_put(after, version),)) is not None:
                    break
                job, version = after, version + 1
        except UnavailableError:
            pass  # the job is durable: the next sweep goes on from its cursor
        return job

    def _page(self, job: Backfill) -> Backfill:
        for _ in range(PAGE):
            instant = next_after(job.spec, job.reached)
            if instant is None or instant > job.range.end_at:
                return self._ended(job, BackfillStatus.COMPLETED)
            decided = self._one(job, instant)
            if decided is None:
                return self._ended(job, BackfillStatus.STOPPED)
            job = _counted(msgspec.structs.replace(job, reached=instant), decided)
        return job

    def _one(self, job: Backfill, instant: int) -> Occurrence | None:
        """Decide one occurrence; None when the schedule is gone."""
        for _ in range(_MAX_RACES):
            known = read_schedule(self._table, job.key)
            if known is None or not known[0].definition_id:
                return None
            item = self._table.get(schedule_pk(job.key), occurrence_sk(instant))
            before = decode_occurrence(item) if item is not None else None
            if before is not None and before.outcome is Decided.FIRED:
                return before
            decided = self._decide(job, *known, instant, item.version if item is not None else 0)
            if decided is not None:
                return decided
        raise UnavailableError(f"lost {_MAX_RACES} races in a row for {schedule_pk(job.key)}")

    def _decide(self, job: Backfill, schedule: Schedule, version: int, instant: int, stored: int) -> Occurrence | None:
        """Start it, unless the policy forbids; None after a lost race."""
        run_id = occurrence_run_id(job.key, instant)
        decided = Occurrence(
            scheduled_at=instant,
            outcome=Decided.FIRED,
            decided_at=self._clock.now_ms(),
            run_id=run_id,
            definition_version=schedule.definition_version,
            by=job.request_id,
        )
        active = active_run(self._table, schedule.active_run)
        if active and job.overlap is Overlap.SKIP:
            return msgspec.structs.replace(decided, outcome=Decided.SKIPPED, run_id=active)
        after = msgspec.structs.replace(counting(schedule, decided), last=schedule.last, active_run=active or run_id)
        sk = occurrence_sk(instant)
        also: tuple[Op, ...] = (schedule_put(after, version), occurrence_put(job.key, sk, decided, stored))
        cause = Cause(run_id=run_id, scheduled_at=instant, by=job.actor)
        done = self._firing.start(schedule, cause, decided, also)
        if done is None or isinstance(done, Occurrence):
            return done
        return decided

    def _ended(self, job: Backfill, status: BackfillStatus) -> Backfill:
        return msgspec.structs.replace(job, status=status, finished_at=self._clock.now_ms())


def check_range(spec: Spec, wanted: Range, now: int) -> None:
    """Refuse what is no range of the past, or too much at once."""
    if not 0 < wanted.start_at <= wanted.end_at:
        raise invalid("FIELD_INVALID", "give start_at and an end_at that is not before it", "start_at")
    if wanted.end_at > now:
        raise invalid("FIELD_INVALID", "end_at must not lie ahead; the schedule itself fires what is to come", "end_at")
    found = preview(spec, wanted.start_at - 1, MAX_OCCURRENCES)
    if len(found) == MAX_OCCURRENCES and (next_after(spec, found[-1]) or now + 1) <= wanted.end_at:
        message = f"more than {MAX_OCCURRENCES} occurrences; backfill a shorter time"
        raise invalid("BACKFILL_TOO_LARGE", message, "end_at")


def _counted(job: Backfill, decided: Occurrence) -> Backfill:
    if decided.outcome is Decided.SKIPPED:
        return msgspec.structs.replace(job, skipped=job.skipped + 1)
    if decided.outcome is Decided.REFUSED:
        return msgspec.structs.replace(job, refused=job.refused + 1)
    if decided.by == job.request_id:
        return msgspec.structs.replace(job, started=job.started + 1)
    return msgspec.structs.replace(job, fired_before=job.fired_before + 1)


def _sk(request_id: str) -> str:
    return BACKFILL_PREFIX + hashlib.sha256(request_id.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def _put(job: Backfill, version: int) -> Put:
    is_open = job.status is BackfillStatus.RUNNING
    sort = f"{sort_time(job.created_at)}#{schedule_pk(job.key)}#{_sk(job.request_id)}"
    item = Item(
        pk=schedule_pk(job.key),
        sk=_sk(job.request_id),
        version=version + 1,
        body=_encode(job),
        ttl=job.created_at // 1000 + KEPT_S,
        i3=(OPEN_PK, sort) if is_open else None,
    )
    return Put(item, version or Expect.ABSENT)


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Backfill).decode
