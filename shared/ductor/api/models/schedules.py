"""Schedules on the wire."""

from __future__ import annotations

from pydantic import Field

from ductor.api.models.common import AnswerModel, RequestModel, When


class ScheduleBody(RequestModel):
    """A control of a schedule."""

    request_id: str = Field("", description="The same id makes a repeat do nothing. Empty: each call is a new request.")
    reason: str = Field("", description="Why; it goes into the audit trail.")
    environment: str = Field("", description="Needed where the family has a schedule in several environments.")


class TriggerNowBody(ScheduleBody):
    """Start one run now."""

    overlap_policy: str = Field("", description="skip or allow_all, for this run only; empty: the schedule's own.")


class BackfillBody(ScheduleBody):
    """Run past occurrences that have not fired."""

    start_at: str = Field(description="RFC 3339, or a distance back from now such as -1d. Included.")
    end_at: str = Field(description="RFC 3339, or a distance back from now. Included; not in the future.")
    overlap_policy: str = Field("", description="allow_all (the default here) or skip.")


class OccurrenceItem(AnswerModel):
    """What became of an occurrence."""

    scheduled_at: When = Field(description="When the timetable has it.")
    outcome: str = Field(description="fired, skipped (a run was active), missed (too late) or refused.")
    decided_at: When
    run_id: str = Field(description="The run that it started; of a skipped one, the run that was active.")
    definition_version: int
    by: str = Field(description="Empty for the timetable itself, else the request that started it.")
    count: int = Field(description="Over 1 for occurrences that were missed together, at most 1,000 of them.")
    until: When = Field(description="The end of the time in which they were missed.")
    code: str = Field(description="Why it was refused.")
    message: str


class ScheduleCounts(AnswerModel):
    """How many occurrences came to what."""

    fired: int
    skipped: int
    missed: int
    refused: int


class ScheduleDetail(AnswerModel):
    """A schedule: what it fires, and how far it has come."""

    family_slug: str
    environment: str
    definition_id: str = Field(description="The version whose runs it starts.")
    definition_version: int
    cron: str | None
    rate_ms: int | None
    timezone: str
    start_at: When
    end_at: When
    overlap_policy: str
    jitter_ms: int
    catch_up_window_ms: int
    paused: bool
    paused_by: str | None = Field(description="operator, or document: the definition says `paused`.")
    next_occurrence_at: When = Field(description="Null while it is paused and when there is none any more.")
    last_occurrence: OccurrenceItem | None
    last_run_id: str | None
    counts: ScheduleCounts
    scheduler_in_sync: bool = Field(description="False while the scheduler outside has not been told of a change.")
    updated_at: When


class PreviewAnswer(AnswerModel):
    """The next instants of a schedule."""

    family_slug: str
    environment: str
    timezone: str
    occurrences: list[When]


class TriggeredNowAnswer(AnswerModel):
    """The run that was started."""

    family_slug: str
    environment: str
    run_id: str
    repeated: bool = Field(description="An earlier request with this id had started it.")


class AuditItem(AnswerModel):
    """A request of an operator that was applied."""

    request_id: str
    operation: str
    actor: str
    reason: str
    run_id: str
    at: When


class BackfillAnswer(AnswerModel):
    """How far a backfill is."""

    request_id: str
    status: str = Field(description="running, completed, or stopped: the schedule was gone before it was done.")
    start_at: When
    end_at: When
    overlap_policy: str
    started: int
    fired_before: int = Field(description="Occurrences that had their run already.")
    skipped: int
    refused: int
    created_at: When
    finished_at: When
