"""Definitions as the use cases answer them. Data only."""

from __future__ import annotations

import msgspec

from ductor.app.comparison import Comparison
from ductor.model.definition import DefinitionRow
from ductor.model.enums import DefinitionStatus
from ductor.model.errors import Violation
from ductor.model.json import JSON
from ductor.validation.document import to_wire


class DefinitionView(msgspec.Struct, frozen=True, kw_only=True):
    """A definition as the API answers it. `document` has the long enum spelling. Times: epoch ms, 0 = never.

    `version` of a draft is the number that its next publication would get. `draft_revision` is 0 for versions.
    """

    id: str
    family_slug: str
    status: DefinitionStatus
    version: int
    draft_revision: int
    document: dict[str, JSON]
    created_at: int
    updated_at: int
    published_at: int
    created_by: str
    updated_by: str


class Saved(msgspec.Struct, frozen=True):
    """A stored draft. `warnings` is what a publication would say now; those of severity `error` would refuse it."""

    definition: DefinitionView
    warnings: tuple[Violation, ...]


class Published(msgspec.Struct, frozen=True):
    """A new version, and the draft that goes on unchanged."""

    published: DefinitionView
    draft: DefinitionView
    warnings: tuple[Violation, ...]


class Validated(msgspec.Struct, frozen=True):
    """What was found in a definition. `upcoming`: epoch ms; empty without a schedule, and when it is malformed."""

    violations: tuple[Violation, ...]
    upcoming: tuple[int, ...]


class Difference(msgspec.Struct, frozen=True):
    """What changed on the way from `before` to `after`."""

    before: DefinitionView
    after: DefinitionView
    comparison: Comparison


def shown(row: DefinitionRow) -> DefinitionView:
    """A row as it is answered."""
    return DefinitionView(
        id=row.id,
        family_slug=row.family_slug,
        status=row.status,
        version=row.version,
        draft_revision=row.draft_revision,
        document=to_wire(row.document),
        created_at=row.created_at,
        updated_at=row.updated_at,
        published_at=row.published_at,
        created_by=row.created_by,
        updated_by=row.updated_by,
    )
