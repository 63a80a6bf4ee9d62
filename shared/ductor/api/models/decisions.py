"""Decisions on one step on the wire: approve, reject, resolve."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from ductor.api.models.common import AnswerModel, Metadata, RequestModel


class DecisionBody(RequestModel):
    """What an approver says."""

    request_id: str
    reason: str = ""
    approver_id: str | None = Field(None, description="A label; the audit trail names the API key.")
    comment: str | None = Field(None, description="At most 4,000 characters.")
    payload: Any = Field(None, description="Any JSON up to 1 MB; later steps read it.")


class ResolveError(RequestModel):
    """Why the step failed."""

    code: str = "RESOLVED_AS_ERROR"
    message: str = "an operator resolved the step as failed"
    details: Any = None


class ResolveBody(RequestModel):
    """How a waiting step is to end."""

    request_id: str
    reason: str = ""
    outcome: Literal["success", "error"] = "success"
    payload: Any = Field(None, description="The step's output, any JSON up to 1 MB.")
    error: ResolveError | None = Field(None, description="With outcome error only.")


class SignalBody(RequestModel):
    """A message to one run. `name` is the `event_name` of the wait_event step that is to take it."""

    request_id: str
    name: str
    payload: Any = Field(None, description="Any JSON up to 1 MB.")
    reason: str = ""


class DecisionAnswer(AnswerModel):
    """The intent is durable; what became of it stands in the run's audit trail after the next tick."""

    status: str = "accepted"
    run_id: str
    node: str
    metadata: Metadata
