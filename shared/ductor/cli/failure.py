"""How a command fails: one clear sentence, perhaps a hint, and an exit code. Never a traceback for a user's mistake."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes of every command."""

    OK = 0
    FAILED = 1
    """A definition is invalid, a run did not complete, or the server cannot start."""
    USAGE = 2
    """The command line itself is wrong."""
    REFUSED = 3
    """The server refused the request."""
    UNREACHABLE = 4
    """No server answers at the address."""


class Failure(Exception):
    """Ends the command: `message` and `details` go to standard error, `hint` says what to do next."""

    def __init__(
        self, message: str, *, code: Exit = Exit.FAILED, details: tuple[str, ...] = (), hint: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.details = details
        self.hint = hint

    def lines(self) -> tuple[str, ...]:
        """What standard error shows, plain text."""
        return (
            f"error: {self.message}",
            *(f"  {detail}" for detail in self.details),
            *((f"hint: {self.hint}",) if self.hint else ()),
        )
