"""A run with bridge steps over in-memory ports on virtual time, and the protocol that its workers speak."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.simulation.scene import Scene, flow

from ductor.app.access import ALL_SCOPES, Caller
from ductor.app.bridge import Bridge
from ductor.app.bridge_answers import Failure
from ductor.app.bridge_doors import BridgeDoors
from ductor.app.bridge_poll import PollRequest, TaskGiven
from ductor.model.attempt import Attempt
from ductor.model.definition import Definition, Edge, Retry, Step
from ductor.model.enums import StepType
from ductor.model.errors import RefusedError
from ductor.model.json import JSON
from ductor.testing.memory import NullUnit
from ductor.testing.world import TENANT

WORKER = Caller("worker-key", TENANT, frozenset(ALL_SCOPES))
STRANGER = Caller("other-key", "another", frozenset(ALL_SCOPES))
LEASE_S = 30


def bridge(ref: str = "b", task_type: str = "render", retry: Retry | None = None, **rest: Any) -> Step:
    """A bridge step; what is no field of a step goes into its args."""
    fields = {name: rest.pop(name) for name in tuple(rest) if name in Step.__struct_fields__}
    args = {"task_type": task_type, "input": {"for": ref}, **rest}
    return Step(ref=ref, type=StepType.BRIDGE, args=args, retry=retry or Retry(), **fields)


class Desk(Scene):
    """One run; the test plays the workers. The simulator's own workers outside never act."""

    def __init__(self, *parts: Step | Edge, **fields: Any) -> None:
        super().__init__(Desk.definition(*parts, **fields), {"n": 1})
        self.world.outsiders.clear()
        self.pauses = 0
        self.bridge = Bridge(
            BridgeDoors(
                table=self.world.table,
                payloads=self.world.payloads,
                intents=self.world.intents,
                unit=NullUnit(),
                clock=self.clock,
                ids=self.world.ids,
                faults=self.world.chaos,
            ),
            pause=self.rest,
            look_ms=1_000,
        )
        self.deliver()

    @staticmethod
    def definition(*parts: Step | Edge, **fields: Any) -> Definition:
        return flow(*(parts or (bridge(),)), environment="default", **fields)

    def rest(self, ms: int) -> bool:
        self.pauses += 1
        self.clock.advance(ms)
        return True

    def poll(self, *task_types: str, caller: Caller = WORKER, **request: Any) -> tuple[TaskGiven, ...]:
        asked = {"max": 10, "lease_seconds": LEASE_S, "worker": "w", **request}
        return self.bridge.polls.poll(caller, PollRequest(task_types=task_types or ("render",), **asked))

    def take(self) -> TaskGiven:
        """The one task that there is."""
        (task,) = self.poll()
        return task

    def complete(self, task: TaskGiven, output: JSON = None, caller: Caller = WORKER) -> None:
        self.bridge.answers.complete(caller, task.task_token, output)

    def lose_lease(self) -> None:
        self.clock.advance(LEASE_S * 1000 + 1)

    def wake(self) -> None:
        """Fire what is due and let the run react."""
        while self.world.timer.step() or self.deliver():
            pass

    def row(self, attempt: int = 1, node: str = "b") -> Attempt:
        (row,) = [
            row for row in self.world.attempts(self.run_id) if (row.task.node, row.task.attempt) == (node, attempt)
        ]
        return row

    def queued(self, task_type: str = "render") -> list[str]:
        """The rows of a queue."""
        rows = self.world.table.query(f"BQ#{TENANT}#default#{task_type}", low="", high="~").items
        return [row.sk.split("#", 1)[1] for row in rows]


def code(refused: RefusedError) -> str:
    return refused.violations[0].code


Answer = Callable[[Desk, TaskGiven], Any]

ANSWERS: dict[str, Answer] = {
    "heartbeat": lambda desk, task: desk.bridge.answers.heartbeat(WORKER, task.task_token),
    "complete": lambda desk, task: desk.complete(task, {"late": True}),
    "fail": lambda desk, task: desk.bridge.answers.fail(WORKER, task.task_token, Failure(code="LATE")),
    "release": lambda desk, task: desk.bridge.answers.release(WORKER, task.task_token),
}


def refusal(answer: Answer, desk: Desk, task: TaskGiven) -> tuple[str, str]:
    with pytest.raises(RefusedError) as refused:
        answer(desk, task)
    return refused.value.error_code.value, code(refused.value)


def failed(desk: Desk, task: TaskGiven, **failure: Any) -> None:
    desk.bridge.answers.fail(WORKER, task.task_token, Failure(**failure))
    desk.wake()
