"""What all answers share: metadata, the error shape, times on the wire."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema


class RequestModel(BaseModel):
    """Base of request bodies: exact types, no unknown fields.

    An optional field that is null counts as absent, at every depth. In a field that takes any JSON, null is a value.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        if not isinstance(data, dict) or None not in data.values():
            return data
        return {name: value for name, value in data.items() if value is not None or not cls._optional(name)}

    @classmethod
    def _optional(cls, name: str) -> bool:
        field = cls.model_fields.get(name)
        return field is not None and not field.is_required() and field.annotation is not Any

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Says of every optional field that it may be null."""
        schema = handler(core_schema)
        fields = handler.resolve_ref_schema(schema).get("properties", {})
        for name in filter(cls._optional, fields):
            fields[name] = _or_null(fields[name])
        return schema


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

_NULL = {"type": "null"}
_BESIDE = ("title", "description", "default")


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    if _NULL in schema.get("anyOf", ()):
        return schema
    beside = {key: schema[key] for key in _BESIDE if key in schema}
    return {"anyOf": [{key: value for key, value in schema.items() if key not in beside}, _NULL], **beside}


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
