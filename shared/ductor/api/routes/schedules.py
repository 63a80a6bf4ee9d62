"""Schedules: reading and steering them."""

from __future__ import annotations

from collections.abc import Callable

from ductor.api.call import Call
from ductor.api.models.common import AnswerModel, Wrapped, WrappedPage
from ductor.api.models.schedules import (
    AuditItem,
    BackfillAnswer,
    BackfillBody,
    OccurrenceItem,
    PreviewAnswer,
    ScheduleBody,
    ScheduleCounts,
    ScheduleDetail,
    TriggeredNowAnswer,
    TriggerNowBody,
)
from ductor.api.routing import Route
from ductor.app.access import Scope
from ductor.app.backfills import Backfill, BackfillRequest, Range
from ductor.app.run_filter import read_time
from ductor.app.schedule_rows import Schedule
from ductor.app.schedules import Schedules
from ductor.ports import Clock

_ALL = "/api/workflow-schedules"
_ONE = f"{_ALL}/<family_slug>"
_PAGED = ("environment", "limit", "cursor")

Handle = Callable[[Call], AnswerModel]


class ScheduleRoutes:
    """`/api/workflow-schedules` and below."""

    def __init__(self, schedules: Schedules, clock: Clock) -> None:
        self._schedules = schedules
        self._clock = clock

    def routes(self) -> tuple[Route, ...]:
        return (
            _read("", "List schedules", self._list, WrappedPage[ScheduleDetail], ("limit", "cursor")),
            _read("/<family_slug>", "Read a schedule", self._get, Wrapped[ScheduleDetail], ("environment",)),
            _read(
                "/<family_slug>/preview",
                "When a schedule fires next",
                self._preview,
                Wrapped[PreviewAnswer],
                ("environment", "count"),
            ),
            _read(
                "/<family_slug>/occurrences",
                "What became of its occurrences",
                self._occurrences,
                WrappedPage[OccurrenceItem],
                _PAGED,
            ),
            _read("/<family_slug>/audit", "What operators did", self._audit, WrappedPage[AuditItem], _PAGED),
            _read(
                "/<family_slug>/backfills/<request_id>",
                "Read a backfill",
                self._get_backfill,
                Wrapped[BackfillAnswer],
                ("environment",),
            ),
            _control("pause", "Pause a schedule", self._pause, Wrapped[ScheduleDetail], ScheduleBody),
            _control("resume", "Resume a schedule", self._resume, Wrapped[ScheduleDetail], ScheduleBody),
            _control("triggerNow", "Start a run now", self._trigger, Wrapped[TriggeredNowAnswer], TriggerNowBody),
            _control("backfill", "Run past occurrences", self._backfill, Wrapped[BackfillAnswer], BackfillBody),
        )

    def _list(self, call: Call) -> AnswerModel:
        query = call.query("limit", "cursor")
        page = self._schedules.list(call.caller, query.integer("limit"), query.text("cursor"))
        shown = [_detail(one) for one in page.items]
        return WrappedPage(data=shown, next_cursor=page.next_cursor, metadata=call.metadata())

    def _get(self, call: Call) -> AnswerModel:
        environment = call.query("environment").text("environment") or ""
        return _wrapped(call, self._schedules.get(call.caller, call.ids["family_slug"], environment))

    def _preview(self, call: Call) -> AnswerModel:
        query = call.query("environment", "count")
        family, environment = call.ids["family_slug"], query.text("environment") or ""
        instants = self._schedules.preview(call.caller, family, environment, query.integer("count"))
        schedule = self._schedules.get(call.caller, family, environment)
        answer = PreviewAnswer(
            family_slug=schedule.key.family_slug,
            environment=schedule.key.environment,
            timezone=schedule.spec.timezone,
            occurrences=list(instants),
        )
        return Wrapped(data=answer, metadata=call.metadata())

    def _occurrences(self, call: Call) -> AnswerModel:
        query = call.query(*_PAGED)
        page = self._schedules.occurrences(
            call.caller,
            call.ids["family_slug"],
            query.text("environment") or "",
            query.integer("limit"),
            query.text("cursor"),
        )
        shown = [OccurrenceItem.model_validate(one) for one in page.items]
        return WrappedPage(data=shown, next_cursor=page.next_cursor, metadata=call.metadata())

    def _audit(self, call: Call) -> AnswerModel:
        query = call.query(*_PAGED)
        page = self._schedules.audit(
            call.caller,
            call.ids["family_slug"],
            query.text("environment") or "",
            query.integer("limit"),
            query.text("cursor"),
        )
        shown = [AuditItem.model_validate(one) for one in page.items]
        return WrappedPage(data=shown, next_cursor=page.next_cursor, metadata=call.metadata())

    def _get_backfill(self, call: Call) -> AnswerModel:
        environment = call.query("environment").text("environment") or ""
        job = self._schedules.get_backfill(call.caller, call.ids["family_slug"], environment, call.ids["request_id"])
        return Wrapped(data=_job(job), metadata=call.metadata())

    def _pause(self, call: Call) -> AnswerModel:
        body = call.body(ScheduleBody)
        family = call.ids["family_slug"]
        return _wrapped(
            call, self._schedules.pause(call.caller, family, body.environment, body.request_id, body.reason)
        )

    def _resume(self, call: Call) -> AnswerModel:
        body = call.body(ScheduleBody)
        family = call.ids["family_slug"]
        return _wrapped(
            call, self._schedules.resume(call.caller, family, body.environment, body.request_id, body.reason)
        )

    def _trigger(self, call: Call) -> AnswerModel:
        body, family = call.body(TriggerNowBody), call.ids["family_slug"]
        done = self._schedules.trigger_now(
            call.caller, family, body.environment, body.request_id, body.reason, body.overlap_policy
        )
        answer = TriggeredNowAnswer(
            family_slug=family, environment=done.environment, run_id=done.run_id, repeated=done.repeated
        )
        return Wrapped(data=answer, metadata=call.metadata())

    def _backfill(self, call: Call) -> AnswerModel:
        body, now = call.body(BackfillBody), self._clock.now_ms()
        wanted = BackfillRequest(
            range=Range(read_time(body.start_at, now, "start_at"), read_time(body.end_at, now, "end_at")),
            said=(body.start_at, body.end_at),
            overlap_policy=body.overlap_policy,
            request_id=body.request_id,
            reason=body.reason,
        )
        job = self._schedules.backfill(call.caller, call.ids["family_slug"], body.environment, wanted)
        return Wrapped(data=_job(job), metadata=call.metadata())


