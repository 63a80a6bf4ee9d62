"""Connections on the wire. Secrets go in; no answer has a field for them."""

from __future__ import annotations

from typing import Any

from pydantic import Field, SecretStr

from ductor.api.models.common import AnswerModel, RequestModel, When


class ConnectionFields(RequestModel):
    """What may be changed; omitted fields stay as they are, null for a name in settings or secrets removes it."""

    title: str | None = None
    settings: dict[str, Any] | None = Field(None, description="Not secret, and shown.")
    secrets: dict[str, SecretStr | None] | None = Field(
        None, description="Write-only: stored encrypted, never shown again.", repr=False
    )
    environments: list[str] | None = Field(None, description="Keys of environments whose runs may use it; * for all.")
    active: bool | None = None


class NewConnection(ConnectionFields):
    """A new connection."""

    slug: str = Field(description="What steps call it; starts with a to z; a to z, 0 to 9, _ and -; at most 63.")
    type: str = Field(description="A connector, for example stripe; GET /api/connections/types lists them.")


class ConnectionDetail(AnswerModel):
    """A connection without its secrets."""

    id: str
    slug: str
    type: str
    title: str
    settings: dict[str, Any]
    secrets: list[str] = Field(description="Names of the secrets that are stored.")
    environments: list[str]
    active: bool
    created_at: When
    updated_at: When
    created_by: str
    updated_by: str


class RemovedConnection(AnswerModel):
    """What was removed."""

    id: str
    slug: str
    deleted: bool = True


class ConnectionTest(AnswerModel):
    """How the test call went."""

    ok: bool
    took_ms: int
    code: str = Field(description="Empty when it went well.")
    message: str


class FieldInfo(AnswerModel):
    """A setting or secret that a type has."""

    name: str
    required: bool
    description: str


class ConnectionType(AnswerModel):
    """What a connection of this type takes, and the actions it is for."""

    type: str
    title: str
    settings: list[FieldInfo]
    secrets: list[FieldInfo]
    actions: list[str]
    testable: bool
