"""A run's history as entries to show: transitions, attempts and audit entries in one order. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from ductor.app.history import Numbered
from ductor.app.presenting import Presenter, is_large
from ductor.app.views import AttemptView, AuditView, EventView, UsageView
from ductor.engine.context import rfc3339
from ductor.model.attempt import Attempt, ModelUse
from ductor.model.errors import StepError
from ductor.model.json import JSON
from ductor.model.payload import NULL, BlobRef, Inline, Payload, RowRef
from ductor.model.transition import ItemsStarted, NodeScheduled, OperatorAudited, RunEnded, Transition

# Contexts and run outputs are shown where they belong; here they would repeat with every entry.
_LEFT_OUT: Final = frozenset({"node", "context", "check_at", "check_every"})
_TIMES: Final = frozenset({"at", "deadline", "retry_at", "scheduled_at", "started_at", "heartbeat_at", "finished_at"})


def transition_event(presenter: Presenter, entry: Numbered) -> EventView:
    """One transition; `type` is its tag (`node_completed`), `data` its other fields with values redacted.

    Times in `data` are RFC 3339, None where the transition sets none.
    """
    transition = entry.transition
    node = getattr(transition, "node", None)
    audit = isinstance(transition, OperatorAudited)
    return EventView(
        seq=entry.seq,
        at=entry.at,
        kind="audit" if audit else "transition",
        type=_tag(transition),
        node=node,
        data=_with_times(dict(_data(presenter, transition, node or ""))),
    )


def attempt_event(seq: int, view: AttemptView, scheduled_at: int) -> EventView:
    """One attempt, told where it was handed out."""
    return EventView(
        seq=seq,
        at=view.started_at or scheduled_at,
        kind="attempt",
        type=f"attempt_{view.status}",
        node=view.node,
        data=_with_times(_without_conversation(msgspec.to_builtins(view))),
    )


def _without_conversation(data: dict[str, JSON]) -> dict[str, JSON]:
    """What was said is read with the attempts; here it would repeat."""
    return {name: value for name, value in data.items() if name != "conversation"}


def audit_view(entry: Numbered, audited: OperatorAudited) -> AuditView:
    return AuditView(
        seq=entry.seq,
        at=entry.at,
        operation=audited.operation,
        outcome=audited.outcome,
        actor=audited.actor,
        request_id=audited.request_id,
        reason=audited.reason,
        target=audited.target,
        code=audited.code,
        message=audited.message,
    )


def attempt_view(presenter: Presenter, attempt: Attempt, scheduled_at: int = 0) -> AttemptView:
    """An attempt's row under its node's redaction policy."""
    task, node = attempt.task, attempt.task.node
    return AttemptView(
        node=node,
        attempt=task.attempt,
        generation=task.generation,
        action=task.action,
        status=attempt.status.value,
        deliveries=attempt.deliveries,
        worker=attempt.worker,
        actor=attempt.actor,
        scheduled_at=scheduled_at or task.scheduled_at or None,
        started_at=attempt.started_at or None,
        heartbeat_at=attempt.heartbeat_at or None,
        finished_at=attempt.finished_at or None,
        heartbeat_details=None
        if attempt.heartbeat_details is None
        else presenter.value(node, attempt.heartbeat_details),
        cancel_requested=attempt.cancel_requested,
        input=presenter.payload(node, task.input),
        input_large=is_large(task.input),
        output=None if attempt.output == NULL else presenter.payload(node, attempt.output),
        output_large=is_large(attempt.output),
        error=presenter.error(node, attempt.error),
        usage=usage_view(attempt.usage),
    )


def usage_view(uses: tuple[ModelUse, ...]) -> tuple[UsageView, ...]:
    """What an attempt used, model by model."""
    return tuple(UsageView(**msgspec.structs.asdict(use)) for use in uses)


def scheduled(entries: list[Numbered]) -> Iterator[tuple[Numbered, NodeScheduled]]:
    """The entries that handed out an attempt."""
    for entry in entries:
        if isinstance(entry.transition, NodeScheduled):
            yield entry, entry.transition


def _tag(transition: Transition) -> str:
    return str(transition.__struct_config__.tag)


def _data(presenter: Presenter, transition: Transition, node: str) -> Iterator[tuple[str, JSON]]:
    for field in transition.__struct_fields__:
        value: Any = getattr(transition, field)
        if field in _LEFT_OUT or (field == "output" and isinstance(transition, RunEnded)):
            continue
        if isinstance(value, Inline | RowRef | BlobRef):
            yield from _payload(presenter, node, field, value)
        elif isinstance(value, StepError):
            yield field, msgspec.to_builtins(presenter.error(node, value))
        elif field == "taken":
            yield field, presenter.edges(node, value, into_items=isinstance(transition, ItemsStarted))
        elif field == "connection" and value:
            # Rendered from the run's data, so it shows as that does.
            yield field, presenter.value(node, value)
        elif value is not None and value != "":
            yield field, msgspec.to_builtins(value)


def _with_times(data: dict[str, JSON]) -> dict[str, JSON]:
    for field in _TIMES & data.keys():
        data[field] = rfc3339(data[field]) if data[field] else None
    return data


def _payload(presenter: Presenter, node: str, field: str, payload: Payload) -> Iterator[tuple[str, JSON]]:
    """A null is left out; what is over 8 KB is told by its size only."""
    if payload == NULL:
        return
    if is_large(payload):
        assert not isinstance(payload, Inline)
        yield f"{field}_bytes", payload.size
    else:
        yield field, presenter.payload(node, payload)
