"""Tenants and what their plans allow, on the wire."""

from __future__ import annotations

from pydantic import Field

from ductor.api.models.common import AnswerModel, RequestModel, When


class EntitlementsBody(RequestModel):
    """What a plan allows, as a whole: omitted fields mean no limit."""

    plan: str = Field("", description="The plan's name, for people.")
    step_types: list[str] | None = Field(None, description="Allowed step types in either spelling; omitted: all.")
    max_steps: int = Field(0, description="Steps per definition; 0: no limit of its own.")
    max_environments: int = 0
    max_connections: int = 0
    max_api_keys: int = 0
    requests_per_second: int = Field(0, description="Requests of all its keys together; 0: no limit.")
    burst: int = Field(0, description="Requests that may come at once; 0: as many as a second brings.")
    retention_days: int = Field(0, description="Runs are removed so long after their end; 0: never.")


class NewTenant(RequestModel):
    """A new tenant."""

    name: str
    entitlements: EntitlementsBody | None = None


class TenantChanges(RequestModel):
    """What its plan allows from now on."""

    entitlements: EntitlementsBody


class Entitlements(AnswerModel):
    """What the plan allows; null step types: all; 0: no limit of its own."""

    plan: str
    step_types: list[str] | None
    max_steps: int
    max_environments: int
    max_connections: int
    max_api_keys: int
    requests_per_second: int
    burst: int
    retention_days: int


class TenantDetail(AnswerModel):
    """A tenant."""

    id: str
    name: str
    created_at: When
    entitlements: Entitlements


class CreatedTenant(TenantDetail):
    """The only answer that shows the first administrator's key."""

    admin_key_id: str
    admin_key: str = Field(description="Keep it; it cannot be shown again.")