def _read(path: str, summary: str, handle: Handle, answer: type[AnswerModel], query: tuple[str, ...]) -> Route:
    return Route("GET", _ALL + path, summary, handle, answer, query=query, scope=Scope.WORKFLOW_READ.value)


def _control(verb: str, summary: str, handle: Handle, answer: type[AnswerModel], body: type[ScheduleBody]) -> Route:
    scope = Scope.WORKFLOW_WRITE.value
    return Route("POST", f"{_ONE}:{verb}", summary, handle, answer, body, scope=scope, status=202)


def _wrapped(call: Call, schedule: Schedule) -> AnswerModel:
    return Wrapped(data=_detail(schedule), metadata=call.metadata())


def _detail(schedule: Schedule) -> ScheduleDetail:
    spec, last = schedule.spec, schedule.last
    return ScheduleDetail(
        family_slug=schedule.key.family_slug,
        environment=schedule.key.environment,
        definition_id=schedule.definition_id,
        definition_version=schedule.definition_version,
        cron=spec.cron or None,
        rate_ms=spec.rate_ms or None,
        timezone=spec.timezone,
        start_at=spec.start_at,
        end_at=spec.end_at,
        overlap_policy=schedule.overlap.value,
        jitter_ms=schedule.jitter_ms,
        catch_up_window_ms=schedule.catch_up_ms,
        paused=bool(schedule.paused),
        paused_by=schedule.paused.value or None,
        next_occurrence_at=schedule.next_at if schedule.live else None,
        last_occurrence=OccurrenceItem.model_validate(last) if last is not None else None,
        last_run_id=schedule.active_run or None,
        counts=ScheduleCounts.model_validate(schedule),
        scheduler_in_sync=schedule.told,
        updated_at=schedule.updated_at,
    )


def _job(job: Backfill) -> BackfillAnswer:
    return BackfillAnswer(
        request_id=job.request_id,
        status=job.status.value,
        start_at=job.range.start_at,
        end_at=job.range.end_at,
        overlap_policy=job.overlap.value,
        started=job.started,
        fired_before=job.fired_before,
        skipped=job.skipped,
        refused=job.refused,
        created_at=job.created_at,
        finished_at=job.finished_at,
    )
