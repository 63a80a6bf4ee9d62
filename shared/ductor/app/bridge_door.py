"""Attempts of bridge steps as the coordinator sees them: put into a queue, looked after, revoked. Knows no worker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ductor.app.attempts import Attempts, Row, finished_intent
from ductor.app.bridge_queue import BridgeQueue
from ductor.engine.graph import Graph
from ductor.engine.scopes import find
from ductor.engine.task import task_of
from ductor.model.attempt import Attempt, AttemptStatus, AttemptTask
from ductor.model.enums import RunStatus
from ductor.model.errors import StepError
from ductor.model.intent import Intent, IntentKind
from ductor.model.lineage import step_of
from ductor.model.run import RunState
from ductor.ports import Clock
from ductor.steps.bridge import Plan

START_TIMEOUT: Final = "SCHEDULE_TO_START_TIMEOUT"


class BridgeDoor:
    """Carries out the attempts of bridge steps (`dispatch.AttemptDoor`). All of it may be repeated."""

    def __init__(self, queue: BridgeQueue, attempts: Attempts, clock: Clock) -> None:
        self._queue = queue
        self._attempts = attempts
        self._clock = clock

    def start(
        self, graph: Graph, state: RunState, node: str, attempt: int, generation: int, mark: str
    ) -> Iterable[Intent]:
        """Put the task into its queue, where workers find it."""
        del generation, mark
        task = _task(graph, state, node, attempt)
        if task is not None:
            self._queue.put(task, task.scheduled_at)
        return ()

    def check(
        self, graph: Graph, state: RunState, node: str, attempt: int, generation: int, mark: str
    ) -> Iterable[Intent]:
        """End an attempt whose time is up; tell the end of one that has ended, and who has one that goes on."""
        del generation
        task = _task(graph, state, node, attempt)
        if task is None:
            return ()
        now, within = self._clock.now_ms(), _plan(graph, node).start_within_ms
        resting = state.status is RunStatus.PAUSED  # deadlines that pass meanwhile count from the resume on
        row = self._attempts.read(state.run_id, node, attempt)
        if row is None:
            if not within or resting or task.scheduled_at + within > now:
                self._queue.put(task, task.scheduled_at)
                return ()
            row = self._not_taken(task, within, now)
        row = self._end(row, 0 if resting else task.timeout_ms, now)
        if row.attempt.status.ended:
            return (_marked(finished_intent(row.attempt, now), mark),)
        if row.attempt.lease_until < now:
            self._queue.put(row.attempt.task, row.attempt.place)
        told = started_intent(row.attempt, task.timeout_ms, now)
        known = _watched(graph, state, node)
        return () if known == (told.body["worker"], told.body["deadline"]) else (_marked(told, mark),)

    def revoke(
        self, graph: Graph, state: RunState, node: str, attempt: int, generation: int, mark: str
    ) -> Iterable[Intent]:
        """Close the attempt if nobody holds it or its time is up; whoever does is told with the next heartbeat."""
        now = self._clock.now_ms()
        task = _task(graph, state, node, attempt) or _nameless(state, node, attempt, generation)
        row = self._attempts.read(state.run_id, node, attempt)
        if row is not None:
            self._end(row, task.timeout_ms, now)
        reply = self._attempts.revoke(task, now)
        if reply is not None and row is None and task.action:
            self._queue.remove(task, task.scheduled_at)
        return () if reply is None else (_marked(reply, mark),)

    def _not_taken(self, task: AttemptTask, within: int, now: int) -> Row:
        """No worker came in time. Not to be tried again: the next attempt would wait at the end of the same queue."""
        error = StepError(START_TIMEOUT, f"no worker took the task within {within} ms", retryable=False)
        ended = Attempt(
            task=task, status=AttemptStatus.TIMED_OUT, deliveries=0, started_at=now, finished_at=now, error=error
        )
        winner = self._attempts.create(ended)
        if winner is None:
            self._queue.remove(task, task.scheduled_at)
        return winner or Row(ended, 1)

    def _end(self, row: Row, timeout_ms: int, now: int) -> Row:
        """The row after what is overdue was ended: whatever a worker was faster to write wins."""
        while (ended := self._overdue(row.attempt, timeout_ms, now)) is not None:
            winner = self._attempts.replace(row, ended)
            row = row if winner is None else winner
        return row

    def _overdue(self, attempt: Attempt, timeout_ms: int, now: int) -> Attempt | None:
        if attempt.status.ended:
            return None
        if timeout_ms and not attempt.idle and attempt.started_at + timeout_ms <= now:
            error = StepError("ATTEMPT_TIMEOUT", f"the worker did not finish within {timeout_ms} ms")
            return msgspec.structs.replace(attempt, status=AttemptStatus.TIMED_OUT, finished_at=now, error=error)
        return self._attempts.forsaken(attempt, now) if attempt.lease_until < now else None


def started_intent(attempt: Attempt, timeout_ms: int, now: int) -> Intent:
    """Tells the run who has the attempt, and when it is overdue."""
    task, held = attempt.task, not attempt.idle
    deadline = attempt.started_at + timeout_ms if timeout_ms and held else 0
    return Intent(
        id=f"{task.run_id}/{task.node}/{task.attempt}/{'started' if held else 'returned'}/{attempt.deliveries}",
        run_id=task.run_id,
        kind=IntentKind.ATTEMPT_STARTED,
        at=now,
        actor=attempt.actor,
        node=task.node,
        attempt=task.attempt,
        generation=task.generation,
        body={"worker": attempt.worker if held else "", "deadline": deadline},
    )


def _task(graph: Graph, state: RunState, node: str, attempt: int) -> AttemptTask | None:
    """The task as workers get it, None when the node has moved on."""
    task = task_of(graph, state, node, attempt)
    if task is None:
        return None
    return msgspec.structs.replace(task, action=_plan(graph, node).task_type, environment=state.origin.environment)


def _nameless(state: RunState, node: str, attempt: int, generation: int) -> AttemptTask:
    """The task of an attempt that the state has forgotten: enough to close its row."""
    return AttemptTask(state.run_id, state.origin.tenant, node, attempt, generation, "", state.output)


def _plan(graph: Graph, node: str) -> Plan:
    plan: Plan = graph.by_ref[step_of(node)].args
    return plan


def _watched(graph: Graph, state: RunState, node: str) -> tuple[str, int] | None:
    place = find(graph, state, node)
    entry = place.entry if place else None
    return (entry.worker, entry.deadline) if entry else None


def _marked(intent: Intent, mark: str) -> Intent:
    """Not the id that the worker's call tells it under: that may stand in `applied`, and each would cause the other."""
    return msgspec.structs.replace(intent, id=mark)
