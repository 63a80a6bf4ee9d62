"""Fires schedules: decides each occurrence once, in order, and starts its run in the write that says so.

Who calls, when, and how often changes nothing of what fires: a call only says up to which instant. The row's version
makes one of several callers win, and the run's id derives from the occurrence.
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from ductor.app.admission import TriggerRequest
from ductor.app.allowance import Allowance
from ductor.app.descent import readable
from ductor.app.headers import HEAD, run_pk
from ductor.app.library import Library
from ductor.app.schedule_moves import ScheduleMoves
from ductor.app.schedule_rows import (
    DUE_SHARDS,
    UNTOLD,
    Decided,
    Occurrence,
    Overlap,
    Schedule,
    due_keys,
    occurrence_put,
    occurrence_sk,
    reaching,
    read_key,
    read_schedule,
    schedule_pk,
    schedule_put,
)
from ductor.app.trigger import Cause, Triggered, Triggers
from ductor.model.errors import ErrorCode, RefusedError, clip
from ductor.model.json import JSON
from ductor.model.lineage import SUCCESSOR_DUTY, derived_run_id
from ductor.model.recurrence import ScheduleKey
from ductor.ports import Clock, Index, Op, Table, UnavailableError
from ductor.schedules import preview

BY_SCHEDULE: Final = "schedule"
"""Who shows as the creator of such a run."""

OVERDUE_MS: Final = 120_000
"""How long after its time an occurrence counts as not called for: outside schedulers are a minute late, queues too."""

SCHEDULES_AT_ONCE: Final = 100
OCCURRENCES_AT_ONCE: Final = 100
"""Of one schedule, before others have their turn."""

MAX_COUNTED: Final = 1_000
MAX_SUCCESSORS: Final = 1_000
_MAX_TEXT: Final = 256

_log = logging.getLogger("ductor")


class Firing:
    """Safe to use from several threads and processes.

    An occurrence fires when its instant and its jitter have passed. One that is later than the catch-up window, and
    later than `grace_ms`, is missed: recorded, not fired. `grace_ms` is what whoever calls may be late in any case.
    """

    def __init__(
        self,
        *,
        table: Table,
        triggers: Triggers,
        library: Library,
        moves: ScheduleMoves,
        clock: Clock,
        grace_ms: int,
    ) -> None:
        self._table = table
        self._triggers = triggers
        self._library = library
        self._moves = moves
        self._clock = clock
        self._grace_ms = grace_ms

    def fire_due(self, overdue_ms: int = 0) -> list[ScheduleKey]:
        """Decide every occurrence that was due `overdue_ms` ago, for some seconds; the schedules that had one.

        What fails in one schedule is logged and stays due; it stops no other. Raises UnavailableError when the store
        cannot be reached: for more than one of them, or for all.
        """
        now = self._clock.now_ms()
        allowed = Allowance(self._clock, SCHEDULES_AT_ONCE * DUE_SHARDS)
        keys = due_keys(self._table, now - overdue_ms, SCHEDULES_AT_ONCE)
        fired: list[ScheduleKey] = []
        away: UnavailableError | None = None
        for key in keys:
            if allowed.left <= 0:
                break
            try:
                if self._guarded(key, now):
                    fired.append(key)
            except UnavailableError as fault:
                if away is not None:
                    raise
                away = fault
        if away is not None and not fired:
            raise away
        return fired

    def sweep(self) -> int:
        """Fire what nobody called for, and tell the outside scheduler what it does not know; how many schedules."""
        late = self.fire_due(OVERDUE_MS)
        for key in late:
            self._moves.repair(key)
        page = self._table.query(UNTOLD, index=Index.I2, limit=SCHEDULES_AT_ONCE)
        untold = [read_key(item.pk) for item in page.items]
        for key in untold:
            self._moves.settle(key)
        return len(late) + len(untold)

    def advance(self, key: ScheduleKey, until: int) -> int:
        """Decide every occurrence up to the instant `until` (epoch ms), in order.

        0 when that is done, else when to call again (epoch ms): the next one's jitter is not over, or there are many.
        """
        for _ in range(OCCURRENCES_AT_ONCE):
            known = read_schedule(self._table, key)
            if known is None or not known[0].live or not 0 < known[0].next_at <= until:
                return 0
            now = self._clock.now_ms()
            if known[0].due_at > now:
                return known[0].due_at
            self._decide(*known, now)
        return self._clock.now_ms()

    def start(
        self, schedule: Schedule, cause: Cause, occurrence: Occurrence, also: tuple[Op, ...]
    ) -> Triggered | Occurrence | None:
        """Start the run of an occurrence with what it belongs to; the occurrence as refused, None after a lost race.

        A run that was there before is only entered. Raises UnavailableError for what may succeed at the next try.
        """
        request = TriggerRequest(input=self._input(schedule))
        try:
            done = self._triggers.start_with(schedule.key.tenant, schedule.definition_id, request, cause, also)
        except RefusedError as refused:
            if refused.error_code is ErrorCode.ABORTED:
                raise UnavailableError(refused.message) from refused  # others were faster: it may go now
            code = refused.violations[0].code if refused.violations else refused.error_code.value
            return msgspec.structs.replace(
                occurrence,
                outcome=Decided.REFUSED,
                run_id="",
                code=code,
                message=clip(refused.message, _MAX_TEXT),
            )
        if done is not None and done.repeated and self._table.write(also) is not None:
            return None
        return done

    def _guarded(self, key: ScheduleKey, until: int) -> bool:
        try:
            self.advance(key, until)
        except UnavailableError:
            raise
        except Exception:  # noqa: BLE001 - it stays due and is tried again; the other schedules go on
            _log.exception("schedule %s could not be fired; it is tried again", schedule_pk(key))
            return False
        return True

    def _decide(self, schedule: Schedule, version: int, now: int) -> None:
        """Decide the next occurrence. A lost race changes nothing: whoever won has decided, or it is tried again."""
        oldest = now - max(schedule.catch_up_ms, self._grace_ms)
        if schedule.due_at < oldest:
            self._miss(schedule, version, oldest, now)
            return
        active = active_run(self._table, schedule.active_run) if schedule.overlap is Overlap.SKIP else ""
        if active:
            skipped = self._occurrence(schedule, Decided.SKIPPED, now, run_id=active)
            self._enter(msgspec.structs.replace(schedule, active_run=active), version, skipped)
        else:
            self._fire(schedule, version, now)

    def _fire(self, schedule: Schedule, version: int, now: int) -> None:
        run_id = occurrence_run_id(schedule.key, schedule.next_at)
        fired = self._occurrence(schedule, Decided.FIRED, now, run_id=run_id)
        cause = Cause(run_id=run_id, scheduled_at=schedule.next_at, by=BY_SCHEDULE)
        also = self._ops(msgspec.structs.replace(schedule, active_run=run_id), version, fired)
        done = self.start(schedule, cause, fired, also)
        if isinstance(done, Occurrence):
            self._enter(schedule, version, done)
        elif done is None:
            self._pass(schedule, version)

    def _miss(self, schedule: Schedule, version: int, oldest: int, now: int) -> None:
        """Pass over all that is too late, in one step: it may be years of it."""
        first = schedule.next_at
        until = max(first, oldest - schedule.jitter_ms - 1)
        ahead = [first, *schedule.owed[1:], *preview(schedule.spec, max(schedule.reached, first), MAX_COUNTED)]
        count = sum(instant <= until for instant in ahead)
        missed = self._occurrence(schedule, Decided.MISSED, now, count=count, until=until)
        self._enter(schedule, version, missed)

    def _enter(self, schedule: Schedule, version: int, occurrence: Occurrence) -> None:
        if self._table.write(self._ops(schedule, version, occurrence)) is not None:
            self._pass(schedule, version)

    def _pass(self, schedule: Schedule, version: int) -> None:
        """Go on after an occurrence that was decided before, by a backfill. Nothing when the schedule has changed."""
        if self._table.get(schedule_pk(schedule.key), occurrence_sk(schedule.next_at)) is not None:
            self._table.write((schedule_put(self._reaching(schedule, schedule.next_at), version),))

    def _ops(self, schedule: Schedule, version: int, occurrence: Occurrence) -> tuple[Op, ...]:
        counted = counting(schedule, occurrence)
        after = self._reaching(counted, max(occurrence.scheduled_at, occurrence.until))
        return (
            schedule_put(after, version),
            occurrence_put(schedule.key, occurrence_sk(occurrence.scheduled_at), occurrence),
        )

    def _reaching(self, schedule: Schedule, instant: int) -> Schedule:
        """After the last occurrence of all, nobody needs to call any more."""
        after = reaching(schedule, instant)
        return after if after.next_at else self._moves.untold(after, self._clock.now_ms())

    def _occurrence(
        self, schedule: Schedule, outcome: Decided, now: int, *, run_id: str = "", count: int = 1, until: int = 0
    ) -> Occurrence:
        return Occurrence(
            scheduled_at=schedule.next_at,
            outcome=outcome,
            decided_at=now,
            run_id=run_id,
            definition_version=schedule.definition_version,
            count=count,
            until=until,
        )

    def _input(self, schedule: Schedule) -> JSON:
        definition = self._library.load(schedule.key.tenant, schedule.definition_id)[1]
        given = definition.schedule.get("input") if isinstance(definition.schedule, dict) else None
        return {} if given is None else given


def counting(schedule: Schedule, occurrence: Occurrence) -> Schedule:
    """The schedule with one more outcome in its counts."""
    name = occurrence.outcome.value
    counted = {name: getattr(schedule, name) + occurrence.count, "last": occurrence}
    return msgspec.structs.replace(schedule, **counted)


def occurrence_run_id(key: ScheduleKey, instant: int) -> str:
    """The one run of an occurrence, whichever version starts it and how often it is tried."""
    return derived_run_id("occurrence", key.tenant, key.family_slug, key.environment, instant)


def active_run(table: Table, run_id: str) -> str:
    """The run that still goes on for `run_id`: itself or, after continue-as-new, its last successor. Empty for none.

    What cannot be read, or is not there yet, counts as active; what has been removed does not.
    """
    awaited = ""
    for _ in range(MAX_SUCCESSORS):
        item = table.get(run_pk(run_id), HEAD) if run_id else None
        if item is None:
            return awaited
        state = readable(item)
        if state is None or not state.status.terminal:
            return run_id
        if state.successor is None:
            return ""
        run_id = state.successor.run_id
        awaited = run_id if SUCCESSOR_DUTY in state.duties else ""
    return run_id
