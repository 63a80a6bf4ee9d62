"""Renames a step in a draft: edges, checkpoints and the expressions that read it follow. Pure."""

from __future__ import annotations

import re
from typing import Any, Final

from ductor.model.json import JSON

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REF_FIELDS: Final = frozenset({"source_ref", "target_ref", "step_ref", "scatter_ref", "gather_ref"})
_PLAIN_FIELDS: Final = frozenset({"title", "description", "ref", "id", "type", "action", "tags", "family_slug", "name"})


def rename_everywhere(document: dict[str, Any], old: str, new: str) -> None:
    """Change the document in place. The step itself already has its new ref.

    Follows `STEPS.old`, `STEPS["old"]` and `STEPS['old']` in every text but titles, descriptions and names. A text
    that only looks like such an expression is renamed too; an expression that builds the name at run time is not.
    """
    name = re.escape(old)
    reads = re.compile(rf"\bSTEPS\s*(?:\.\s*{name}(?![A-Za-z0-9_])|\[\s*(?P<quote>[\"']){name}(?P=quote)\s*\])")
    read = f"STEPS.{new}" if _NAME.fullmatch(new) else f'STEPS["{new}"]'
    _walk(document, old, new, reads, read)


def _walk(value: JSON, old: str, new: str, reads: re.Pattern[str], read: str) -> JSON:
    if isinstance(value, str):
        return reads.sub(lambda _: read, value)
    if isinstance(value, list):
        value[:] = [_walk(item, old, new, reads, read) for item in value]
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in _REF_FIELDS:
                value[key] = new if item == old else item
            elif key not in _PLAIN_FIELDS or not isinstance(item, str):
                value[key] = _walk(item, old, new, reads, read)
    return value
