"""Publishing an event on the wire."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ductor.api.models.common import AnswerModel, ErrorItem, Metadata, RequestModel, When


class PublishEventBody(RequestModel):
    """An event. `event_id` is the producer's: the same event with the same id counts once a day."""

    event_name: str
    event_id: str
    correlation_key: str = Field("", description="What the event is about; waiting steps name the same key.")
    payload: Any = Field(None, description="Any JSON up to 256 KB.")


class RefusedStartModel(AnswerModel):
    """A run that an event should have started."""

    at: When
    run_id: str = Field(description="The id that the run would have had.")
    family_slug: str
    definition_id: str
    environment: str
    event_name: str
    event_id: str
    correlation_key: str
    depth: int = Field(description="Of the event: how many starts by events led to it.")
    code: str
    message: str
    errors: list[ErrorItem]


class PublishEventAnswer(AnswerModel):
    """The event is durable, and so is what it resolved."""

    status: str = "accepted"
    event_id: str
    matched: int = Field(description="How many waiting pauses the event resolved; 0 for a repetition.")
    started_runs: list[str] = Field(description="Runs that triggers started.")
    refused_starts: list[RefusedStartModel] = Field(description="What triggers wanted to start and could not.")
    metadata: Metadata


class RefusedStartsAnswer(AnswerModel):
    """Starts by events that were refused in the last 30 days, newest first."""

    items: list[RefusedStartModel]
    next_cursor: str | None
    metadata: Metadata
