"""Carries out the commands of a committed tick. Everything here is idempotent: it may run again after any crash."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from ductor.engine.graph import Graph
from ductor.engine.task import task_of
from ductor.model.attempt import AttemptTask
from ductor.model.command import Announce, ArmWake, CheckAttempt, Command, Nudge, RevokeAttempt, StartAttempt
from ductor.model.enums import StepType
from ductor.model.errors import StepError, clip
from ductor.model.intent import Intent, IntentKind
from ductor.model.lineage import step_of
from ductor.model.run import RunState
from ductor.ports import Clock, Ids, Outgoing, Queue, Timers, UnavailableError

SEND_TRIES: Final = 3
"""How often entries that the queue did not accept are sent again at once, before the whole message waits."""


class Sender(Protocol):
    """The part of `ports.Queue` that sends."""

    def send(self, messages: Sequence[Outgoing]) -> tuple[int, ...]: ...


class Attempts(Protocol):
    """What dispatch asks of attempt rows (`app.attempts`, behind `app.resends`)."""

    def inspect(self, task: AttemptTask, now: int) -> Intent | AttemptTask | None:
        """What the row says: the end to apply, the task to send again, or nothing while the attempt lives."""
        ...

    def revoke(self, task: AttemptTask, now: int) -> Intent | None:
        """Close an unclaimed or lost attempt, ask the worker of a live one to stop; the end to apply, if any."""
        ...


class AttemptDoor(Protocol):
    """Carries out the attempts of a step type that the step workers know nothing of. Returns intents to send."""

    def start(
        self, graph: Graph, state: RunState, node: str, attempt: int, generation: int, mark: str
    ) -> Iterable[Intent]:
        """Begin the attempt, unless it was."""
        ...

    def check(
        self, graph: Graph, state: RunState, node: str, attempt: int, generation: int, mark: str
    ) -> Iterable[Intent]:
        """Look how the attempt is doing."""
        ...

    def revoke(
        self, graph: Graph, state: RunState, node: str, attempt: int, generation: int, mark: str
    ) -> Iterable[Intent]:
        """Nobody wants the attempt any more."""
        ...


Handler = Callable[[Graph, RunState, Command, str], Iterable[Intent]]
"""Carries out one type of command of a committed state; the text is the command's id. Returns intents to send."""


