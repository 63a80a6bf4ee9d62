"""Schedules as operators see and steer them. What fires, and when, is decided elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from ductor.app.access import Caller, Scope, require, require_authority
from ductor.app.backfills import Backfill, BackfillRequest, Backfills
from ductor.app.cursors import binding, page_size, seal, unseal
from ductor.app.library import Library
from ductor.app.refusals import aborted, invalid, not_found, precondition
from ductor.app.schedule_firing import Firing, active_run, counting
from ductor.app.schedule_moves import ScheduleMoves
from ductor.app.schedule_requests import (
    AUDIT_PREFIX,
    Requests,
    ScheduleRequest,
    decode_request,
    new_request,
    request_puts,
)
from ductor.app.schedule_rows import (
    OCCURRENCE_PREFIX,
    SPEC,
    Decided,
    Occurrence,
    Overlap,
    PausedBy,
    Schedule,
    decode_occurrence,
    decode_schedule,
    list_pk,
    occurrence_put,
    occurrence_sk,
    reaching,
    read_key,
    read_schedule,
    schedule_pk,
    schedule_put,
)
from ductor.app.trigger import Cause
from ductor.model.errors import ErrorCode, refuse
from ductor.model.lineage import derived_run_id
from ductor.model.recurrence import ScheduleKey
from ductor.ports import Clock, Ids, Index, Item, Op, Table
from ductor.schedules import preview
from ductor.schedules.occurrences import MAX_PREVIEW

DEFAULT_PREVIEW: Final = 10
MAX_RACES: Final = 50
_SLUG: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}", re.ASCII)

Row = TypeVar("Row")


class SchedulePage(msgspec.Struct, frozen=True):
    """One page of schedules by family; `next_cursor` is None on the last one."""

    items: tuple[Schedule, ...]
    next_cursor: str | None


class RowPage(msgspec.Struct, frozen=True):
    """One page of occurrences or requests, newest first."""

    items: tuple[Occurrence | ScheduleRequest, ...]
    next_cursor: str | None


class TriggeredNow(msgspec.Struct, frozen=True):
    """The run that an operator started. `repeated`: by an earlier request with the same id."""

    run_id: str
    environment: str
    repeated: bool


class Schedules:
    """The schedules of all tenants; every call sees those of its caller's tenant only.

    A schedule is named by its family and, where several environments have one, by the environment; else it is that of
    the key's default environment. Unknown ones and other tenants' are NOT_FOUND `SCHEDULE_NOT_FOUND` alike.
    Controls are idempotent by `request_id` per schedule; an empty one is never the same as another.
    """

    def __init__(
        self, *, table: Table, library: Library, firing: Firing, moves: ScheduleMoves, clock: Clock, ids: Ids
    ) -> None:
        self._table = table
        self._library = library
        self._firing = firing
        self._moves = moves
        self._clock = clock
        self._ids = ids
        self._requests = Requests(table)
        self.backfills = Backfills(table=table, firing=firing, clock=clock)

    def list(self, caller: Caller, limit: int | None, cursor: str | None) -> SchedulePage:
        """The schedules of newest versions, by family and environment. On AWS a new one may take a second to show."""
        require(caller, Scope.WORKFLOW_READ)
        size = page_size(limit)
        bound_to = binding(caller.tenant, ["schedules"])
        page = self._table.query(
            list_pk(caller.tenant), index=Index.I1, low=unseal(bound_to, cursor) or "", limit=size + 1
        )
        keys = [read_key(item.pk) for item in page.items]
        shown = [(schedule_pk(key), SPEC) for key in keys[:size]]
        rows = self._table.batch_get(shown)
        found = [decode_schedule(rows[place]) for place in shown if place in rows]
        visible = tuple(one for one in found if one.definition_id and caller.may_read(one.key.environment))
        following = f"{keys[size].family_slug}#{keys[size].environment}" if len(keys) > size else ""
        return SchedulePage(visible, seal(bound_to, following) if following else None)

    def get(self, caller: Caller, family_slug: str, environment: str = "") -> Schedule:
        """What the schedule fires, how far it has come, and what became of its occurrences."""
        require(caller, Scope.WORKFLOW_READ)
        return self._found(caller, family_slug, environment)[0]

    def preview(
        self, caller: Caller, family_slug: str, environment: str = "", count: int | None = None
    ) -> tuple[int, ...]:
        """The next `count` (10 unless asked otherwise, at most 1,000) instants from now, epoch ms, paused or not."""
        require(caller, Scope.WORKFLOW_READ)
        wanted = DEFAULT_PREVIEW if count is None else count
        if not 1 <= wanted <= MAX_PREVIEW:
            raise invalid("FIELD_INVALID", f"count must be between 1 and {MAX_PREVIEW}", "count")
        schedule, _ = self._found(caller, family_slug, environment)
        return tuple(preview(schedule.spec, self._clock.now_ms(), wanted))

    def occurrences(
        self, caller: Caller, family_slug: str, environment: str, limit: int | None, cursor: str | None
    ) -> RowPage:
        """What became of each occurrence of the last 400 days, newest first."""
        require(caller, Scope.WORKFLOW_READ)
        key = self._found(caller, family_slug, environment)[0].key
        return self._page(key, OCCURRENCE_PREFIX, decode_occurrence, limit, cursor)

    def audit(
        self, caller: Caller, family_slug: str, environment: str, limit: int | None, cursor: str | None
    ) -> RowPage:
        """The requests of operators, newest first."""
        require(caller, Scope.WORKFLOW_READ)
        key = self._found(caller, family_slug, environment)[0].key
        return self._page(key, AUDIT_PREFIX, decode_request, limit, cursor)

    def pause(
        self, caller: Caller, family_slug: str, environment: str = "", request_id: str = "", reason: str = ""
    ) -> Schedule:
        """Nothing fires until it is resumed; publications change nothing of that. Runs go on."""
        return self._control(caller, family_slug, environment, "pause", request_id, reason, self._paused)

    def resume(
        self, caller: Caller, family_slug: str, environment: str = "", request_id: str = "", reason: str = ""
    ) -> Schedule:
        """It fires again from now on. What lay in the pause is not caught up: that is what a backfill is for."""
        return self._control(caller, family_slug, environment, "resume", request_id, reason, self._resumed)

    def trigger_now(
        self,
        caller: Caller,
        family_slug: str,
        environment: str = "",
        request_id: str = "",
        reason: str = "",
        overlap_policy: str = "",
    ) -> TriggeredNow:
        """Start one run now, paused or not, as an occurrence of this moment.

        FAILED_PRECONDITION `SCHEDULE_RUN_ACTIVE` when the overlap policy (the schedule's, unless another is given) is
        skip and a run is active; otherwise refused as a trigger is.
        """
        require(caller, Scope.WORKFLOW_WRITE)
        wanted = overlap_of(overlap_policy)
        for _ in range(MAX_RACES):
            schedule, version = self._writable(caller, family_slug, environment)
            body = overlap_policy or None
            request = self._request(caller, "triggerNow", request_id, reason, body)
            known = self._requests.known(schedule.key, request)
            if known is not None:
                return TriggeredNow(known.run_id, schedule.key.environment, repeated=True)
            active = active_run(self._table, schedule.active_run)
            if active and (wanted or schedule.overlap) is Overlap.SKIP:
                raise _overlaps(active)
            done = self._start_now(schedule, version, request, active)
            if done is not None:
                return done
        raise _busy()

    def backfill(
        self, caller: Caller, family_slug: str, environment: str = "", wanted: BackfillRequest | None = None
    ) -> Backfill:
        """Start the runs of past occurrences that did not fire; see `Backfills.begin`."""
        require(caller, Scope.WORKFLOW_WRITE)
        schedule, _ = self._writable(caller, family_slug, environment)
        given = wanted or BackfillRequest()
        body = [list(given.said) or msgspec.to_builtins(given.range), given.overlap_policy]
        request = self._request(caller, "backfill", given.request_id, given.reason, body)
        return self.backfills.begin(schedule, given, request, overlap_of(given.overlap_policy) or Overlap.ALLOW_ALL)

    def get_backfill(self, caller: Caller, family_slug: str, environment: str, request_id: str) -> Backfill:
        """How far a backfill is. NOT_FOUND `BACKFILL_NOT_FOUND` for an unknown one."""
        require(caller, Scope.WORKFLOW_READ)
        return self.backfills.get(self._found(caller, family_slug, environment)[0].key, request_id)

    def _start_now(
        self, schedule: Schedule, version: int, request: ScheduleRequest, active: str
    ) -> TriggeredNow | None:
        """The run that is `active` stays the one that the timetable waits for."""
        key, now = schedule.key, self._clock.now_ms()
        run_id = derived_run_id("triggered", key.tenant, key.family_slug, key.environment, request.request_id)
        started = Occurrence(
            scheduled_at=now,
            outcome=Decided.FIRED,
            decided_at=now,
            run_id=run_id,
            definition_version=schedule.definition_version,
            by=request.request_id,
        )
        after = msgspec.structs.replace(counting(schedule, started), active_run=active or run_id)
        also: tuple[Op, ...] = (
            schedule_put(after, version),
            occurrence_put(key, occurrence_sk(now, request.request_id), started),
            *request_puts(key, msgspec.structs.replace(request, run_id=run_id)),
        )
        cause = Cause(run_id=run_id, scheduled_at=now, by=request.actor)
        done = self._firing.start(schedule, cause, started, also)
        if isinstance(done, Occurrence):
            raise precondition(done.code, done.message)
        return None if done is None else TriggeredNow(run_id, key.environment, repeated=False)

    def _control(
        self,
        caller: Caller,
        family_slug: str,
        environment: str,
        operation: str,
        request_id: str,
        reason: str,
        change: Callable[[Schedule], Schedule],
    ) -> Schedule:
        require(caller, Scope.WORKFLOW_WRITE)
        for _ in range(MAX_RACES):
            schedule, version = self._writable(caller, family_slug, environment)
            request = self._request(caller, operation, request_id, reason)
            if self._requests.known(schedule.key, request) is not None:
                return schedule
            after = change(schedule)
            ops = (schedule_put(after, version), *request_puts(schedule.key, request))
            if self._table.write(ops) is None:
                self._moves.settle(schedule.key)
                return after
        raise _busy()

    def _paused(self, schedule: Schedule) -> Schedule:
        paused = msgspec.structs.replace(schedule, paused=PausedBy.OPERATOR)
        return self._moves.untold(paused, self._clock.now_ms())

    def _resumed(self, schedule: Schedule) -> Schedule:
        if not schedule.paused:
            return schedule
        now = self._clock.now_ms()
        resumed = reaching(msgspec.structs.replace(schedule, paused=PausedBy.NOBODY), now)
        return self._moves.untold(resumed, now)

    def _request(
        self, caller: Caller, operation: str, request_id: str, reason: str, body: object = None
    ) -> ScheduleRequest:
        given = request_id or f"req-{self._ids.uuid()}"
        return new_request(caller, operation, given, reason, self._clock.now_ms(), body)

    def _writable(self, caller: Caller, family_slug: str, environment: str) -> tuple[Schedule, int]:
        found = self._found(caller, family_slug, environment)
        require_authority(caller, found[0].key.environment)
        return found

    def _found(self, caller: Caller, family_slug: str, environment: str) -> tuple[Schedule, int]:
        named = environment or self._only_environment(caller, family_slug)
        key = ScheduleKey(caller.tenant, family_slug, named)
        known = read_schedule(self._table, key) if _slug(family_slug) and _slug(named) else None
        if known is None or not known[0].definition_id or not caller.may_read(named):
            message = "the newest version of this family has no schedule in this environment"
            raise not_found("SCHEDULE_NOT_FOUND", message, "family_slug")
        return known

    def _only_environment(self, caller: Caller, family_slug: str) -> str:
        """The only environment in which the family has a schedule that the caller may see, or the key's default."""
        if not _slug(family_slug):
            return caller.default_environment
        family, _ = self._library.family(caller.tenant, family_slug)
        places = [key for key in family.newest_in if caller.may_read(key)]
        pks = {key: (schedule_pk(ScheduleKey(caller.tenant, family_slug, key)), SPEC) for key in places}
        rows = self._table.batch_get(list(pks.values()))
        having = [key for key in places if pks[key] in rows and decode_schedule(rows[pks[key]]).definition_id]
        if len(having) > 1 and caller.default_environment not in having:
            message = f"name one of the environments {', '.join(sorted(having))}"
            raise refuse(ErrorCode.INVALID_ARGUMENT, "ENVIRONMENT_REQUIRED", message, "environment")
        return having[0] if len(having) == 1 else caller.default_environment

    def _page(
        self,
        key: ScheduleKey,
        prefix: str,
        decode: Callable[[Item], Occurrence | ScheduleRequest],
        limit: int | None,
        cursor: str | None,
    ) -> RowPage:
        size = page_size(limit)
        bound_to = binding(key.tenant, [prefix, schedule_pk(key)])
        high = unseal(bound_to, cursor) or f"{prefix}~"
        page = self._table.query(schedule_pk(key), low=prefix, high=high, limit=size + 1, descending=True)
        following = page.items[size].sk if len(page.items) > size else ""
        items = tuple(decode(item) for item in page.items[:size])
        return RowPage(items, seal(bound_to, following) if following else None)


def overlap_of(text: str) -> Overlap | None:
    """The policy that a request names, None for none. INVALID_ARGUMENT `SCHEDULE_OVERLAP_POLICY_INVALID`."""
    if not text:
        return None
    try:
        return Overlap(text.lower().removeprefix("overlap_policy_"))
    except ValueError:
        message = "overlap_policy is skip or allow_all"
        raise invalid("SCHEDULE_OVERLAP_POLICY_INVALID", message, "overlap_policy") from None


def _slug(text: str) -> bool:
    """Whether the text can name a family or an environment at all; nothing else may reach a table key."""
    return _SLUG.fullmatch(text) is not None


def _overlaps(active: str) -> Exception:
    message = f"run {active} of this schedule is active; send overlap_policy allow_all to start another one"
    return precondition("SCHEDULE_RUN_ACTIVE", message, "overlap_policy")


def _busy() -> Exception:
    return aborted("SCHEDULE_BUSY", "the schedule is being changed all the time; try again")
