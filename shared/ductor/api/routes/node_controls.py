"""Controls of one node of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ductor.api.call import Call
from ductor.api.models.decisions import DecisionAnswer
from ductor.api.models.node_controls import RetryPolicyBody, TimeoutBody
from ductor.api.models.runs import ControlBody
from ductor.api.routing import Route
from ductor.app.access import Scope
from ductor.app.node_controls import NodeControls, NodeRequest

_NODE: Final = "/api/v2/workflow-runs/<run_id>/nodes/<node>"


class NodeRoutes:
    """`/api/v2/workflow-runs/{run}/nodes/{node}:pause`, `resume`, `reset`, `updateRetryPolicy`, `updateTimeout`."""

    def __init__(self, controls: NodeControls) -> None:
        self._controls = controls

    def routes(self) -> tuple[Route, ...]:
        return (
            self._route("pause", "Hold a step", ControlBody, self._plain("pause")),
            self._route("resume", "Let a paused step go on", ControlBody, self._plain("resume")),
            self._route("reset", "Begin a step anew", ControlBody, self._plain("reset")),
            self._route("updateRetryPolicy", "Change a step's retries", RetryPolicyBody, self._retry),
            self._route("updateTimeout", "Change a step's timeout", TimeoutBody, self._timeout),
        )

    def _route(self, verb: str, title: str, body: type, act: Callable[[Call], DecisionAnswer]) -> Route:
        scope = Scope.RUN_WRITE.value
        return Route("POST", f"{_NODE}:{verb}", title, act, DecisionAnswer, body, scope=scope, status=202)

    def _plain(self, verb: str) -> Callable[[Call], DecisionAnswer]:
        def send(call: Call) -> DecisionAnswer:
            body = call.body(ControlBody)
            return self._send(call, verb, NodeRequest(request_id=body.request_id, reason=body.reason))

        return send

    def _retry(self, call: Call) -> DecisionAnswer:
        body = call.body(RetryPolicyBody)
        request = NodeRequest(request_id=body.request_id, reason=body.reason, retry=body.changes())
        return self._send(call, "updateRetryPolicy", request)

    def _timeout(self, call: Call) -> DecisionAnswer:
        body = call.body(TimeoutBody)
        request = NodeRequest(request_id=body.request_id, reason=body.reason, timeout_ms=body.timeout_ms)
        return self._send(call, "updateTimeout", request)

    def _send(self, call: Call, verb: str, request: NodeRequest) -> DecisionAnswer:
        accepted = self._controls.send(call.caller, call.ids["run_id"], call.ids["node"], verb, request)
        return DecisionAnswer(run_id=accepted.run_id, node=call.ids["node"], metadata=call.metadata())
