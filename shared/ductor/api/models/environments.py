"""Environments, their variables and promotions on the wire."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ductor.api.models.common import AnswerModel, Metadata, RequestModel, WarningItem, When
from ductor.api.models.definitions import DefinitionDetail


class ReleaseBody(RequestModel):
    """Which caller release may start runs."""

    required: bool | None = Field(None, description="Whether a trigger must name the live release.")
    external_deployment_id: str | None = Field(None, description="The live release.")


class EnvironmentFields(RequestModel):
    """What may be changed; omitted fields stay as they are."""

    title: str | None = None
    description: str | None = None
    active: bool | None = Field(None, description="Off: no run starts, nothing is published.")
    mutable: bool | None = Field(None, description="Off: it takes no version at all, promotions neither.")
    allow_direct_mutation: bool | None = Field(None, description="Off: drafts cannot be saved or published in it.")
    require_promotion: bool | None = Field(None, description="On: versions come into it by promotion only.")
    connections: dict[str, str | None] | None = Field(
        None,
        description="Names that steps use with connection_ref_mode environment, and the connections they mean; "
        "only the named ones change, null removes one.",
    )
    release: ReleaseBody | None = None


class NewEnvironment(EnvironmentFields):
    """A new environment; omitted: active, and open to direct changes."""

    key: str = Field(description="Starts with a to z; a to z, 0 to 9, _ and -; at most 63.")


class Release(AnswerModel):
    """Which caller release may start runs."""

    required: bool
    external_deployment_id: str


class EnvironmentDetail(AnswerModel):
    """An environment."""

    key: str
    title: str
    description: str
    active: bool
    mutable: bool
    allow_direct_mutation: bool
    require_promotion: bool
    connections: dict[str, str]
    variables: dict[str, Any]
    release: Release
    created_at: When
    updated_at: When


class VariableBody(RequestModel):
    """A value, visible to everybody who can read runs: never a secret."""

    environment: str = Field("default", description="Key of the environment.")
    value: Any = Field(description="Any JSON value.")


class VariableEntry(AnswerModel):
    """One variable of one environment."""

    environment: str
    name: str
    value: Any


class RemovedVariable(AnswerModel):
    """What was removed."""

    environment: str
    name: str
    deleted: bool = True


class PromoteBody(RequestModel):
    """Where to."""

    environment: str = Field(description="Key of the target environment.")


class PromotedDefinition(AnswerModel):
    """The new version, and the one that it was made of."""

    published: DefinitionDetail
    source: DefinitionDetail
    warnings: list[WarningItem]
    metadata: Metadata
