"""A task in the hands of a handler."""

from __future__ import annotations

import threading
from datetime import datetime
from typing import Any, Final

from ductor.client.errors import TaskCancelled

CAUSATION: Final = "ductor-causation-depth"


class Task:
    """What is to be done, and a way to tell how far it is.

    `input` is any JSON; `idempotency_key` stays the same for every attempt of the step: hand it to whatever must not
    happen twice. `attempt` counts tries, `delivery` the workers that had this try before. `last_heartbeat` is what the
    worker before told last. `deadline` is when the attempt times out, None = never.

    `causation` are headers for requests to Ductor, or to whoever may send some, that come of the task: they say how far
    its run is from the request that began it all, so that a loop of runs that start each other ends.
    """

    def __init__(self, given: dict[str, Any]) -> None:
        self.token: str = given["task_token"]
        self.type: str = given["task_type"]
        self.run_id: str = given["run_id"]
        self.node: str = given["node"]
        self.attempt: int = given["attempt"]
        self.delivery: int = given["delivery"]
        self.input: Any = given["input"]
        self.idempotency_key: str = given["idempotency_key"]
        self.last_heartbeat: Any = given.get("last_heartbeat")
        self.heartbeat_within_s: float = given["heartbeat_within_ms"] / 1000
        deadline = given.get("deadline_at")
        self.deadline: datetime | None = datetime.fromisoformat(deadline) if deadline else None
        self.causation: dict[str, str] = {CAUSATION: str(given.get("causation_depth", 0))}
        self._details: Any = None
        self._told = False
        self._stop = threading.Event()

    def heartbeat(self, details: Any = None) -> None:
        """Say how far the work is: JSON of up to 8 KB, sent within about a second.

        The worker shows signs of life by itself, so a handler calls this only to tell something, or to learn soon
        that it is to stop: then it raises TaskCancelled.
        """
        self._details = details if details is not None else self._details
        self._told = True
        self.check()

    def check(self) -> None:
        """Raise TaskCancelled when the task is to stop."""
        if self._stop.is_set():
            raise TaskCancelled(f"task {self.node} of run {self.run_id} is to stop")

    @property
    def cancelled(self) -> bool:
        """Whether nobody wants the result any more, or this worker is stopping."""
        return self._stop.is_set()

    def wait(self, seconds: float) -> None:
        """Sleep, but wake up when the task is to stop. Raises TaskCancelled then."""
        self._stop.wait(seconds)
        self.check()

    def __repr__(self) -> str:
        return f"Task({self.type!r}, run {self.run_id}, {self.node} attempt {self.attempt})"
