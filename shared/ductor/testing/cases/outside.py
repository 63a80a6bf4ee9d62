"""Workers outside, as a test mocks them: they take the tasks of bridge steps and answer as the test file says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from ductor.app.access import Caller
from ductor.app.bridge import Bridge
from ductor.app.bridge_answers import Failure
from ductor.app.bridge_poll import MAX_TASKS, MAX_TYPES, PollRequest, TaskGiven
from ductor.model.errors import RefusedError
from ductor.model.json import JSON
from ductor.testing.cases.mocks import Said
from ductor.testing.chaos import Chaos
from ductor.testing.memory import VirtualClock

LEASE_S: Final = 30
BEAT_MS: Final = 10_000

Ask = Callable[[TaskGiven], Said | None]
"""What the test says that a worker answers; None when it says nothing of this task."""


class _Held(msgspec.Struct):
    task: TaskGiven
    said: Said
    ready_at: int


class MockedOutside:
    """All workers outside of one test. They are no part of the server: they live on when it dies, and ask again."""

    def __init__(self, bridge: Bridge, caller: Caller, clock: VirtualClock, chaos: Chaos, ask: Ask) -> None:
        self._bridge = bridge
        self._caller = caller
        self._clock = clock
        self._chaos = chaos
        self._ask = ask
        self.types: dict[str, list[str]] = {}
        self.held: list[_Held] = []

    @property
    def next_at(self) -> int | None:
        """When one of them has something to say: an answer, or a sign of life."""
        if not self.held:
            return None
        return max(self._clock.now, min(self._clock.now + BEAT_MS, *(held.ready_at for held in self.held)))

    def work(self) -> int:
        """Everything that can be done at this moment; how much it was."""
        moved = self._poll()
        for held in tuple(self.held):
            if held.ready_at <= self._clock.now:
                self._answer(held)
                moved += 1
            else:
                self._beat(held)
        return moved

    def _poll(self) -> int:
        """Take tasks. The answer of a poll always arrives: else its task would be free after a lease only."""
        taken, on = 0, self._chaos.on
        self._chaos.on = False
        for environment, types in self.types.items():
            for place in range(0, len(types), MAX_TYPES):
                wanted = tuple(types[place : place + MAX_TYPES])
                request = PollRequest(task_types=wanted, max=MAX_TASKS, lease_seconds=LEASE_S, environment=environment)
                for task in self._bridge.polls.poll(self._caller, request):
                    said = self._ask(task)
                    if said is not None:
                        self.held.append(_Held(task, said, self._clock.now + said.takes_ms))
                        taken += 1
        self._chaos.on = on
        return taken

    def _answer(self, held: _Held) -> None:
        """Say how it went. When the server dies before it has answered, it is said again."""
        answers, said = self._bridge.answers, held.said
        try:
            if said.error is None:
                answers.complete(self._caller, held.task.task_token, said.output)
            else:
                error = said.error
                failure = Failure(
                    code=error.code, message=error.message, retryable=error.retryable, details=error.details
                )
                answers.fail(self._caller, held.task.task_token, failure)
        except RefusedError:
            pass  # nobody waits for it any more
        self.held.remove(held)

    def _beat(self, held: _Held) -> None:
        try:
            alive = self._bridge.answers.heartbeat(self._caller, held.task.task_token)
        except RefusedError:
            self.held.remove(held)
            return
        if alive.cancel_requested:
            self._bridge.answers.release(self._caller, held.task.task_token)
            self.held.remove(held)


def task_types(documents: Sequence[dict[str, JSON]], default: str) -> dict[str, list[str]]:
    """The task types of all bridge steps, by environment."""
    found: dict[str, list[str]] = {}
    for document in documents:
        types = found.setdefault(str(document.get("environment") or default), [])
        for step in document.get("steps") or ():
            args = step.get("args") if isinstance(step, dict) else None
            named = args.get("task_type") if isinstance(args, dict) else None
            if isinstance(named, str) and named not in types:
                types.append(named)
    return {environment: types for environment, types in found.items() if types}
