"""Refusals and faults as HTTP answers: the one place that decides status, shape and headers of what is no success."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ductor.api.models.common import ErrorAnswer, ErrorItem, Metadata
from ductor.model.errors import ErrorCode, RefusedError, Violation, clip, refuse
from ductor.model.json import JSON

STATUS: Final[dict[ErrorCode, int]] = {
    ErrorCode.INVALID_ARGUMENT: 400,
    ErrorCode.UNAUTHENTICATED: 401,
    ErrorCode.PERMISSION_DENIED: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.ALREADY_EXISTS: 409,
    ErrorCode.ABORTED: 409,
    ErrorCode.FAILED_PRECONDITION: 409,
    ErrorCode.PAYLOAD_TOO_LARGE: 413,
    ErrorCode.RESOURCE_EXHAUSTED: 429,
    ErrorCode.INTERNAL: 500,
    ErrorCode.UNAVAILABLE: 503,
}

_HEADERS: Final[dict[int, dict[str, str]]] = {
    401: {"WWW-Authenticate": "Bearer"},
    429: {"Retry-After": "1"},
    503: {"Retry-After": "1"},
}
_MAX_ITEMS: Final = 500

_WORDS: Final = {
    "string_type": "a string",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
}
"""What a value must be, by pydantic's type of fault."""


class HttpRefusedError(Exception):
    """A refusal that only HTTP knows (405, 415): its status is not that of its `error_code`."""

    def __init__(self, status: int, refused: RefusedError, headers: dict[str, str] | None = None) -> None:
        super().__init__(refused.message)
        self.status = status
        self.refused = refused
        self.headers = headers or {}


def route_unknown() -> RefusedError:
    return refuse(ErrorCode.NOT_FOUND, "ROUTE_UNKNOWN", "there is no such route; see /docs", "path")


def method_not_allowed(allowed: Iterable[str]) -> HttpRefusedError:
    """405 with the methods that the path does take."""
    names = ", ".join(allowed)
    refused = refuse(ErrorCode.INVALID_ARGUMENT, "METHOD_NOT_ALLOWED", f"this path takes {names}", "method")
    return HttpRefusedError(405, refused, {"Allow": names})


def media_type_unsupported() -> HttpRefusedError:
    refused = refuse(
        ErrorCode.INVALID_ARGUMENT,
        "MEDIA_TYPE_UNSUPPORTED",
        "send JSON (Content-Type: application/json)",
        "Content-Type",
    )
    return HttpRefusedError(415, refused)


def stored_too_large() -> RefusedError:
    message = "what this request would store is larger than one thing may be (400 KB); nothing was stored"
    return refuse(ErrorCode.PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE", message, "body")


def internal(trace_id: str) -> RefusedError:
    """What a client learns of an unexpected fault: where to find it in the logs, and nothing else."""
    message = f"something went wrong on our side; the log has it under trace {trace_id}"
    return refuse(ErrorCode.INTERNAL, "INTERNAL", message)


def unavailable() -> RefusedError:
    message = (
        "a store or queue could not be reached in time; the request may have been applied: repeat it with the same ids"
    )
    return refuse(ErrorCode.UNAVAILABLE, "UNAVAILABLE", message)


def body_violations(error: ValidationError, model: type[BaseModel], document: JSON) -> RefusedError:
    """All faults of a request body at once, in our codes and words; one item for each field and code."""
    said: dict[tuple[str, str], list[str]] = {}
    for detail in error.errors(include_url=False)[:_MAX_ITEMS]:
        one = _violation(detail, model, document)
        said.setdefault((one.field, one.code), []).append(one.message)
    found = tuple(Violation(field, code, ", or ".join(messages)) for (field, code), messages in said.items())
    return RefusedError(ErrorCode.INVALID_ARGUMENT, "the request is not valid", found)


def error_answer(refused: RefusedError, metadata: Metadata) -> ErrorAnswer:
    """The body of a refusal. Text is cut to what can be sent: valid Unicode, at most 8 KB a message."""
    items = [
        ErrorItem(field=clip(item.field, 1024), code=item.code, message=clip(item.message))
        for item in refused.violations[:_MAX_ITEMS]
    ]
    return ErrorAnswer(
        error_code=refused.error_code.value, message=clip(refused.message), errors=items, metadata=metadata
    )


def headers_for(status: int) -> dict[str, str]:
    """Headers that go with a status."""
    return dict(_HEADERS.get(status, {}))


def _violation(detail: ErrorDetails, model: type[BaseModel], document: JSON) -> Violation:
    if detail["type"] == "missing":
        return Violation(_path(detail["loc"]), "FIELD_REQUIRED", "this field is required")
    if detail["type"] == "extra_forbidden":
        return Violation(_path(detail["loc"]), "FIELD_UNKNOWN", _unknown(detail, model))
    return Violation(_path(_standing(detail["loc"], document)), "FIELD_INVALID", _said(detail))


def _standing(loc: tuple[int | str, ...], document: JSON) -> tuple[int | str, ...]:
    """The part of a place that the document has; behind it pydantic names the members of a union."""
    value = document
    for depth, part in enumerate(loc):
        inside = part in value if isinstance(value, dict) else isinstance(value, list) and isinstance(part, int)
        if not inside:
            return loc[:depth]
        value = value[part]
    return loc


def _said(detail: ErrorDetails) -> str:
    """What is wrong, without names of our classes."""
    kind = detail["type"]
    if kind in _WORDS:
        return f"must be {_WORDS[kind]}"
    if kind.startswith(("datetime_", "timezone_")):
        return "must be an instant with an offset, like 2030-01-31T09:00:00Z"
    text = detail["msg"].removeprefix("Value error, ")
    return text.replace("Input should be", "must be", 1).replace("String should have", "must have", 1)


def _unknown(detail: ErrorDetails, model: type[BaseModel]) -> str:
    near: list[str] = []
    if len(detail["loc"]) == 1:
        near = difflib.get_close_matches(str(detail["loc"][0])[:100], list(model.model_fields), n=1)
    return f"there is no such field; did you mean {near[0]}?" if near else "there is no such field"


def _path(loc: tuple[int | str, ...]) -> str:
    path = ""
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path
