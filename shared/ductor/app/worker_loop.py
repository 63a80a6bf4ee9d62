"""Runs a worker in a long-lived process: a claiming thread, threads for actions that wait, a recorder, a watchdog.

Actions that never wait run on the claiming thread itself, and their results commit together with the next claims.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from typing import Final

from ductor.app.worker import Claimed, Finished, Worker
from ductor.ports import Message, Queue, UnavailableError, Unit

BATCH: Final = 200
WAIT_MS: Final = 1_000
WATCH_S: Final = 0.25
PAUSE_S: Final = 0.5
GRACE_S: Final = 5.0
"""How long a stopping worker waits for running actions before it gives their attempts back."""

_log = logging.getLogger("ductor")


class WorkerLoop:
    """Drives one worker. `threads` is how many waiting actions run at once; further tasks stay in the queue."""

    def __init__(self, worker: Worker, steps: Queue, unit: Unit, *, threads: int, lease_ms: int) -> None:
        self._worker = worker
        self._steps = steps
        self._unit = unit
        self._threads = threads
        self._lease_ms = lease_ms
        self._tasks: queue.SimpleQueue[Claimed | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Finished | None] = queue.SimpleQueue()
        self._held: dict[int, Claimed] = {}
        self._changed = threading.Condition()

    def run(self, stop: threading.Event) -> None:
        """Claim and run until `stop` is set; then record what ends within the grace time and give the rest back."""
        helpers = [threading.Thread(target=self._act, name="action", daemon=True) for _ in range(self._threads)]
        helpers.append(threading.Thread(target=self._record_all, name="worker-recorder", daemon=True))
        helpers.append(threading.Thread(target=self._watch, name="worker-watchdog", daemon=True))
        for thread in helpers:
            thread.start()
        results: list[Finished] = []
        while not stop.is_set() or results:
            try:
                results = self._round(results, stop)
            except UnavailableError as fault:
                _log.warning("worker: %s", fault)
                stop.wait(PAUSE_S)
            except Exception:  # noqa: BLE001 - the loop outlives any batch
                _log.exception("worker: a batch failed; its tasks come again")
                results = []
                stop.wait(PAUSE_S)
        self._wind_down()

    def _round(self, results: list[Finished], stop: threading.Event) -> list[Finished]:
        """Record the last round's results and claim the next tasks, in one unit; then run what never waits."""
        messages: tuple[Message, ...] = ()
        if not stop.is_set() and self._has_room(wait=not results):
            wait_ms = 0 if results else WAIT_MS
            messages = self._steps.receive(BATCH, visibility_ms=self._lease_ms, wait_ms=wait_ms)
        if not messages and not results:
            return []
        with self._unit.batch():
            if results:
                self._worker.finish(results)
            held = self._worker.claim(messages) if messages else []
        blocking = [claimed for claimed in held if claimed.action is not None and claimed.action.blocking]
        for claimed in blocking:
            self._hold(claimed)
            self._tasks.put(claimed)
        return [self._worker.execute(claimed) for claimed in held if claimed not in blocking]

    def _has_room(self, *, wait: bool) -> bool:
        """Whether a thread is free. More tasks than threads are only ever claimed by one batch."""
        with self._changed:
            if wait and len(self._held) >= self._threads:
                self._changed.wait(WAIT_MS / 1000)
            return len(self._held) < self._threads

    def _hold(self, claimed: Claimed) -> None:
        with self._changed:
            self._held[id(claimed)] = claimed

    def _release(self, results: list[Finished]) -> None:
        with self._changed:
            for result in results:
                self._held.pop(id(result.claimed), None)
            self._changed.notify_all()

    def _act(self) -> None:
        while (claimed := self._tasks.get()) is not None:
            self._results.put(self._worker.execute(claimed))

    def _record_all(self) -> None:
        """Record results of waiting actions, as many at once as there are."""
        while (first := self._results.get()) is not None:
            results = [first]
            while not self._results.empty() and len(results) < BATCH:
                another = self._results.get()
                if another is None:
                    self._results.put(None)
                    break
                results.append(another)
            self._record(results)
            self._release(results)

    def _record(self, results: list[Finished]) -> None:
        while True:
            try:
                with self._unit.batch():
                    self._worker.finish(results)
            except UnavailableError as fault:
                _log.warning("worker: results wait: %s", fault)
                threading.Event().wait(PAUSE_S)
            except Exception:  # noqa: BLE001 - the rows stay claimed; their attempts are delivered again
                _log.exception("worker: %d results could not be recorded", len(results))
                return
            else:
                return

    def _watch(self) -> None:
        """Renew leases of running attempts at a third of their time, and end those that run too long."""
        while True:
            threading.Event().wait(WATCH_S)
            with self._changed:
                held = list(self._held.values())
            try:
                self._look_after(held)
            except UnavailableError as fault:
                _log.warning("worker: leases not renewed: %s", fault)
                self._reload(held)
            except Exception:  # noqa: BLE001 - the watchdog outlives any failure
                _log.exception("worker: looking after running attempts failed")
                self._reload(held)

    def _reload(self, held: list[Claimed]) -> None:
        with contextlib.suppress(UnavailableError):
            self._worker.reload(held)

    def _look_after(self, held: list[Claimed]) -> None:
        stale = [claimed for claimed in held if self._worker.wants_renewal(claimed)]
        if stale:
            with self._unit.batch():
                self._worker.renew(stale)
        if self._worker.overdue(held):
            with self._unit.batch():
                self._worker.expire(held)

    def _wind_down(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._held, GRACE_S)
            left = list(self._held.values())
        if left:
            try:
                with self._unit.batch():
                    self._worker.give_back(left)
            except UnavailableError as fault:
                _log.warning("worker: %d attempts wait for their leases to end: %s", len(left), fault)
        self._results.put(None)
