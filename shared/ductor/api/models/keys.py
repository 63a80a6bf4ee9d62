"""API keys on the wire."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from ductor.api.models.common import AnswerModel, RequestModel, When

_DATED: Final = re.compile(r"\d{4}-\d\d-\d\d")


def _dated(value: Any) -> Any:
    """Numbers, and texts that hold one, would be taken for seconds or milliseconds, whichever fits."""
    if isinstance(value, datetime) or (isinstance(value, str) and _DATED.match(value)):
        return value
    raise ValueError("must be an instant with an offset, like 2030-01-31T09:00:00Z")


Moment = Annotated[datetime, BeforeValidator(_dated)]


class IssueKeyBody(RequestModel):
    """What the new key allows. Scopes and roles add up."""

    name: str
    scopes: list[str] = Field([])
    roles: list[str] = Field([])
    environments_read: list[str] = Field(["*"])
    environments_write: list[str] = Field(["*"])
    default_environment: str = "default"
    user: str = Field("", description="Whom the key speaks for in approval audiences.")
    expires_at: Moment | None = Field(None, strict=False, description="RFC 3339 with an offset; omitted: never.")


class IssuedKey(AnswerModel):
    """The only answer that ever shows the key itself."""

    id: str
    key: str = Field(description="Keep it; it cannot be shown again.")


class KeyEntry(AnswerModel):
    """A key as administrators see it."""

    id: str
    name: str
    scopes: list[str]
    roles: list[str]
    environments_read: list[str]
    environments_write: list[str]
    default_environment: str
    user: str
    created_at: When
    expires_at: When
    revoked_at: When
    last_used_at: When
