"""What people see of one node of a run: where it is, what it waits for, and its output under its policy."""

from __future__ import annotations

from ductor.app.handing import Room
from ductor.app.presenting import Presenter, waiting_on
from ductor.app.run_events import usage_view
from ductor.app.views import NodeView
from ductor.model.attempt import Attempt
from ductor.model.definition import Step
from ductor.model.enums import NodeStatus, StepType
from ductor.model.json import encode
from ductor.model.lineage import child_run_id
from ductor.model.payload import NULL
from ductor.model.run import NodeState, RunState


def node_view(
    state: RunState,
    step: Step,
    node: NodeState,
    presenter: Presenter,
    latest: Attempt | None,
    node_id: str,
    room: Room,
) -> NodeView:
    """One node. `latest` is the row of its last attempt, `room` what the answer has left for outputs."""
    claimed = latest if node.status is NodeStatus.SCHEDULED else None
    large, retrying = not room.takes(node.output), node.status is NodeStatus.RETRYING
    shown = None if large or node.output == NULL else presenter.payload(step.ref, node.output)
    has_child = step.type is StepType.SUBWORKFLOW and node.attempt
    return NodeView(
        node=node_id,
        type=step.type.wire,
        status=_shown_status(step, node, claimed).value,
        attempt=node.attempt,
        title=step.title,
        started_at=(claimed.started_at if claimed else node.started_at) or None,
        finished_at=node.finished_at or None,
        latest_output_json=None if shown is None else encode(shown).decode(),
        output_ref=f"/api/v2/workflow-runs/{state.run_id}/nodes/{node_id}/output" if large else None,
        error=presenter.error(step.ref, node.error),
        waiting_on=waiting_on(node_id, step, node),
        next_retry_at=(node.deadline or None) if retrying else None,
        deadline_at=None if retrying else node.deadline or None,
        child_run_id=child_run_id(state.run_id, node_id, node.attempt, node.generation) if has_child else None,
        no_route=node.no_route,
        usage=usage_view(latest.usage) if latest else (),
    )


def _shown_status(step: Step, node: NodeState, claimed: Attempt | None) -> NodeStatus:
    """A scatter is at work for as long as its items are, and an attempt that is a child run is waited for."""
    if claimed or (step.type is StepType.SCATTER and node.status is NodeStatus.WAITING):
        return NodeStatus.RUNNING
    waits = step.type is StepType.SUBWORKFLOW and node.attempt and node.status is NodeStatus.SCHEDULED
    return NodeStatus.WAITING if waits else node.status
