"""Threads for actions that wait, a recorder for their results, and a watchdog for their leases and timeouts.

Claims come from outside; a result is recorded in a unit together with whatever else has just ended.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Callable
from typing import Final

from ductor.app.claims import Claimed, Finished
from ductor.app.worker import Worker
from ductor.model.errors import StepError, raised
from ductor.ports import UnavailableError, Unit

BATCH: Final = 200
WATCH_S: Final = 0.25
PAUSE_S: Final = 0.5
GRACE_S: Final = 5.0
"""How long a stopping pool waits for running actions before it gives their attempts back."""

_log = logging.getLogger("ductor")


class ActionPool:
    """At most `threads` actions at once. `start` and `stop` once each.

    An action that hangs past its timeout keeps its thread, which nobody can end; another thread takes its place, and
    it goes when the action returns after all.
    """

    def __init__(self, worker: Worker, unit: Unit, *, threads: int) -> None:
        self._worker = worker
        self._unit = unit
        self._threads = threads
        self._tasks: queue.SimpleQueue[Claimed] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Finished] = queue.SimpleQueue()
        self._held: dict[int, Claimed] = {}
        self._running: dict[int, Claimed] = {}
        self._changed = threading.Condition()

    def start(self) -> None:
        """Start all threads; they end with the process."""
        for target in (*[self._act] * self._threads, self._record_all, self._watch):
            _start(target)

    @property
    def has_room(self) -> bool:
        """Whether a thread is free. One batch of claims may go over it; further tasks then stay in the queue."""
        return len(self._held) < self._threads

    def submit(self, claimed: Claimed) -> None:
        """Run a claimed attempt as soon as a thread is free."""
        with self._changed:
            self._held[id(claimed)] = claimed
        self._tasks.put(claimed)

    def stop(self) -> None:
        """Wait for running actions within the grace time and give the rest back."""
        with self._changed:
            self._changed.wait_for(lambda: not self._held, GRACE_S)
            left = list(self._held.values())
            # No longer looked after: a renewal would take them back.
            self._held.clear()
        if not left:
            return
        try:
            with self._unit.batch():
                self._worker.give_back(left)
        except UnavailableError as fault:
            _log.warning("%d attempts wait for their leases to end: %s", len(left), fault)

    def _act(self) -> None:
        replaced = False
        while not replaced:
            claimed = self._tasks.get()
            with self._changed:
                self._running[id(claimed)] = claimed
            result = self._outcome(claimed)
            with self._changed:
                replaced = self._running.pop(id(claimed), None) is None
            self._results.put(result)

    def _outcome(self, claimed: Claimed) -> Finished:
        try:
            return self._worker.execute(claimed)
        except BaseException as fault:  # noqa: BLE001 - what ends a thread must not end this one and hold its place
            return Finished(claimed, error=StepError("ACTION_FAILED", raised(fault)))

    def _record_all(self) -> None:
        while True:
            results = [self._results.get()]
            while not self._results.empty() and len(results) < BATCH:
                results.append(self._results.get())
            self._record(results)
            with self._changed:
                for result in results:
                    self._held.pop(id(result.claimed), None)
                self._changed.notify_all()

    def _record(self, results: list[Finished]) -> None:
        while True:
            try:
                with self._unit.batch():
                    self._worker.finish(results)
            except UnavailableError as fault:
                _log.warning("results wait for the storage: %s", fault)
                threading.Event().wait(PAUSE_S)
            except Exception:  # noqa: BLE001 - the rows stay claimed; their attempts are delivered again
                _log.exception("%d results could not be recorded", len(results))
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
                _log.warning("leases could not be renewed: %s", fault)
                self._reload(held)
            except Exception:  # noqa: BLE001 - the watchdog outlives any failure
                _log.exception("looking after running attempts failed")
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
                expired = self._worker.expire(held)
            self._give_up(expired)

    def _give_up(self, expired: list[Claimed]) -> None:
        """Their attempts are over, so they take no place any more; threads that they still hold are replaced."""
        with self._changed:
            for claimed in expired:
                self._held.pop(id(claimed), None)
            stuck = [claimed for claimed in expired if self._running.pop(id(claimed), None) is not None]
            self._changed.notify_all()
        for _ in stuck:
            _start(self._act)


def _start(target: Callable[[], None]) -> None:
    threading.Thread(target=target, name=f"ductor{getattr(target, '__name__', '')}", daemon=True).start()
