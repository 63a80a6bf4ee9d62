"""What an expression can fail with: when it is written (syntax) and when it is evaluated. Never a silent default."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

MAX_SOURCE_IN_MESSAGE: Final = 200


class SyntaxCode(StrEnum):
    """Why an expression or a template is refused before it ever runs."""

    CEL_SYNTAX = "CEL_SYNTAX"
    CEL_UNKNOWN_ROOT = "CEL_UNKNOWN_ROOT"
    CEL_TOO_COMPLEX = "CEL_TOO_COMPLEX"
    CEL_TYPE = "CEL_TYPE"
    TEMPLATE_SYNTAX = "TEMPLATE_SYNTAX"


def shown(source: str) -> str:
    """The source as messages quote it: at most `MAX_SOURCE_IN_MESSAGE` characters."""
    if len(source) <= MAX_SOURCE_IN_MESSAGE:
        return source
    return source[:MAX_SOURCE_IN_MESSAGE] + "…"


class ExpressionError(Exception):
    """An evaluation failed. It counts neither as true nor as false; the step or edge that owns it fails.

    `message` holds the reason and the expression, cut to 200 characters.
    """

    code: Final = "EXPRESSION_ERROR"

    def __init__(self, reason: str, source: str) -> None:
        self.reason = reason
        self.message = f"{reason} (in expression: {shown(source)})"
        super().__init__(self.message)


class ExpressionSyntaxError(ValueError):
    """A text that is not a usable expression or template. `code` is one of the definition's violation codes."""

    def __init__(self, code: SyntaxCode, reason: str, source: str) -> None:
        self.code: str = code.value
        self.reason = reason
        self.message = f"{reason} (in expression: {shown(source)})"
        super().__init__(self.message)
