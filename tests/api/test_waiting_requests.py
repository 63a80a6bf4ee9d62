"""Requests that wait: they hold up nobody, and they learn that their client has gone."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from ductor.api.call import GONE
from ductor.api.local_server import LocalGateway
from ductor.api.routes.bridge import POLL, waits

DEADLINE_S = 20
OK: dict[str, Any] = {"statusCode": 200, "headers": {}, "body": "{}", "isBase64Encoded": False}


class Connection:
    """One request as an ASGI server hands it over. `hung_up` is when its client closes the connection."""

    def __init__(self, method: str, path: str) -> None:
        self.scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": b"",
            "http_version": "1.1",
            "headers": [],
        }
        self.hung_up = asyncio.Event()
        self.sent: list[Any] = []
        self._read = False

    async def receive(self) -> Any:
        if not self._read:
            self._read = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.hung_up.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    async def through(self, gateway: LocalGateway) -> None:
        await asyncio.wait_for(gateway(self.scope, self.receive, self.send), DEADLINE_S)


def test_only_polls_wait() -> None:
    assert waits("POST", POLL)
    assert not waits("GET", POLL)
    assert not waits("POST", "/api/v2/bridge-tasks/t:complete")


def test_a_waiting_request_holds_up_no_other_one() -> None:
    released = threading.Event()

    def handler(event: dict[str, Any], _: Any) -> dict[str, Any]:
        if event["rawPath"] == POLL:
            released.wait(DEADLINE_S)
        return OK

    async def scene() -> None:
        gateway = LocalGateway(handler, threads=1, waits=waits)
        polls = [Connection("POST", POLL) for _ in range(20)]
        waiting = [asyncio.create_task(poll.through(gateway)) for poll in polls]
        await asyncio.sleep(0)
        other = Connection("GET", "/healthz")
        await other.through(gateway)
        assert other.sent[0]["status"] == 200
        assert not any(poll.sent for poll in polls)
        released.set()
        await asyncio.gather(*waiting)
        assert all(poll.sent[0]["status"] == 200 for poll in polls)

    asyncio.run(scene())


def test_a_waiting_request_learns_that_its_client_has_gone() -> None:
    def handler(event: dict[str, Any], _: Any) -> dict[str, Any]:
        began.set()
        ended = threading.Event()
        while not event[GONE]():
            assert not ended.wait(0.005)
        return OK

    began = threading.Event()

    async def scene() -> None:
        poll = Connection("POST", POLL)
        waiting = asyncio.create_task(poll.through(LocalGateway(handler, waits=waits)))
        await asyncio.get_running_loop().run_in_executor(None, began.wait, DEADLINE_S)
        assert not waiting.done()
        poll.hung_up.set()
        await waiting

    asyncio.run(scene())
