"""The worker of bridge steps: polls for tasks of the types it has handlers for, and stops without losing any."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, TypeVar

from ductor.client.access import Access
from ductor.client.api import FIRST_PAUSE_S, MAX_PAUSE_S, BridgeApi, passing, rest
from ductor.client.errors import ApiError, UnreachableError
from ductor.client.holding import Handler, Holding
from ductor.client.task import Task

MAX_PER_POLL: Final = 10
MAX_POLL_S: Final = 20.0
LOOPBACK_S: Final = 0.3

_log = logging.getLogger("ductor.worker")

AnyHandler = TypeVar("AnyHandler", bound=Handler)


class Worker:
    """Runs handlers for tasks, up to `concurrency` at once.

    Register handlers with `@worker.task("type")`, then call `run()`. What a handler returns is the step's output.
    A handler may run twice for one task (its worker was lost, or its answer was): use `task.idempotency_key`.

    `lease_seconds`: how soon others get a task after this process died; signs of life go out by themselves, three in
    that time. `poll_seconds`: how long one poll waits for a task, at most 20; `idle_seconds` is a pause after a poll
    that found none. `grace_seconds`: how long running handlers may take at a stop before their tasks are given back.
    `environment`: whose tasks; default is the key's own.
    """

    def __init__(
        self,
        access: Access | None = None,
        *,
        concurrency: int = 10,
        poll_seconds: float = 10.0,
        idle_seconds: float = 0.0,
        lease_seconds: int = 60,
        grace_seconds: float = 20.0,
        name: str = "",
        environment: str | None = None,
    ) -> None:
        if concurrency < 1 or lease_seconds < 1 or not 0 <= poll_seconds <= MAX_POLL_S:
            raise ValueError(f"concurrency and lease_seconds are at least 1, poll_seconds is from 0 to {MAX_POLL_S:g}")
        self.access = access
        self.concurrency = concurrency
        self._poll_s = poll_seconds
        self._idle_s = idle_seconds
        self._lease_s = lease_seconds
        self._grace_s = grace_seconds
        self._name = name or f"{socket.gethostname()}:{os.getpid()}"[:128]
        self._environment = environment
        self._handlers: dict[str, Handler] = {}
        self._stop = threading.Event()
        self._now = threading.Event()
        self._fault: Exception | None = None

    def task(self, task_type: str) -> Callable[[AnyHandler], AnyHandler]:
        """Register the decorated function (or coroutine function) for a task type."""

        def register(handler: AnyHandler) -> AnyHandler:
            if task_type in self._handlers:
                raise ValueError(f"there is a handler for {task_type} already")
            self._handlers[task_type] = handler
            return handler

        return register

    @property
    def task_types(self) -> tuple[str, ...]:
        """What this worker has handlers for."""
        return tuple(self._handlers)

    def stop(self, *, at_once: bool = False) -> None:
        """Take no more tasks; `run` returns when those at work are done or were given back (`at_once`: now)."""
        self._stop.set()
        if at_once:
            self._now.set()

    def run(self, *, signals: bool = True) -> None:
        """Work until `stop`, or until SIGTERM or SIGINT; a second signal gives everything back at once.

        Trouble on the way to the server is waited out. Raises AccessError without a key, ApiError when the server
        refuses this worker (a wrong key, a missing scope), ValueError without handlers.
        """
        if not self._handlers:
            raise ValueError("register a handler with @worker.task(...) before run()")
        access = self.access or Access.of_environment()
        api = BridgeApi(access)
        restore = self._on_signals() if signals and threading.current_thread() is threading.main_thread() else {}
        holding = Holding(api, self._handlers)
        poller = threading.Thread(target=self._poll, args=(api, holding), name="ductor-poll", daemon=True)
        poller.start()
        try:
            while not self._stop.wait(0.5):
                pass
            self._wind_up(holding, poller, LOOPBACK_S if access.loopback else self._grace_s)
        finally:
            holding.close()
            for number, before in restore.items():
                signal.signal(number, before)
            if not poller.is_alive() and not holding:
                api.close()
        if self._fault is not None:
            raise self._fault

    def _on_signals(self) -> dict[signal.Signals, Any]:
        def stop(number: int, frame: FrameType | None) -> None:
            del number, frame
            self.stop(at_once=self._stop.is_set())

        return {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}

    def _wind_up(self, holding: Holding, poller: threading.Thread, poll_s: float) -> None:
        """Let what runs come to its end, then give back the rest.

        A poll that is out may still bring something, and is waited for so long: a gateway does not tell the server
        that its client has gone. A server on this machine sees that by itself.
        """
        began = time.monotonic()
        while not self._now.is_set() and (past := time.monotonic() - began) < self._grace_s:
            polling = poller.is_alive() and past < poll_s
            if not polling and not len(holding):
                break
            poller.join(0.1) if polling else holding.wait(0, 0.1)
        given_back = holding.give_back()
        if given_back:
            _log.warning("%d tasks were given back to their queues", given_back)

    def _poll(self, api: BridgeApi, holding: Holding) -> None:
        """Fetch tasks for as long as there is room. Ends with the worker, or with a refusal that will not pass."""
        pause = FIRST_PAUSE_S
        while not self._stop.is_set():
            if not holding.wait(self.concurrency - 1, 0.2):
                continue
            try:
                given = api.poll(self._wanted(self.concurrency - len(holding)))
            except (ApiError, UnreachableError) as error:
                if not passing(error):
                    self._fault = error
                    self._stop.set()
                    return
                _log.warning("%s; trying again in %.1f s", error, pause)
                rest(pause, self._stop.is_set)
                pause = min(pause * 2, MAX_PAUSE_S)
                continue
            pause = FIRST_PAUSE_S
            self._take(holding, given)
            if not given:
                rest(self._idle_s, self._stop.is_set)

    def _wanted(self, room: int) -> dict[str, Any]:
        return {
            "task_types": list(self._handlers),
            "max": min(room, MAX_PER_POLL),
            "wait_seconds": self._poll_s,
            "lease_seconds": self._lease_s,
            "worker": self._name,
            **({"environment": self._environment} if self._environment else {}),
        }

    def _take(self, holding: Holding, given: list[dict[str, Any]]) -> None:
        """Begin what came; what came after the stop goes back at once."""
        tasks = [Task(one) for one in given]
        while tasks and not self._stop.is_set():
            holding.begin(tasks.pop(0))
        holding.refuse(tasks)
