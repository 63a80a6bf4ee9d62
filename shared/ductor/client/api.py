"""The bridge protocol over HTTP: one method per route. Calls that may be repeated are, until they are answered."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

import httpx

from ductor.client.access import Access
from ductor.client.errors import ApiError, UnreachableError

CONNECT_S: Final = 5.0
ANSWER_S: Final = 30.0
RELEASE_S: Final = 5.0
FIRST_PAUSE_S: Final = 0.2
MAX_PAUSE_S: Final = 15.0

Document = dict[str, Any]
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_TASKS: Final = "/api/v2/bridge-tasks"


class BridgeApi:
    """Calls of one worker; safe for several threads. Raises ApiError for a refusal, UnreachableError for silence."""

    def __init__(self, access: Access, transport: httpx.BaseTransport | None = None) -> None:
        self._http = httpx.Client(
            base_url=access.url,
            headers={
                "Authorization": f"Bearer {access.key}",
                "X-Tenant-ID": access.tenant,
                "Content-Type": "application/json",
                "User-Agent": "ductor-worker",
            },
            timeout=httpx.Timeout(ANSWER_S, connect=CONNECT_S),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            transport=transport,
            trust_env=not access.loopback,
        )

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def poll(self, body: Document) -> list[Document]:
        """Tasks, perhaps none. Tried once: a repetition would take more of them."""
        answer_s = ANSWER_S + float(body["wait_seconds"])
        tasks: list[Document] = self._once(f"{_TASKS}:poll", json.dumps(body), answer_s)["tasks"]
        return tasks

    def heartbeat(self, token: str, details: Any, answer_s: float) -> Document:
        """`{cancel_requested, lease_expires_at}`. Tried once, for `answer_s`: the next one is on its way."""
        return self._once(_path(token, "heartbeat"), json.dumps({"details": details}), answer_s)

    def complete(self, token: str, output: str, give_up: Callable[[], bool]) -> None:
        """Send a result, given as JSON text. Tries again until it is answered or `give_up`."""
        self._until(_path(token, "complete"), f'{{"output": {output}}}', give_up)

    def fail(self, token: str, failure: Document, give_up: Callable[[], bool]) -> None:
        """Send a failure, as often as that takes."""
        self._until(_path(token, "fail"), json.dumps(failure), give_up)

    def release(self, token: str) -> None:
        """Give the task back. Tried once, and not for long: the end of its lease does the same."""
        self._once(_path(token, "release"), "{}", RELEASE_S)

    def _until(self, path: str, body: str, give_up: Callable[[], bool]) -> None:
        pause = FIRST_PAUSE_S
        while True:
            try:
                self._once(path, body)
                return
            except (UnreachableError, ApiError) as error:
                if give_up() or (isinstance(error, ApiError) and error.status not in _PASSING):
                    raise
            rest(pause, give_up)
            pause = min(pause * 2, MAX_PAUSE_S)

    def _once(self, path: str, body: str, answer_s: float = ANSWER_S) -> Document:
        timeout = httpx.Timeout(answer_s, connect=min(answer_s, CONNECT_S))
        try:
            answer = self._http.post(path, content=body, timeout=timeout)
        except httpx.HTTPError as error:
            raise UnreachableError(
                f"no answer from {self._http.base_url}: {str(error) or type(error).__name__}"
            ) from error
        document = _decoded(answer)
        if not answer.is_success:
            raise _refusal(answer.status_code, document)
        return document


def passing(error: Exception) -> bool:
    """Whether the same call may succeed a little later."""
    return isinstance(error, UnreachableError) or (isinstance(error, ApiError) and error.status in _PASSING)


def rest(seconds: float, give_up: Callable[[], bool]) -> None:
    """Wait for about so long (half to all of it, so that many workers do not come at once), or until `give_up`."""
    until = time.monotonic() + seconds * random.uniform(0.5, 1.0)
    while not give_up() and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, 0.1))


def _path(token: str, verb: str) -> str:
    return f"{_TASKS}/{quote(token, safe='')}:{verb}"


def _decoded(answer: httpx.Response) -> Document:
    try:
        document = answer.json()
    except ValueError:
        document = None
    if isinstance(document, dict):
        return document
    if answer.is_success:
        raise UnreachableError(f"{answer.url} does not answer like a Ductor server")
    return {"message": f"the answer is not JSON ({answer.reason_phrase})"}


def _refusal(status: int, document: Document) -> ApiError:
    items = document.get("errors") or [{}]
    return ApiError(
        status, str(document.get("error_code", "")), str(items[0].get("code", "")), str(document.get("message", ""))
    )
