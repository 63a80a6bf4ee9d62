"""Starting and steering runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ductor.api.call import Call
from ductor.api.models.runs import (
    CheckpointAnswer,
    ControlAnswer,
    ControlBody,
    Failure,
    TriggerAnswer,
    TriggerBody,
)
from ductor.api.routing import Route
from ductor.app.admission import Label, TriggerRequest
from ductor.app.control import OPERATIONS, Controls
from ductor.app.trigger import Triggers

_ONE: Final = "/api/v2/workflow-runs/<run_id>"


class RunRoutes:
    """`:trigger` of a definition and the controls of a run."""

    def __init__(self, triggers: Triggers, controls: Controls) -> None:
        self._triggers = triggers
        self._controls = controls

    def routes(self) -> tuple[Route, ...]:
        trigger = Route(
            "POST",
            "/api/v2/workflow-definitions/<definition_id>:trigger",
            "Start a run of a published version",
            self._trigger,
            TriggerAnswer,
            TriggerBody,
            scope="workflow:write",
            status=202,
        )
        return (trigger, *(self._control(operation) for operation in OPERATIONS))

    def _trigger(self, call: Call) -> TriggerAnswer:
        body = call.body(TriggerBody)
        request = TriggerRequest(
            input=body.input,
            subject_type=body.subject_type,
            subject_id=body.subject_id,
            idempotency_key=body.idempotency_key,
            correlation_labels=tuple(Label(label.key, label.id) for label in body.correlation_labels),
            variables=body.variables,
            external_deployment_id=body.external_deployment_id,
            wait_for_checkpoint=body.wait_for_checkpoint,
            checkpoint_timeout_seconds=body.checkpoint_timeout_seconds,
            depth=0 if call.depth is None else call.depth + 1,
        )
        started = self._triggers.trigger(call.caller, call.ids["definition_id"], request)
        plain = TriggerAnswer(run_id=started.run_id, status=started.status.value, metadata=call.metadata())
        reached = started.checkpoint
        if reached is None:
            return plain
        return CheckpointAnswer(
            run_id=plain.run_id,
            status=plain.status,
            metadata=plain.metadata,
            checkpoint_reached=reached.reached,
            response_group_output=reached.output,
            response_group_error=Failure.model_validate(reached.error) if reached.error else None,
        )

    def _control(self, operation: str) -> Route:
        return Route(
            "POST",
            f"{_ONE}:{operation}",
            f"{operation.capitalize()} a run",
            self._sender(operation),
            ControlAnswer,
            ControlBody,
            scope="workflow_run:write",
            status=202,
        )

    def _sender(self, operation: str) -> Callable[[Call], ControlAnswer]:
        def send(call: Call) -> ControlAnswer:
            body = call.body(ControlBody)
            accepted = self._controls.send(call.caller, call.ids["run_id"], operation, body.request_id, body.reason)
            return ControlAnswer(run_id=accepted.run_id, metadata=call.metadata())

        return send
