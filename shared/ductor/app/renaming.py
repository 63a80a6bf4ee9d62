"""Renames a step in a draft: edges, checkpoints and the expressions that read it follow. Pure."""

from __future__ import annotations

import re
from typing import Any, Final

from ductor.expressions.scanner import end_of_expression
from ductor.model.json import JSON

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPEN: Final = "${{"
_NO_EXPRESSION: Final = frozenset({"ref", "id", "type", "title", "description", "action"})
"""Fields of a step that hold no expression, whatever they look like."""

_OUTSIDE: Final = ("output", "hooks")
"""The other fields whose templates may read steps."""

_TEMPLATED: Final = frozenset({"action", "ai_action", "ai_agent", "bridge", "approval", "subworkflow"})
"""Step types whose args are text unless a `${{ }}` says otherwise; in the others' args, a text is an expression."""


def rename_everywhere(document: dict[str, Any], old: str, new: str) -> None:
    """Change the document in place. The step itself already has its new ref.

    Follows `STEPS.old`, `STEPS["old"]` and `"old" in STEPS` in every expression, and in nothing else: titles and texts
    stay as they are. An expression that builds the name at run time is not followed.
    """
    follow = _Follow(old, new)
    for edge in _objects(document.get("edges")):
        for end in ("source_ref", "target_ref"):
            if edge.get(end) == old:
                edge[end] = new
        if "condition" in edge:
            edge["condition"] = follow.all_of(edge["condition"])
    for checkpoint in _objects(document.get("checkpoints")):
        if checkpoint.get("step_ref") == old:
            checkpoint["step_ref"] = new
        if "output" in checkpoint:
            checkpoint["output"] = follow.templates_of(checkpoint["output"])
    for step in _objects(document.get("steps")):
        _in_step(step, follow)
    for name in _OUTSIDE:
        if name in document:
            document[name] = follow.templates_of(document[name])


def _in_step(step: dict[str, Any], follow: _Follow) -> None:
    kind = str(step.get("type", "")).lower().removeprefix("step_type_")
    for field, value in step.items():
        if field == "compensation" or (field == "args" and kind in _TEMPLATED):
            step[field] = follow.templates_of(value)
        elif field not in _NO_EXPRESSION:
            step[field] = follow.all_of(value)


class _Follow:
    """Rewrites the reads of one step."""

    def __init__(self, old: str, new: str) -> None:
        name = re.escape(old)
        self._reads = re.compile(
            rf"\bSTEPS\s*(?:\.\s*{name}(?![A-Za-z0-9_])|\[\s*(?P<quote>[\"']){name}(?P=quote)\s*\])"
            rf"|(?P<key>[\"']){name}(?P=key)(?P<member>\s+in\s+STEPS\b)"
        )
        self._read = f"STEPS.{new}" if _NAME.fullmatch(new) else f'STEPS["{new}"]'
        self._key = f'"{new}"'

    def all_of(self, value: JSON) -> JSON:
        """Texts are expressions, or templates when they hold a `${{`."""
        return _walked(value, lambda text: self._templated(text) if _OPEN in text else self._rewritten(text))

    def templates_of(self, value: JSON) -> JSON:
        """Texts are templates: only what stands in `${{ }}` is an expression."""
        return _walked(value, self._templated)

    def _templated(self, text: str) -> str:
        parts: list[str] = []
        position = 0
        while (start := text.find(_OPEN, position)) >= 0:
            inside = start + len(_OPEN)
            end = inside if start and text[start - 1] == "$" else end_of_expression(text, inside)
            if end < 0:
                break
            parts += [text[position:inside], self._rewritten(text[inside:end])]
            position = end
        return "".join((*parts, text[position:]))

    def _rewritten(self, text: str) -> str:
        return self._reads.sub(lambda read: self._key + read["member"] if read["member"] else self._read, text)


def _walked(value: JSON, rewrite: Any) -> JSON:
    if isinstance(value, str):
        return rewrite(value)
    if isinstance(value, list):
        return [_walked(item, rewrite) for item in value]
    if isinstance(value, dict):
        return {key: _walked(item, rewrite) for key, item in value.items()}
    return value


def _objects(items: JSON) -> list[dict[str, Any]]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
