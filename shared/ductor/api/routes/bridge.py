"""Workers outside: they poll for tasks of bridge steps and answer them."""

from __future__ import annotations

from typing import Any, Final

from ductor.api.call import Call
from ductor.api.models.bridge import (
    BridgeTask,
    CompleteBody,
    FailBody,
    HeartbeatAnswer,
    HeartbeatBody,
    PollAnswer,
    PollBody,
    TaskAnswer,
)
from ductor.api.models.common import EmptyBody
from ductor.api.routing import Route
from ductor.app.access import Scope
from ductor.app.bridge import Bridge
from ductor.app.bridge_answers import Failure
from ductor.app.bridge_poll import PollRequest

POLL: Final = "/api/v2/bridge-tasks:poll"
_ONE: Final = "/api/v2/bridge-tasks/<token>"
_SCOPE: Final = Scope.BRIDGE_WORK.value


def waits(method: str, path: str) -> bool:
    """Whether a request may wait for long before it is answered."""
    return method == "POST" and path == POLL


class BridgeRoutes:
    """`/api/v2/bridge-tasks`."""

    def __init__(self, bridge: Bridge) -> None:
        self._polls = bridge.polls
        self._answers = bridge.answers

    def routes(self) -> tuple[Route, ...]:
        return (
            Route("POST", POLL, "Wait for tasks and take them", self._poll, PollAnswer, PollBody, scope=_SCOPE),
            Route(
                "POST",
                f"{_ONE}:heartbeat",
                "Keep a task",
                self._heartbeat,
                HeartbeatAnswer,
                HeartbeatBody,
                scope=_SCOPE,
            ),
            Route(
                "POST", f"{_ONE}:complete", "Complete a task", self._complete, TaskAnswer, CompleteBody, scope=_SCOPE
            ),
            Route("POST", f"{_ONE}:fail", "Fail a task", self._fail, TaskAnswer, FailBody, scope=_SCOPE),
            Route(
                "POST",
                f"{_ONE}:release",
                "Give a task back to its queue",
                self._release,
                TaskAnswer,
                EmptyBody,
                scope=_SCOPE,
            ),
        )

    def _poll(self, call: Call) -> PollAnswer:
        body = call.body(PollBody)
        fields: dict[str, Any] = {**body.model_dump(), "task_types": tuple(body.task_types)}
        tasks = self._polls.poll(call.caller, PollRequest(**fields), call.gone)
        return PollAnswer(tasks=[BridgeTask.model_validate(task) for task in tasks], metadata=call.metadata())

    def _heartbeat(self, call: Call) -> HeartbeatAnswer:
        alive = self._answers.heartbeat(call.caller, call.ids["token"], call.body(HeartbeatBody).details)
        return HeartbeatAnswer(
            cancel_requested=alive.cancel_requested,
            lease_expires_at=alive.lease_expires_at,
            metadata=call.metadata(),
        )

    def _complete(self, call: Call) -> TaskAnswer:
        self._answers.complete(call.caller, call.ids["token"], call.body(CompleteBody).output)
        return TaskAnswer(metadata=call.metadata())

    def _fail(self, call: Call) -> TaskAnswer:
        self._answers.fail(call.caller, call.ids["token"], Failure(**call.body(FailBody).model_dump()))
        return TaskAnswer(metadata=call.metadata())

    def _release(self, call: Call) -> TaskAnswer:
        call.body(EmptyBody)
        self._answers.release(call.caller, call.ids["token"])
        return TaskAnswer(metadata=call.metadata())
