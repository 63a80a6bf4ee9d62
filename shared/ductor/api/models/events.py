"""Publishing an event on the wire."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ductor.api.models.common import AnswerModel, Metadata, RequestModel


class PublishEventBody(RequestModel):
    """An event. `event_id` is the producer's: the same event with the same id counts once a day."""

    event_name: str
    event_id: str
    correlation_key: str = Field("", description="What the event is about; waiting steps name the same key.")
    payload: Any = Field(None, description="Any JSON up to 256 KB.")


class PublishEventAnswer(AnswerModel):
    """The event is durable, and so is what it resolved."""

    status: str = "accepted"
    event_id: str
    matched: int = Field(description="How many waiting pauses the event resolved; 0 for a repetition.")
    started_runs: list[str] = Field(description="Runs that triggers started.")
    metadata: Metadata
