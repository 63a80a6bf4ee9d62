"""What a draft, and an edit of one, must be before anything is stored. Refuses; changes nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ductor.app.library import Family
from ductor.app.refusals import aborted, invalid
from ductor.model.definition import DefinitionRow
from ductor.model.errors import ErrorCode, RefusedError, Severity, Violation, refuse
from ductor.model.json import JSON
from ductor.validation.document import canonical, check_saveable

_SLUG: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}")


def saveable(document: dict[str, JSON], slug: str) -> dict[str, JSON]:
    """The document in the form that is stored; refuses what not even a draft may hold."""
    if document.get("family_slug") != slug:
        raise invalid("FIELD_INVALID", "a draft stays in its family; duplicate it to start another one", "family_slug")
    errors = tuple(check_saveable(document))
    if errors:
        raise RefusedError(ErrorCode.INVALID_ARGUMENT, "the draft cannot be saved like this", errors)
    return canonical(document)


def refuse_errors(found: Sequence[Violation], message: str) -> None:
    """INVALID_ARGUMENT with every error among the violations; nothing when there is none."""
    errors = tuple(violation for violation in found if violation.severity is Severity.ERROR)
    if errors:
        counted = f"{message}: {len(errors)} error{'s'[: len(errors) > 1]}"
        raise RefusedError(ErrorCode.INVALID_ARGUMENT, counted, errors)


def family_slug_of(document: Mapping[str, JSON]) -> str:
    """The document's family, which must be named and well formed."""
    slug = document.get("family_slug")
    if slug is None:
        raise invalid("FIELD_REQUIRED", "name the family, for example hello_world", "family_slug")
    if not isinstance(slug, str) or not _SLUG.fullmatch(slug):
        message = "a family slug starts with a to z, followed by at most 62 of a to z, 0 to 9, _ and -"
        raise invalid("FIELD_INVALID", message, "family_slug")
    return slug


def expected_revision(changes: Mapping[str, Any], *, required: bool) -> int:
    """The revision that an edit was made on; FIELD_REQUIRED when it is missing."""
    expected = changes.get("expected_draft_revision")
    if expected is None and required:
        message = "send the draft_revision that you read, so that nobody's edit is overwritten"
        raise invalid("FIELD_REQUIRED", message, "expected_draft_revision")
    if not isinstance(expected, int) or isinstance(expected, bool):
        raise invalid("FIELD_INVALID", "the revision is a whole number", "expected_draft_revision")
    return expected


def check_revision(row: DefinitionRow, expected: int) -> None:
    """ABORTED `DRAFT_REVISION_CONFLICT` unless the draft is at this revision."""
    if row.draft_revision != expected:
        message = f"the draft is at revision {row.draft_revision}, not {expected}; read it again and reconcile"
        raise aborted("DRAFT_REVISION_CONFLICT", message, "expected_draft_revision")


def draft_exists(family: Family) -> RefusedError:
    """The refusal of a second draft."""
    message = f"the family {family.slug} already has a draft ({family.draft_id}); edit it or choose another slug"
    return refuse(ErrorCode.ALREADY_EXISTS, "DRAFT_EXISTS", message, "family_slug")
