"""The summary of a run: its header without its nodes. Pure; the reason of a stall is handed in."""

from __future__ import annotations

from collections.abc import Mapping

from ductor.app.admission import Label
from ductor.app.presenting import waiting_on
from ductor.app.run_index import by_schedule
from ductor.app.views import ErrorView, RunSummary, StallView, WaitingOn
from ductor.model.definition import Step
from ductor.model.enums import NodeStatus, RunStatus
from ductor.model.run import RunState, effective_status

LABELS_ATTRIBUTE = "ductor.correlation_labels"
LABEL_ATTRIBUTE_PREFIX = "ductor.correlation."


def summarise(state: RunState, steps: Mapping[str, Step], stalled: StallView | None) -> RunSummary:
    """What lists and the run page show. An error's details stay out: they are values and belong to their step."""
    origin, error = state.origin, state.error
    return RunSummary(
        run_id=state.run_id,
        status=effective_status(state).value,
        workflow_type=origin.family_slug,
        definition_id=origin.definition_id,
        definition_version=origin.definition_version,
        environment=origin.environment,
        kind=origin.kind,
        journey_id=origin.journey_id,
        root_run_id=origin.root_run_id or state.run_id,
        parent_run_id=origin.parent_run_id,
        parent_node=origin.parent_node,
        source_run_id=origin.source_run_id,
        nesting_depth=origin.nesting_depth,
        subject_type=origin.subject_type,
        subject_id=origin.subject_id,
        correlation_labels=tuple(Label(key, value) for key, value in origin.labels),
        attributes=_attributes(state),
        external_deployment_id=origin.external_deployment_id,
        schedule=origin.family_slug if by_schedule(origin) else "",
        scheduled_at=origin.scheduled_at or None,
        created_by=origin.created_by,
        created_at=origin.created_at,
        started_at=state.started_at or None,
        updated_at=state.updated_at,
        finished_at=state.finished_at or None,
        deadline_at=state.deadline or None,
        transition_seq=state.seq,
        db_record_version=state.version,
        current_steps=current_steps(state),
        waiting_on=run_waits_on(state, steps),
        stalled=stalled,
        reason=state.reason,
        error=ErrorView(error.code, error.message, error.retryable, None) if error else None,
    )


def current_steps(state: RunState) -> tuple[str, ...]:
    """The nodes that have begun and not ended, in the order they began."""
    live = [
        (node.entered_at, ref)
        for ref, node in state.root.nodes.items()
        if node.status is not NodeStatus.PENDING and not node.status.ended
    ]
    return tuple(ref for _, ref in sorted(live))


def run_waits_on(state: RunState, steps: Mapping[str, Step]) -> WaitingOn | None:
    """What a waiting run waits for: of its parked nodes the one that moves first, else the one parked longest."""
    if state.status is RunStatus.PAUSED:
        return WaitingOn(
            kind="operator", detail="the run is paused by an operator", since=state.paused_at, deadline_at=None
        )
    if state.slot is not None and state.slot.awaited:
        detail = f"a free slot for {state.slot.key}"
        return WaitingOn(kind="concurrency", detail=detail, since=state.slot.since, deadline_at=None)
    status = effective_status(state)
    live = [(ref, node) for ref, node in state.root.nodes.items() if not node.status.ended]
    waits = [waiting_on(ref, steps.get(ref), node) for ref, node in live if node.status is not NodeStatus.PENDING]
    # A run whose attempts are all with others is at work for whoever has them, and waits as far as it knows.
    outside = status is RunStatus.RUNNING and not (state.tree is not None and state.tree.attempts) and None not in waits
    if status is not RunStatus.WAITING and not outside:
        return None
    known = [wait for wait in waits if wait is not None]
    return min(known, key=lambda wait: (wait.deadline_at is None, wait.deadline_at or wait.since), default=None)


def _attributes(state: RunState) -> dict[str, object]:
    """Visibility attributes, with the correlation labels under the names reserved for them."""
    labels = state.origin.labels
    if not labels:
        return dict(state.attributes)
    reserved: dict[str, object] = {LABELS_ATTRIBUTE: [{"key": key, "id": value} for key, value in labels]}
    reserved.update({f"{LABEL_ATTRIBUTE_PREFIX}{key}": value for key, value in labels})
    return {**state.attributes, **reserved}
