"""One control over many runs, on the wire."""

from __future__ import annotations

from pydantic import Field

from ductor.api.models.common import AnswerModel, Metadata, RequestModel, When


class BatchBody(RequestModel):
    """A control and the runs that it is for."""

    request_id: str
    reason: str = ""
    operation: str = Field(description="pause, resume, cancel, terminate or redrive.")
    filter: dict[str, str | bool] = Field(description="Names and values as in the query of the list of runs.")

    def wanted(self) -> dict[str, str]:
        """The filter as the list reads it."""
        return {name: str(value).lower() if isinstance(value, bool) else value for name, value in self.filter.items()}


class BatchRefusal(AnswerModel):
    """A run that would not take the control."""

    run_id: str
    code: str


class BatchAnswer(AnswerModel):
    """How far the job is."""

    batch_id: str
    status: str = Field(description="running or completed.")
    operation: str
    accepted: int = Field(description="Runs that have the control enqueued.")
    refused: int
    refusals: list[BatchRefusal] = Field(description="The first of them.")
    created_at: When
    finished_at: When
    metadata: Metadata
