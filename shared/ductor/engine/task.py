"""The task of an attempt, derived from the committed state: what `StartAttempt` puts on the steps queue."""

from __future__ import annotations

from ductor.engine.graph import Graph
from ductor.engine.scopes import find
from ductor.model.attempt import AttemptTask
from ductor.model.enums import NodeStatus, StepType
from ductor.model.run import RunState


def task_of(graph: Graph, state: RunState, node: str, attempt: int) -> AttemptTask | None:
    """The task of this attempt, or None when the node has moved on and nobody waits for it any more.

    The idempotency key is that of all attempts, until an operator has the node begin anew. Where the step is no
    `action`, what a worker runs goes by the name of the step's type.
    """
    place = find(graph, state, node)
    entry = place.entry if place else None
    if place is None or entry is None or entry.status is not NodeStatus.SCHEDULED or entry.attempt != attempt:
        return None
    step = place.node.step
    tuned = state.tuned.get(node)
    acts = step.type is StepType.ACTION
    anew = f"/reset-{entry.resets}" if entry.resets else ""
    return AttemptTask(
        run_id=state.run_id,
        tenant=state.origin.tenant,
        node=node,
        attempt=attempt,
        generation=entry.generation,
        action=step.action if acts else step.type.value,
        input=entry.input,
        timeout_ms=step.timeout_ms if tuned is None or tuned.timeout_ms is None else tuned.timeout_ms,
        heartbeat_timeout_ms=step.heartbeat_timeout_ms,
        idempotency_key=f"{state.run_id}/{node}{anew}",
        connection_ref=entry.connection or step.connection_ref,
        connection_ref_mode=step.connection_ref_mode,
        definition_id=state.origin.definition_id,
        scheduled_at=entry.scheduled_at,
        depth=state.origin.depth,
        environment=state.origin.environment if step.connection_ref or not acts else "",
    )
