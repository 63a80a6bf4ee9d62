"""Decisions on one step of a run: approve, reject, resolve. And signals to a run, for whichever step waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ductor.api.call import Call
from ductor.api.models.decisions import DecisionAnswer, DecisionBody, ResolveBody, SignalBody
from ductor.api.models.runs import ControlAnswer
from ductor.api.routing import Route
from ductor.app.access import Caller, Scope
from ductor.app.control import Accepted
from ductor.app.decisions import Decisions, ErrorGiven, Resolve, Verdict
from ductor.app.refusals import invalid
from ductor.app.signals import SignalRequest, Signals

_ONE: Final = "/api/v2/workflow-runs/<run_id>/steps/<node>"
_SIGNAL: Final = "/api/v2/workflow-runs/<run_id>:signal"
_Decide = Callable[[Caller, str, str, Verdict], Accepted]


class DecisionRoutes:
    """`/api/v2/workflow-runs/{run}/steps/{node}:approve`, `reject`, `resolve`, and `{run}:signal`."""

    def __init__(self, decisions: Decisions, signals: Signals) -> None:
        self._decisions = decisions
        self._signals = signals

    def routes(self) -> tuple[Route, ...]:
        scope = Scope.RUN_WRITE.value
        approve, reject = self._verdict(self._decisions.approve), self._verdict(self._decisions.reject)
        return (
            Route("POST", f"{_ONE}:approve", "Approve", approve, DecisionAnswer, DecisionBody, scope=scope, status=202),
            Route("POST", f"{_ONE}:reject", "Reject", reject, DecisionAnswer, DecisionBody, scope=scope, status=202),
            Route(
                "POST",
                f"{_ONE}:resolve",
                "End a waiting step by hand",
                self._resolve,
                DecisionAnswer,
                ResolveBody,
                scope=scope,
                status=202,
            ),
            Route("POST", _SIGNAL, "Signal a run", self._signal, ControlAnswer, SignalBody, scope=scope, status=202),
        )

    def _signal(self, call: Call) -> ControlAnswer:
        body = call.body(SignalBody)
        request = SignalRequest(request_id=body.request_id, name=body.name, payload=body.payload, reason=body.reason)
        accepted = self._signals.signal(call.caller, call.ids["run_id"], request)
        return ControlAnswer(run_id=accepted.run_id, metadata=call.metadata())

    def _verdict(self, decide: _Decide) -> Callable[[Call], DecisionAnswer]:
        def send(call: Call) -> DecisionAnswer:
            body = call.body(DecisionBody)
            verdict = Verdict(
                request_id=body.request_id,
                reason=body.reason,
                approver_id=body.approver_id,
                comment=body.comment,
                payload=body.payload,
            )
            return _accepted(call, decide(call.caller, call.ids["run_id"], call.ids["node"], verdict))

        return send

    def _resolve(self, call: Call) -> DecisionAnswer:
        body = call.body(ResolveBody)
        if body.error is not None and body.outcome != "error":
            raise invalid("FIELD_INVALID", 'goes with "outcome": "error" only', "error")
        given = body.error
        error = ErrorGiven(code=given.code, message=given.message, details=given.details) if given else ErrorGiven()
        resolve = Resolve(
            request_id=body.request_id,
            reason=body.reason,
            payload=body.payload,
            error=error if body.outcome == "error" else None,
        )
        return _accepted(call, self._decisions.resolve(call.caller, call.ids["run_id"], call.ids["node"], resolve))


def _accepted(call: Call, accepted: Accepted) -> DecisionAnswer:
    return DecisionAnswer(run_id=accepted.run_id, node=call.ids["node"], metadata=call.metadata())
