"""What was said between AI steps and models, as people see it: each entry under its step's redaction policy."""

from __future__ import annotations

from typing import Final

import msgspec

from ductor.app.ai_journal import Called, Closed, Entry, Journal, Turn
from ductor.app.presenting import Presenter
from ductor.app.views import AttemptView, SaidView
from ductor.model.enums import StepType
from ductor.model.json import JSON, encode
from ductor.model.payload import ROW_BYTES

AI_STEPS: Final = frozenset({StepType.AI_ACTION, StepType.AI_AGENT})
_WORK: Final = frozenset(kind.value for kind in AI_STEPS)


def with_conversations(
    views: list[AttemptView], run_id: str, journal: Journal, presenter: Presenter
) -> list[AttemptView]:
    """The attempts of AI steps with the turns and tool calls that each of them added."""
    nodes = {view.node for view in views if view.action in _WORK}
    said = {node: journal.all_of(run_id, node) for node in nodes}
    return [
        msgspec.structs.replace(
            view,
            conversation=tuple(
                _said(entry, view.node, presenter) for entry in said[view.node] if entry.attempt == view.attempt
            ),
        )
        if view.node in said
        else view
        for view in views
    ]


def _said(entry: Entry, node: str, presenter: Presenter) -> SaidView:
    if isinstance(entry, Turn):
        answer = entry.answer
        content, large = _content(
            {"text": answer.text, "calls": [{"tool": call.name, "input": call.input} for call in answer.calls]},
            node,
            presenter,
        )
        return SaidView(
            kind="turn",
            at=entry.at,
            took_ms=entry.took_ms,
            name=entry.model,
            outcome=answer.stop.value,
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
            content=content,
            content_large=large,
        )
    if isinstance(entry, Called):
        content, large = _content({"result": entry.result.text}, node, presenter)
        outcome = entry.code or "succeeded"
        return SaidView(
            kind="tool",
            at=entry.at,
            took_ms=entry.took_ms,
            name=entry.tool,
            outcome=outcome,
            content=content,
            content_large=large,
        )
    return _ended(entry)


def _ended(entry: Closed) -> SaidView:
    return SaidView(kind="ended", at=entry.at, took_ms=0, name="", outcome=entry.code, content=None)


def _content(value: JSON, node: str, presenter: Presenter) -> tuple[JSON, bool]:
    large = len(encode(value)) > ROW_BYTES
    return None if large else presenter.value(node, value), large
