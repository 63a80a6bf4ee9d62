"""Workflow definitions on the wire."""

from __future__ import annotations

from typing import Any, Final

from pydantic import ConfigDict, Field, field_validator

from ductor.api.models.common import AnswerModel, JsonObject, Metadata, RequestModel, WarningItem, When
from ductor.model.enums import DefinitionStatus

LIST_PARAMETERS: Final = ("status", "q", "tags", "family_slug", "limit", "cursor")


class DefinitionDocument(RequestModel):
    """A definition as it is written; null counts as absent."""

    model_config = ConfigDict(extra="allow")

    family_slug: str = Field(description="Names the family, for example hello_world.")
    environment: str | None = Field(None, description="Key of an environment; omitted: the API key's default.")
    title: str = ""
    description: str = ""
    tags: list[str] = Field([])
    steps: list[JsonObject] = Field([])
    edges: list[JsonObject] = Field([])
    variables: JsonObject = Field({})
    input_schema: Any = None
    output: Any = None
    triggers: list[JsonObject] = Field([])
    checkpoints: list[JsonObject] = Field([])
    schedule: JsonObject | None = None
    run_timeout_ms: int = 0
    hooks: JsonObject = Field({})
    concurrency: JsonObject | None = None


class DraftEdit(RequestModel):
    """Top-level fields to replace (null takes one out) and operations, applied in order, all or nothing."""

    model_config = ConfigDict(extra="allow")

    expected_draft_revision: int
    operations: list[JsonObject] = Field([], description='For example {"add_step": {"ref": "a", "type": "wait"}}.')


class PublishBody(RequestModel):
    """The revision that was reviewed; omitted: whatever the draft is now."""

    expected_draft_revision: int | None = None


class DuplicateBody(RequestModel):
    """The family of the copy."""

    family_slug: str


class DefinitionCard(AnswerModel):
    """A definition in a list."""

    id: str
    family_slug: str
    status: str
    version: int
    draft_revision: int
    environment: str
    title: str
    description: str
    tags: list[str]
    created_at: When
    updated_at: When
    published_at: When

    @field_validator("status", mode="before")
    @classmethod
    def _long_status(cls, value: DefinitionStatus) -> str:
        return value.wire


class DefinitionDetail(AnswerModel):
    """A definition with its whole document; enums have the long spelling."""

    model_config = ConfigDict(extra="allow")

    id: str
    status: str
    family_slug: str
    version: int = Field(description="Of a draft: the number that its next publication would get.")
    draft_revision: int = Field(description="Counts the edits of a draft from 1; 0 for versions.")
    environment: str = ""
    title: str = ""
    description: str = ""
    tags: list[Any] = Field([])
    steps: list[Any] = Field([])
    edges: list[Any] = Field([])
    created_at: When
    updated_at: When
    published_at: When
    created_by: str = Field(description="Id of the API key.")
    updated_by: str


class SavedDefinition(AnswerModel):
    """A stored draft, and what its publication would refuse."""

    data: DefinitionDetail
    warnings: list[WarningItem]
    metadata: Metadata


class PublishedDefinition(AnswerModel):
    """The new version, and the draft that stays editable."""

    published: DefinitionDetail
    draft: DefinitionDetail
    warnings: list[WarningItem]
    metadata: Metadata


class Validation(AnswerModel):
    """Whether the definition could be published, and everything that was found."""

    valid: bool
    violations: list[WarningItem]
    next_occurrences: list[When] = Field([], description="The next five instants of the schedule, if there is one.")


class Deleted(AnswerModel):
    """What was removed."""

    id: str
    deleted: bool = True


class FieldChangeItem(AnswerModel):
    """One field, by its path; `before` is null when it was added, `after` when it was removed."""

    field: str
    change: str
    before: Any
    after: Any


class StepChangeItem(AnswerModel):
    """A step of both definitions that differs."""

    ref: str
    fields: list[FieldChangeItem]


class EdgeChangeItem(AnswerModel):
    """An edge of both definitions that differs."""

    source_ref: str
    target_ref: str
    type: str
    fields: list[FieldChangeItem]


class StepsDiff(AnswerModel):
    """Steps, by ref."""

    added: list[JsonObject]
    removed: list[JsonObject]
    changed: list[StepChangeItem]


class EdgesDiff(AnswerModel):
    """Edges, by their ends and type."""

    added: list[JsonObject]
    removed: list[JsonObject]
    changed: list[EdgeChangeItem]


class Compared(AnswerModel):
    """One side of a comparison."""

    id: str
    family_slug: str
    status: str
    version: int
    draft_revision: int


class DefinitionDiff(AnswerModel):
    """What changed from `before` (the definition given as `against`) to `after` (that of the path)."""

    before: Compared
    after: Compared
    identical: bool
    fields: list[FieldChangeItem] = Field(description="Everything outside of steps and edges.")
    steps: StepsDiff
    edges: EdgesDiff
