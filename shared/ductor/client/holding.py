"""The tasks that a worker holds: runs their handlers, keeps them alive, and answers for them. Polls for nothing."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any, Final

from ductor.client.api import BridgeApi, Document, passing
from ductor.client.errors import ApiError, TaskCancelled, TaskError, UnreachableError
from ductor.client.task import Task

Handler = Callable[[Task], Any]
"""Takes a task and returns its output (any JSON), or is a coroutine function that does."""

BEATS_PER_LEASE: Final = 3
BEAT_AT_LEAST_S: Final = 10.0
"""A cancellation comes with the answer to a sign of life, so there is one this often, however long the lease."""

BEAT_AT_MOST_S: Final = 1.0
"""A handler may tell its progress as often as it likes; this often it is sent."""

BEAT_SENDERS: Final = 16
"""So many signs of life may be out at once: a slow one holds up its own task only."""

MIN_BEAT_ANSWER_S: Final = 1.0
LOOK_S: Final = 0.1
GIVE_BACK_S: Final = 6.0
OUTPUT_INVALID: Final = "OUTPUT_INVALID"
OUTPUT_TOO_LARGE: Final = "OUTPUT_TOO_LARGE"
TASK_TYPE_UNKNOWN: Final = "TASK_TYPE_UNKNOWN"

_log = logging.getLogger("ductor.worker")


class Held:
    """A task with what the worker knows of its claim. `over`: its answer is of no use any more."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.beat_at = time.monotonic()
        self.beating = False
        self.over = threading.Event()
        self._every_s = min(task.heartbeat_within_s / BEATS_PER_LEASE, BEAT_AT_LEAST_S)

    @property
    def next_beat(self) -> float:
        """When the next sign of life is due (monotonic seconds): sooner if the handler has something to tell."""
        return self.beat_at + (min(self._every_s, BEAT_AT_MOST_S) if self.task._told else self._every_s)

    @property
    def beat_answer_s(self) -> float:
        """How long a sign of life may go unanswered: not so long that the next ones would come after the lease."""
        return max(self._every_s, MIN_BEAT_ANSWER_S)


