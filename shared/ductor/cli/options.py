"""Words and choices that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

DATA_HELP: Final = "The data folder; its file `env` holds the address and key when the environment does not."


class Format(StrEnum):
    """How a command shows its result."""

    TEXT = "text"
    JSON = "json"


class CaseFormat(StrEnum):
    """How `ductor test` shows its result."""

    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"


class LogLevel(StrEnum):
    """What goes to standard error."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
