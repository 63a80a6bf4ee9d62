"""How an action says that it failed, and what is wrong with an action that cannot be registered."""

from __future__ import annotations

from ductor.model.json import JSON


class ActionError(Exception):
    """An action failed. `code` is what retry rules and ERROR edges see; `details` is a JSON value of at most 8 KB.

    Nothing secret belongs into any of them: they are stored with the attempt and shown.
    """

    def __init__(self, code: str, message: str, retryable: bool = True, details: JSON = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.details = details


class AttemptCancelledError(Exception):
    """The attempt was cancelled, or is no longer this worker's: stop, clean up and let this pass."""


class ActionLoadError(RuntimeError):
    """Actions could not be registered: a module that cannot be imported, a name taken twice, an unusable function."""