class Holding:
    """Thread-safe. Handlers run on threads of their own, which end with the process and never keep it alive."""

    def __init__(self, api: BridgeApi, handlers: Mapping[str, Handler]) -> None:
        self._api = api
        self._handlers = handlers
        self._changed = threading.Condition()
        self._held: list[Held] = []
        self._closing = threading.Event()
        self._beats: SimpleQueue[Held | None] = SimpleQueue()
        self._senders = 0
        threading.Thread(target=self._beat, name="ductor-heartbeats", daemon=True).start()

    def __len__(self) -> int:
        return len(self._held)

    def begin(self, task: Task) -> None:
        """Run the task's handler."""
        held = Held(task)
        with self._changed:
            self._held.append(held)
            if self._senders < min(len(self._held), BEAT_SENDERS):
                self._senders += 1
                threading.Thread(target=self._send_beats, name="ductor-beat", daemon=True).start()
        threading.Thread(target=self._run, args=(held,), name=f"ductor-task-{task.node}", daemon=True).start()

    def wait(self, most: int, seconds: float) -> bool:
        """Wait until at most `most` tasks are held; False if they are not after so long."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._held) <= most, seconds)

    def give_back(self) -> int:
        """Ask all handlers to stop and give their tasks to other workers; how many there were."""
        with self._changed:
            left = tuple(self._held)
        _at_once([partial(self._release, held) for held in left])
        return len(left)

    def refuse(self, tasks: Sequence[Task]) -> None:
        """Give back tasks that were not begun."""
        _at_once([partial(self._give_back, task) for task in tasks])

    def close(self) -> None:
        """Show no more signs of life."""
        self._closing.set()

    def _run(self, held: Held) -> None:
        task = held.task
        try:
            self._answer(held)
        except (ApiError, UnreachableError) as error:
            _log.warning("%r: its answer did not count: %s", task, error)
        finally:
            held.over.set()
            with self._changed:
                self._held.remove(held)
                self._changed.notify_all()

    def _answer(self, held: Held) -> None:
        """Run the handler and tell how it went. Whatever it raises is an answer, too."""
        task = held.task
        try:
            output = self._call(task)
        except TaskCancelled:
            self._release(held)
        except TaskError as error:
            self._fail(held, error.code, error.message, error.retryable, error.details)
        except Exception as error:  # noqa: BLE001 - a handler may raise anything; it becomes the task's failure
            _log.exception("%r failed", task)
            said = str(error)
            self._fail(held, "TASK_FAILED", f"{type(error).__name__}{': ' if said else ''}{said}", True, None)
        else:
            self._complete(held, output)

    def _call(self, task: Task) -> str:
        """What the handler returns, as JSON text."""
        handler = self._handlers.get(task.type)
        if handler is None:
            raise TaskError(f"this worker has no handler for {task.type}", code=TASK_TYPE_UNKNOWN)
        output = handler(task)
        output = asyncio.run(output) if inspect.iscoroutine(output) else output
        try:
            return json.dumps(output, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            message = f"the handler returned what JSON cannot hold: {error}"
            raise TaskError(message, code=OUTPUT_INVALID, retryable=False) from error

    def _complete(self, held: Held, output: str) -> None:
        try:
            self._api.complete(held.task.token, output, held.over.is_set)
        except ApiError as refused:
            if refused.status != 413:
                raise
            self._fail(held, OUTPUT_TOO_LARGE, refused.message, False, None)

    def _fail(self, held: Held, code: str, message: str, retryable: bool, details: Any) -> None:
        failure: Document = {"code": code[:64] or "TASK_FAILED", "message": message[:8_000], "retryable": retryable}
        try:
            text = json.dumps(details, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            text = ""
        if details is not None and 0 < len(text.encode()) <= 8_000:
            failure["details"] = details
        self._api.fail(held.task.token, failure, held.over.is_set)

    def _release(self, held: Held) -> None:
        held.task._stop.set()
        if held.over.is_set():
            return
        held.over.set()
        self._give_back(held.task)

    def _give_back(self, task: Task) -> None:
        try:
            self._api.release(task.token)
        except (ApiError, UnreachableError) as error:
            _log.info("%r was not given back, its lease will end: %s", task, error)

    def _beat(self) -> None:
        """Hand what is due to the senders, the longest due first; a task whose sign of life is out is not due."""
        while not self._closing.wait(LOOK_S):
            now = time.monotonic()
            due = [held for held in tuple(self._held) if held.next_beat <= now and not held.beating]
            for held in sorted(due, key=lambda held: held.next_beat):
                held.beating = True
                self._beats.put(held)
        for _ in range(self._senders):
            self._beats.put(None)

    def _send_beats(self) -> None:
        while (held := self._beats.get()) is not None:
            if not held.over.is_set():
                self._beat_one(held)
            held.beating = False

    def _beat_one(self, held: Held) -> None:
        task, began = held.task, time.monotonic()
        task._told = False
        try:
            alive = self._api.heartbeat(task.token, task._details, held.beat_answer_s)
        except (ApiError, UnreachableError) as error:
            if passing(error):
                # Not at once again: the server has trouble enough, and most of the lease is left.
                held.beat_at, task._told = began, True
                return
            if not held.over.is_set():
                _log.warning("%r is lost: %s", task, error)
            held.over.set()
            task._stop.set()
            return
        held.beat_at = began
        if alive.get("cancel_requested"):
            task._stop.set()


def _at_once(calls: Sequence[Callable[[], None]]) -> None:
    """Make the calls side by side, so that together they take as long as one, and `GIVE_BACK_S` at most."""
    threads = [threading.Thread(target=call, name="ductor-release", daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    until = time.monotonic() + GIVE_BACK_S
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
