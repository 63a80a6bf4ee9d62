"""What can go wrong, as data: violations of a definition, errors of an attempt, refusals of a use case."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from ductor.model.json import JSON

MAX_ERROR_TEXT_BYTES: Final = 8192


class Severity(StrEnum):
    """Whether a violation refuses publication."""

    ERROR = "error"
    WARNING = "warning"
    UNRESOLVED = "unresolved"


class Violation(msgspec.Struct, frozen=True):
    """One fault of a definition or a request. `field` is a path (`review.args.audience`); `message` says what to do."""

    field: str
    code: str
    message: str
    severity: Severity = Severity.ERROR


class StepError(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an attempt or a node failed."""

    code: str
    message: str = ""
    retryable: bool = True
    details: JSON = None


def clip(text: str, limit: int = MAX_ERROR_TEXT_BYTES) -> str:
    """`text` cut to at most `limit` bytes of UTF-8 on a character boundary; lone surrogates become `?`."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return raw.decode("utf-8")
    return raw[:limit].decode("utf-8", "ignore")


NO_MESSAGE: Final = "no message was given"


def message_of(given: str) -> str:
    """What somebody outside gave as the message of a failure, clipped; of nothing but blanks it says so."""
    return clip(given) if given.strip() else NO_MESSAGE


def raised(fault: BaseException, said: str | None = None) -> str:
    """The type of an exception and what it says (`said`, if that is no matter of `str`), clipped; many say nothing."""
    text = str(fault) if said is None else said
    return clip(f"{type(fault).__name__}: {text}" if text.strip() else type(fault).__name__)


class ErrorCode(StrEnum):
    """The `error_code` of a refusal; each maps to one HTTP status."""

    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    ABORTED = "ABORTED"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    INTERNAL = "INTERNAL"
    UNAVAILABLE = "UNAVAILABLE"


class RefusedError(Exception):
    """A use case refuses. Carries at least one violation with the specific code; nothing was changed."""

    def __init__(self, error_code: ErrorCode, message: str, violations: tuple[Violation, ...]) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message
        self.violations = violations


def refuse(error_code: ErrorCode, code: str, message: str, field: str = "") -> RefusedError:
    """A refusal with a single violation."""
    return RefusedError(error_code, message, (Violation(field, code, message),))
