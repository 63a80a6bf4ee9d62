"""The small parts of a test file: durations, moments in time, short forms that stand for an object. No behaviour."""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from ductor.expressions import ExpressionSyntaxError, compile_cel, compile_template
from ductor.model.json import JSON
from ductor.steps.duration import FORMS, parse_duration

MAX_SKIP_MS: Final = 3_660 * 86_400_000
"""Ten years: the furthest a test moves its clock at once."""


class Part(BaseModel):
    """A part of a test file: unknown fields are refused, nothing is converted, nothing changes afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def gives(self, field: str) -> bool:
        """Whether the file says something about `field`, be it null."""
        return field in self.model_fields_set


def milliseconds(text: str) -> int:
    """Of a text that is known to be a duration."""
    return parse_duration(text) or 0


def epoch_ms(text: str) -> int:
    """Of a text that is known to be an instant."""
    return round(_instant(text).timestamp() * 1000)


def _duration(text: str) -> str:
    parsed = parse_duration(text)
    if parsed is None:
        raise ValueError(f"must be a duration {FORMS}")
    if parsed > MAX_SKIP_MS:
        raise ValueError("is longer than ten years")
    return text


def _instant(text: str) -> datetime.datetime:
    found = datetime.datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("the zone is missing")
    return found


def _instant_text(text: str) -> str:
    try:
        _instant(text)
    except ValueError:
        raise ValueError("must be a moment with its zone, like 2026-03-01T09:00:00Z") from None
    return text


def _condition(text: str) -> str:
    try:
        compile_cel(text)
    except ExpressionSyntaxError as fault:
        raise ValueError(f"is no CEL expression: {fault.message}") from None
    return text


def _template(value: JSON) -> JSON:
    try:
        compile_template(value)
    except ExpressionSyntaxError as fault:
        raise ValueError(f"holds no valid template: {fault.message}") from None
    return value


Duration = Annotated[str, AfterValidator(_duration)]
Instant = Annotated[str, AfterValidator(_instant_text)]
Condition = Annotated[str, AfterValidator(_condition)]
Templated = Annotated[Any, AfterValidator(_template)]


def short(field: str, written: Any) -> BeforeValidator:
    """A plain text stands for an object with this one field; `written` is how the schema shows both."""

    def wrapped(value: Any) -> Any:
        return {field: value} if isinstance(value, str) else value

    return BeforeValidator(wrapped, json_schema_input_type=str | written)


def single(written: Any) -> BeforeValidator:
    """One thing stands for a list of one."""

    def listed(value: Any) -> Any:
        return value if isinstance(value, list) else [value]

    return BeforeValidator(listed, json_schema_input_type=written | list[written])