class Dispatcher:
    """Sends what a commit asked for. Raises UnavailableError when something could not be sent: try the run again.

    `handlers` carry out the commands of step types and run features that this module does not know, `doors` the
    attempts of step types that have no step workers.
    """

    def __init__(
        self,
        *,
        intents: Queue,
        steps: Sender,
        timers: Timers,
        attempts: Attempts,
        clock: Clock,
        ids: Ids,
        handlers: Mapping[type, Handler] | None = None,
        doors: Mapping[StepType, AttemptDoor] | None = None,
    ) -> None:
        self._handlers = handlers or {}
        self._doors = doors or {}
        self._intents = intents
        self._steps = steps
        self._timers = timers
        self._attempts = attempts
        self._clock = clock
        self._ids = ids

    def send(self, graph: Graph, state: RunState, commands: Sequence[Command], fresh: bool = False) -> None:
        """Carry out `commands`. Ids derive from run, version and place; `fresh` adds a new part for a re-send."""
        mark = f"{state.run_id}:{state.version}"
        if fresh:
            mark = f"{mark}:{self._ids.token(6)}"
        tasks: list[tuple[str, AttemptTask]] = []
        replies: list[Intent] = []
        news: list[tuple[int, Announce]] = []
        for place, command in enumerate(commands):
            if isinstance(command, Announce):
                news.append((place, command))
            else:
                self._one(graph, state, command, f"{mark}:{place}", tasks, replies)
        replies.extend(self._start(tasks))
        self.intend(replies)
        for place, command in news:  # at last: who listens must not keep the run from going on
            self._one(graph, state, command, f"{mark}:{place}", [], [])

    def _one(
        self,
        graph: Graph,
        state: RunState,
        command: Command,
        mark: str,
        tasks: list[tuple[str, AttemptTask]],
        replies: list[Intent],
    ) -> None:
        handler = self._handlers.get(type(command))
        if handler is not None:
            replies.extend(handler(graph, state, command, mark))
            return
        if isinstance(command, _OF_ATTEMPTS):
            door = self._doors.get(graph.by_ref[step_of(command.node)].step.type)
            if door is not None:
                act = _ACTS[type(command)](door)
                replies.extend(act(graph, state, command.node, command.attempt, command.generation, mark))
                return
        match command:
            case StartAttempt(node, attempt, _):
                task = task_of(graph, state, node, attempt)
                if task is not None:
                    tasks.append((mark, task))
            case ArmWake(at):
                self._timers.arm(state.run_id, at)
            case Nudge():
                now, number = self._clock.now_ms(), state.last.nudge
                replies.append(Intent(mark, state.run_id, IntentKind.NUDGE, at=now, generation=number))
            case CheckAttempt(node, attempt, _):
                self._check(graph, state, node, attempt, mark, tasks, replies)
            case RevokeAttempt(node, attempt, generation):
                task = AttemptTask(state.run_id, state.origin.tenant, node, attempt, generation, "", state.output)
                reply = self._attempts.revoke(task, self._clock.now_ms())
                if reply is not None:
                    replies.append(msgspec.structs.replace(reply, id=mark))

    def _check(
        self,
        graph: Graph,
        state: RunState,
        node: str,
        attempt: int,
        mark: str,
        tasks: list[tuple[str, AttemptTask]],
        replies: list[Intent],
    ) -> None:
        task = task_of(graph, state, node, attempt)
        if task is None:
            return
        found = self._attempts.inspect(task, self._clock.now_ms())
        if isinstance(found, Intent):
            # Not the id under which the worker told it: that one may stand in `applied`; each would cause the other.
            replies.append(msgspec.structs.replace(found, id=mark))
        elif found is not None:
            tasks.append((mark, found))

    def _start(self, tasks: Sequence[tuple[str, AttemptTask]]) -> list[Intent]:
        """Send tasks to the workers. A task that the queue refuses for good becomes a failed command of its node."""
        try:
            send_all(self._steps, [Outgoing(_encode(task), dedup_id=mark) for mark, task in tasks])
        except ValueError:
            return [reply for mark, task in tasks if (reply := self._start_one(mark, task)) is not None]
        return []

    def _start_one(self, mark: str, task: AttemptTask) -> Intent | None:
        try:
            send_all(self._steps, [Outgoing(_encode(task), dedup_id=mark)])
        except ValueError as refused:
            return Intent(
                id=f"{mark}:refused",
                run_id=task.run_id,
                kind=IntentKind.COMMAND_FAILED,
                at=self._clock.now_ms(),
                node=task.node,
                attempt=task.attempt,
                generation=task.generation,
                error=StepError("COMMAND_REFUSED", clip(str(refused), 256), retryable=False),
            )
        return None

    def intend(self, intents: Sequence[Intent]) -> None:
        """Send intents to their runs, in order, each with a fresh dedup id."""
        send_all(self._intents, [intent_message(intent, self._ids) for intent in intents])


_OF_ATTEMPTS: Final = (StartAttempt, CheckAttempt, RevokeAttempt)

_ACTS: Final[Mapping[type, Callable[[AttemptDoor], Callable[..., Iterable[Intent]]]]] = {
    StartAttempt: lambda door: door.start,
    CheckAttempt: lambda door: door.check,
    RevokeAttempt: lambda door: door.revoke,
}


def wake_intent(run_id: str, at: int, now: int, ids: Ids) -> Intent:
    """The wake-up of a run that was due at `at` (epoch ms) and fires at `now`; each firing has an id of its own."""
    mark = f"{run_id}:timer:{at}:{ids.token(6)}"
    return Intent(id=mark, run_id=run_id, kind=IntentKind.TIMER_FIRED, at=now)


def intent_message(intent: Intent, ids: Ids) -> Outgoing:
    """An intent as a message. The dedup id is fresh for each send: a FIFO queue silently swallows a repeated one."""
    return Outgoing(_encode(intent), group=intent.run_id, dedup_id=f"{intent.id[:90]}~{ids.token(9)}")


def send_all(queue: Sender, messages: Sequence[Outgoing]) -> None:
    """Send all, trying entries that were not accepted again. Raises UnavailableError when some stay unaccepted.

    Entries of one FIFO group are retried with everything after them, so that their order holds.
    """
    pending = list(messages)
    for _ in range(SEND_TRIES):
        if not pending:
            return
        failed = set(queue.send(pending))
        groups = {pending[index].group for index in failed if pending[index].group}
        first = {group: min(i for i in failed if pending[i].group == group) for group in groups}
        pending = [
            message
            for index, message in enumerate(pending)
            if index in failed or (message.group in first and index > first[message.group])
        ]
    if pending:
        raise UnavailableError(f"{len(pending)} messages were not accepted")


_encode: Callable[[AttemptTask | Intent], bytes] = msgspec.json.Encoder().encode
