"""Controls of one node on the wire."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from ductor.api.models.common import RequestModel
from ductor.steps.spec import MAX_TIMEOUT_MS
from ductor.validation.document_shape import MAX_BACKOFF_MS

_RETRY: Final = "retry_"

Code = Annotated[str, Field(min_length=1, max_length=200)]


class RetryPolicyBody(RequestModel):
    """The fields of the step's retry policy that change; the others stay as they are."""

    request_id: str
    reason: str = ""
    retry_max_attempts: int | None = Field(None, ge=1, le=100)
    retry_backoff_ms: int | None = Field(None, ge=0, le=MAX_BACKOFF_MS)
    retry_backoff_multiplier: float | None = Field(None, ge=1, le=10)
    retry_max_backoff_ms: int | None = Field(None, ge=0, le=MAX_BACKOFF_MS)
    retry_jitter: float | None = Field(None, ge=0, le=1)
    retry_max_elapsed_ms: int | None = Field(None, ge=0, le=MAX_TIMEOUT_MS)
    non_retryable_codes: list[Code] | None = Field(None, max_length=100)

    def changes(self) -> dict[str, object]:
        """What was sent, under the names that the engine uses."""
        sent = self.model_dump(exclude={"request_id", "reason"}, exclude_none=True)
        changed = {name.removeprefix(_RETRY): value for name, value in sent.items()}
        if "non_retryable_codes" in changed:
            changed["non_retryable_codes"] = tuple(changed["non_retryable_codes"])
        return changed


class TimeoutBody(RequestModel):
    """A step's new timeout: it counts from the next attempt on, and re-arms the deadline of what is waiting."""

    request_id: str
    reason: str = ""
    timeout_ms: int = Field(description="0 = without limit.", ge=0, le=MAX_TIMEOUT_MS)
