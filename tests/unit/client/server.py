"""A server that speaks the bridge protocol as the test says, in this process and over no network."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import httpx

from ductor.client import Access
from ductor.client.api import BridgeApi

Answer = tuple[int, dict[str, Any]] | Exception
ACCESS = Access("http://server", "dk_key_secret", "tenant")


class FakeServer:
    """Remembers calls as (verb, token, body). `answers` maps a verb to what it says, the last of them for ever.

    `on` maps a verb to what happens before it answers; it gets the token, and may take its time.
    """

    def __init__(self, *tasks: dict[str, Any]) -> None:
        self.tasks = list(tasks)
        self.calls: list[tuple[str, str, dict[str, Any]]] = []
        self.answers: dict[str, list[Answer]] = {}
        self.on: dict[str, Callable[[str], object]] = {}
        self.changed = threading.Condition()

    @property
    def api(self) -> BridgeApi:
        return BridgeApi(ACCESS, httpx.MockTransport(self._handle))

    def _handle(self, request: httpx.Request) -> httpx.Response:
        path, _, verb = request.url.path.rpartition(":")
        token = path.rpartition("/")[2] if verb != "poll" else ""
        with self.changed:
            self.calls.append((verb, token, json.loads(request.content)))
            self.changed.notify_all()
        self.on.get(verb, str)(token)
        with self.changed:
            planned = self.answers.get(verb, [])
            answer = planned.pop(0) if len(planned) > 1 else planned[0] if planned else self._usual(verb)
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer[0], json=answer[1])

    def _usual(self, verb: str) -> Answer:
        if verb == "poll":
            given, self.tasks = self.tasks, []
            return 200, {"tasks": given}
        return 200, {"cancel_requested": False, "lease_expires_at": "2026-01-01T00:00:00Z"}

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for calls."""
        with self.changed:
            assert self.changed.wait_for(holds, 20), self.calls

    def said(self, *verbs: str) -> list[tuple[str, str, dict[str, Any]]]:
        return [call for call in self.calls if call[0] in verbs]


def task(token: str = "t1", **fields: Any) -> dict[str, Any]:
    """A task as the server gives it."""
    usual = {
        "task_token": token,
        "task_type": "render",
        "run_id": "run-1",
        "node": "b",
        "attempt": 1,
        "delivery": 1,
        "input": {"v": 1},
        "idempotency_key": "run-1/b",
        "scheduled_at": "2026-01-01T00:00:00.000Z",
        "lease_expires_at": "2026-01-01T00:01:00.000Z",
        "heartbeat_within_ms": 60_000,
        "deadline_at": None,
        "last_heartbeat": None,
    }
    return {**usual, **fields}


def refused(code: str, status: int = 409) -> Answer:
    """A refusal of the server."""
    return status, {"error_code": "X", "message": "no", "errors": [{"field": "", "code": code, "message": "no"}]}
