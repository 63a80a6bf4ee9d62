"""The loop of a long-lived process: one thread that coordinates, claims, runs what never waits, and records it.

A round is one unit: results of the last round, the intents they cause, the ticks, the tasks those hand out and their
claims become durable together, with a single forced write. On Lambda the queues drive the parts one by one instead.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Final, Protocol

from ductor.app.action_pool import ActionPool
from ductor.app.claims import Claimed, Finished
from ductor.app.coordinator import Coordinator, retry_after_ms
from ductor.app.settling import settle
from ductor.app.worker import Worker
from ductor.model.intent import Intent
from ductor.ports import Message, Queue, UnavailableError, Unit

BATCH: Final = 250
"""Messages of one kind in one round. More only adds latency: a message's share of the commit is already small."""

VISIBILITY_MS: Final = 5_000
"""How long a round may take before its intents are delivered again."""

WAIT_MS: Final = 1_000
PAUSE_S: Final = 0.5
"""Pause after a failure of the storage."""

_log = logging.getLogger("ductor")


class Bell(Protocol):
    """Tells that a queue may have something to deliver."""

    def wait(self, wait_ms: int) -> None:
        """Return when there may be messages, or after `wait_ms`."""
        ...


class Intents(Queue, Protocol):
    """The queue of intents of this process."""

    def standing(self, groups: Set[str]) -> Mapping[str, int]:
        """How many messages of each of `groups` are not acknowledged, delivered or not; without any: left out."""
        ...


class EngineLoop:
    """Drives one coordinator and one worker."""

    def __init__(
        self,
        *,
        coordinator: Coordinator,
        worker: Worker,
        pool: ActionPool,
        intents: Intents,
        steps: Queue,
        unit: Unit,
        bell: Bell,
        lease_ms: int,
    ) -> None:
        self._coordinator = coordinator
        self._worker = worker
        self._pool = pool
        self._intents = intents
        self._steps = steps
        self._unit = unit
        self._bell = bell
        self._lease_ms = lease_ms

    def run(self, stop: threading.Event) -> None:
        """Until `stop` is set; then record what has ended and give back what has not. Outlives every failure."""
        self._pool.start()
        results: list[Finished] = []
        while not stop.is_set() or results:
            if not results:
                self._bell.wait(WAIT_MS)
            results = self._guarded_round(results, stop)
        self._pool.stop()

    def _guarded_round(self, results: list[Finished], stop: threading.Event) -> list[Finished]:
        try:
            return self.round(results)
        except UnavailableError as fault:
            _log.warning("engine: %s", fault)
            stop.wait(PAUSE_S)
            return results
        except Exception:  # noqa: BLE001 - the loop outlives any round
            _log.exception("engine: a round failed; it is tried again in smaller parts")
        return self._apart(results, stop)

    def round(self, results: list[Finished]) -> list[Finished]:
        """One round: record `results`, coordinate, claim; then the results of what never waits."""
        try:
            with self._unit.batch():
                told: list[Intent] = []
                if results:
                    self._worker.finish(results, told.extend)
                self._coordinate(told)
                held = self._claim()
        except BaseException:
            # What the coordinator remembers may be ahead of what is stored now.
            self._coordinator.forget()
            raise
        return self._begin(held)

    def _coordinate(self, told: list[Intent]) -> None:
        """What the runs were told by this round's results, and what stands in the queue.

        What was told is applied in the unit that records it: storing it in between, to read and remove it at once,
        would cost a tenth of a step. Only where messages of its run stay in the queue, which came before it, it goes
        behind them.
        """
        messages = self._intents.receive(BATCH, visibility_ms=VISIBILITY_MS)
        received = Counter(message.group for message in messages)
        standing = self._intents.standing({intent.run_id for intent in told})
        behind = {run_id for run_id, count in standing.items() if count > received[run_id]}
        if behind:
            self._worker.tell([intent for intent in told if intent.run_id in behind])
            told = [intent for intent in told if intent.run_id not in behind]
        if messages or told:
            settle(self._intents, self._coordinator.handle(messages, told))

    def _claim(self) -> list[Claimed]:
        if not self._pool.has_room:
            return []
        tasks = self._steps.receive(BATCH, visibility_ms=self._lease_ms)
        return self._worker.claim(tasks) if tasks else []

    def _begin(self, held: Sequence[Claimed]) -> list[Finished]:
        finished: list[Finished] = []
        for claimed in held:
            if claimed.action is not None and claimed.action.blocking:
                self._pool.submit(claimed)
            else:
                finished.append(self._worker.execute(claimed))
        return finished

    def _apart(self, results: list[Finished], stop: threading.Event) -> list[Finished]:
        """The same round in units of one result, one run, one task, so that whoever is at fault fails alone."""
        held: list[Claimed] = []
        try:
            for result in results:
                self._alone("a result", lambda result=result: self._worker.finish([result]))
            messages = self._intents.receive(BATCH, visibility_ms=VISIBILITY_MS)
            for group in _groups(messages):
                self._one_run(group)
            for task in self._steps.receive(BATCH, visibility_ms=self._lease_ms) if self._pool.has_room else ():
                self._alone("a task", lambda task=task: held.extend(self._worker.claim([task])))
        except UnavailableError as fault:
            _log.warning("engine: %s", fault)
            stop.wait(PAUSE_S)
        return self._begin(held)

    def _one_run(self, group: list[Message]) -> None:
        if not self._alone(f"run {group[0].group}", lambda: settle(self._intents, self._coordinator.handle(group))):
            self._coordinator.forget()
            delay = retry_after_ms(max(message.receives for message in group))
            self._intents.retry([message.receipt for message in group], delay_ms=delay)

    def _alone(self, what: str, action: Action) -> bool:
        try:
            with self._unit.batch():
                action()
        except UnavailableError:
            raise
        except Exception:  # noqa: BLE001 - this one fails alone and is delivered again
            _log.exception("engine: %s failed; it comes again", what)
            return False
        return True


class Action(Protocol):
    """Something to do in a unit of its own."""

    def __call__(self) -> object: ...


def _groups(messages: Sequence[Message]) -> list[list[Message]]:
    groups: dict[str, list[Message]] = {}
    for message in messages:
        groups.setdefault(message.group, []).append(message)
    return list(groups.values())
