"""What all answers share: metadata, the error shape, times on the wire."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class RequestModel(BaseModel):
    """Base of request bodies: exact types, no unknown fields."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class AnswerModel(BaseModel):
    """Base of answers; reads the fields of the use cases' views by name."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class Metadata(AnswerModel):
    """Says which request this answers, and when the data was read."""

    trace_id: str = Field(description="From `traceparent` or `X-Amzn-Trace-Id` when given.")
    request_id: str
    fetched_at: str = Field(description="RFC 3339, UTC.")


class ErrorItem(AnswerModel):
    """One fault."""

    field: str = Field(description="Path of what is wrong, empty when it is the request as a whole.")
    code: str = Field(description="Stable code, for example DRAFT_REVISION_CONFLICT.")
    message: str = Field(description="What to do about it.")


class ErrorAnswer(AnswerModel):
    """The body of every refusal; it has at least one item."""

    error_code: str
    message: str
    errors: list[ErrorItem]
    metadata: Metadata


class WarningItem(ErrorItem):
    """What a publication would refuse (in answers to edits) or what it remarks."""

    severity: str


class EmptyBody(RequestModel):
    """No fields."""


JsonObject = dict[str, Any]


def rfc3339(at: int | None) -> str | None:
    """Epoch milliseconds as UTC text with milliseconds; None for None and 0, which stand for never."""
    if not at:
        return None
    moment = datetime.fromtimestamp(at // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at % 1000:03d}Z"


When = Annotated[str | None, BeforeValidator(rfc3339), Field(json_schema_extra={"format": "date-time"})]
"""A time in an answer: epoch milliseconds where it is read from, RFC 3339 where it is written."""

Data = TypeVar("Data")


class Wrapped(AnswerModel, Generic[Data]):
    """The envelope of `/api/…` answers."""

    data: Data
    metadata: Metadata


class WrappedPage(AnswerModel, Generic[Data]):
    """One page of a list under `/api/…`; `next_cursor` is null on the last one."""

    data: list[Data]
    next_cursor: str | None = None
    metadata: Metadata


class FlatPage(AnswerModel, Generic[Data]):
    """One page of a list under `/api/v2/…`; `next_cursor` is null on the last one."""

    items: list[Data]
    next_cursor: str | None = None
    metadata: Metadata


Answer = TypeVar("Answer", bound=AnswerModel)


def flat(model: type[Answer], view: object, metadata: Metadata) -> Answer:
    """An answer without envelope: the fields of `view`, and metadata beside them."""
    fields = {name: getattr(view, name) for name in model.model_fields if name != "metadata"}
    return model.model_validate({**fields, "metadata": metadata})
