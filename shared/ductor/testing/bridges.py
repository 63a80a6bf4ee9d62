"""Workers outside of a simulated world: they poll, work, answer, answer again, answer late, give back, and die.

They are clients: what they hold is what they were told, and a lost answer leaves them with nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from ductor.app.access import Caller
from ductor.app.bridge import Bridge
from ductor.app.bridge_answers import Failure
from ductor.app.bridge_poll import PollRequest, TaskGiven
from ductor.model.attempt import Attempt, AttemptStatus
from ductor.model.definition import Definition, Step
from ductor.model.enums import NodeStatus, StepType
from ductor.model.errors import RefusedError
from ductor.model.json import JSON, encode
from ductor.model.run import RunState
from ductor.ports import Clock
from ductor.testing.ledger import Claim, Effect, Ledger
from ductor.testing.memory import MemoryTable

TYPES: Final = ("work.a", "work.b")
ENVIRONMENT: Final = "default"
SHARE: Final = 0.15
"""The share of definitions in which workers outside do some of the steps."""

LEASE_S: Final = 10


class Bridges:
    """What workers outside did and were told, over all of them."""

    def __init__(self) -> None:
        self.accepted: dict[tuple[str, str, int], list[JSON]] = {}
        self.held: set[tuple[str, str, int, int]] = set()
        self.faults: list[str] = []

    def took(self, task: TaskGiven) -> None:
        """A worker was given a delivery; nobody else ever is."""
        key = (task.run_id, task.node, task.attempt, task.delivery)
        if key in self.held:
            self.faults.append(f"delivery {key} was given to two workers")
        self.held.add(key)


class Held(msgspec.Struct):
    """A task in hand. `output` is there once the work is done, once, `failed` when it went wrong."""

    task: TaskGiven
    output: JSON = None
    done: bool = False
    failed: bool = False
    answered: bool = False


class OutsideWorker:
    """One worker with what it holds, and a few tokens of before that it may use once more."""

    def __init__(
        self, name: str, bridge: Bridge, caller: Caller, clock: Clock, rng: random.Random, seen: Bridges, ledger: Ledger
    ) -> None:
        self.name = name
        self._bridge = bridge
        self._caller = caller
        self._clock = clock
        self._rng = rng
        self._seen = seen
        self._ledger = ledger
        self.held: list[Held] = []
        self.old: list[Held] = []
        self.lost: list[Held] = []

    def act(self) -> None:
        """One thing that such a worker does, sensible or not."""
        dice = self._rng.random()
        if dice < 0.3 or not (self.held or self.old):
            self.poll(self._rng.choice((1, 1, 3)))
        elif dice < 0.6 and self.held:
            self.answer(self._rng.choice(self.held))
        elif dice < 0.7 and self.held:
            self.beat(self._rng.choice(self.held))
        elif dice < 0.76 and self.held:
            self.release(self._rng.choice(self.held))
        elif dice < 0.9 and self.old:
            self.again(self._rng.choice(self.old))
        elif dice < 0.96 and self.lost:
            self.return_late()
        elif self.held:
            self.die()

    def poll(self, limit: int) -> int:
        """Take tasks; how many came."""
        request = PollRequest(task_types=TYPES, max=limit, lease_seconds=LEASE_S, worker=self.name)
        given = self._bridge.polls.poll(self._caller, request)
        for task in given:
            self._seen.took(task)
            number = self._ledger.tick()
            self._ledger.claims.append(
                Claim(task.run_id, task.node, task.attempt, task.delivery, number, stopped=False)
            )
            self.held.append(Held(task))
            self._ledger.say(f"        {self.name} has {task.run_id} {task.node} {task.attempt}.{task.delivery}")
        return len(given)

    def answer(self, held: Held) -> None:
        """Do the work, unless it was done, and say how it went. What was not answered stays in hand."""
        self._work(held)
        try:
            self._say(held)
        except RefusedError as refused:
            self._ledger.say(f"        refused: {refused}")
        self._put_away(held)

    def _work(self, held: Held) -> None:
        if held.done:
            return
        task, number = held.task, self._ledger.tick()
        given = _given(task)
        held.done, held.failed = True, given.get("fails", 0) >= task.attempt
        held.output = None if held.failed else {"v": given.get("v"), "number": number}
        effect = Effect(task.run_id, task.node, task.attempt, task.delivery, held.output, number)
        self._ledger.effects.append(effect)

    def _say(self, held: Held) -> None:
        task, answers = held.task, self._bridge.answers
        if held.failed:
            code = _given(task).get("code", "BOOM")
            answers.fail(self._caller, task.task_token, Failure(code=code, message="failed on demand"))
            return
        answers.complete(self._caller, task.task_token, held.output)
        self._seen.accepted.setdefault((task.run_id, task.node, task.attempt), []).append(held.output)

    def beat(self, held: Held) -> None:
        """Show a sign of life; a worker that is told to stop mostly does."""
        try:
            alive = self._bridge.answers.heartbeat(self._caller, held.task.task_token, {"beat": self._clock.now_ms()})
        except RefusedError:
            self._put_away(held)
            return
        if alive.cancel_requested and self._rng.random() < 0.8:
            self.release(held)

    def release(self, held: Held) -> None:
        """Give the task back."""
        try:
            self._bridge.answers.release(self._caller, held.task.task_token)
        except RefusedError:
            pass
        self._put_away(held)

    def again(self, old: Held) -> None:
        """Use a token of before: for the same answer, for another one, or for a sign of life."""
        dice = self._rng.random()
        try:
            if dice < 0.5 and old.done:
                self._say(old)
            elif dice < 0.8:
                self._bridge.answers.complete(self._caller, old.task.task_token, {"another": self._ledger.tick()})
                self._seen.faults.append(f"{old.task.node} took another answer for a token that was used up")
            else:
                self._bridge.answers.heartbeat(self._caller, old.task.task_token)
                self._seen.faults.append(f"{old.task.node} is kept alive by a token that was used up")
        except RefusedError as refused:
            self._ledger.say(f"        refused: {refused}")

    def die(self) -> None:
        """It stops without a word. Some of what it had turns up again, perhaps too late."""
        self.lost = [*self.lost[-3:], *self.held[:2]]
        self.held = []

    def return_late(self) -> None:
        """Somebody finds a task that was forgotten, and answers it."""
        self.answer(self.lost.pop(0))

    def _put_away(self, held: Held) -> None:
        if held in self.held:
            self.held.remove(held)
        self.old = [*self.old[-5:], held]

    def work(self) -> int:
        """Everything that a worker without faults does at one moment; how much it was."""
        moved = len(self.held) + self.poll(10)
        for held in tuple(self.held):
            self.answer(held)
        return moved


def _given(task: TaskGiven) -> dict[str, Any]:
    """The input of a task; a fork may have been given another one."""
    return task.input if isinstance(task.input, dict) else {}


def bridged(rng: random.Random, definition: Definition) -> Definition:
    """Perhaps the same definition, with workers outside for some of its actions."""
    definition = msgspec.structs.replace(definition, environment=ENVIRONMENT)
    if rng.random() >= SHARE:
        return definition
    steps = tuple(
        _bridge(rng, step) if step.type is StepType.ACTION and rng.random() < 0.6 else step for step in definition.steps
    )
    return msgspec.structs.replace(definition, steps=steps)


def _bridge(rng: random.Random, step: Step) -> Step:
    given: Any = step.args.get("v") if isinstance(step.args, dict) else None
    args = {
        "task_type": rng.choice(TYPES),
        "input": {"v": given, "fails": rng.choice((0, 0, 0, 1, 2)), "code": rng.choice(("BOOM", "FATAL"))},
        "schedule_to_start_timeout_ms": rng.choice((0, 0, 0, 3_000, 60_000)),
    }
    return msgspec.structs.replace(
        step,
        type=StepType.BRIDGE,
        action="",
        args=args,
        connection_ref="",
        connection_ref_mode="",
        heartbeat_timeout_ms=rng.choice((0, 0, 5_000, 60_000)),
        timeout_ms=rng.choice((0, 0, 2_000, 30_000)),
    )


def next_visible_at(table: MemoryTable, now: int, rests: Callable[[str], bool]) -> int | None:
    """When a task that is hidden now may be looked at again, unless its run `rests`."""
    rows: list[tuple[int, str]] = []
    for task_type in TYPES:
        found = table.query(f"BQ#t#{ENVIRONMENT}#{task_type}", low="", high="~", limit=100_000).items
        rows += [(int(at), name.partition("/")[0]) for at, _, name in (row.sk.partition("#") for row in found)]
    return min((at for at, run_id in rows if at > now and not rests(run_id)), default=None)


def bridge_faults(
    seen: Bridges, state: RunState, bridges: frozenset[str], attempts: dict[tuple[str, int], Attempt], shown: Any
) -> Iterator[str]:
    """What was promised to workers outside and was not kept. `shown`: the value behind a payload of the run."""
    yield from seen.faults
    for (run_id, node, attempt), outputs in seen.accepted.items():
        if run_id != state.run_id:
            continue
        if len({encode(output) for output in outputs}) > 1:
            yield f"attempt {(node, attempt)} has {len(outputs)} accepted results"
        row = attempts.get((node, attempt))
        if row is None or row.status is not AttemptStatus.SUCCEEDED or shown(row.output) != outputs[0]:
            yield f"the accepted result of attempt {(node, attempt)} is not in its row"
    for ref, entry in state.root.nodes.items():
        if ref not in bridges or entry.status is not NodeStatus.COMPLETED or entry.error is not None:
            continue
        if state.fork is not None and state.fork.foreign(ref):
            continue
        row = attempts.get((ref, entry.attempt))
        value = shown(entry.output)
        resolved = isinstance(value, dict) and "by" in value
        if not resolved and (row is None or row.status is not AttemptStatus.SUCCEEDED or shown(row.output) != value):
            yield f"{ref} shows an output that its attempt does not have"
