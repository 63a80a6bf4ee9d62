"""What handlers raise, and what a call of the API can come to."""

from __future__ import annotations

from typing import Any


class TaskError(Exception):
    """Raise it in a handler to fail the task. `retryable` and the step's retry policy decide about another attempt.

    `code` (1 to 64 characters) is what edges and policies of the definition see; `details` is JSON of up to 8 KB.
    """

    def __init__(
        self, message: str = "", *, code: str = "TASK_FAILED", retryable: bool = True, details: Any = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.retryable = retryable
        self.details = details


class RetryableTaskError(TaskError):
    """The same work may succeed later. Any exception that is no `TaskError` counts as one of these."""

    def __init__(self, message: str = "", *, code: str = "TASK_FAILED", details: Any = None) -> None:
        super().__init__(message, code=code, retryable=True, details=details)


class FatalTaskError(TaskError):
    """The work can never succeed with this input: it is not tried again, whatever the retry policy says."""

    def __init__(self, message: str = "", *, code: str = "TASK_FAILED", details: Any = None) -> None:
        super().__init__(message, code=code, retryable=False, details=details)


class TaskCancelled(Exception):
    """Raised by `Task.check`: nobody wants the result any more, or this worker is stopping. The task is given back."""


class ApiError(Exception):
    """The server refused a call. `code` is the specific code, such as TASK_TOKEN_EXPIRED; `status` that of HTTP."""

    def __init__(self, status: int, error_code: str, code: str, message: str) -> None:
        super().__init__(f"{code or error_code or f'HTTP {status}'}: {message}")
        self.status = status
        self.error_code = error_code
        self.code = code
        self.message = message


class UnreachableError(Exception):
    """No answer from the server, for as long as it was tried. The call may or may not have been applied."""
