"""The API over plain HTTP: what API Gateway does in front of the Lambda, done in front of the same handler.

Each request of an ASGI server becomes an HTTP API event (payload format 2.0) and runs on a small pool of threads; its
response becomes bytes again. Knows no route.
"""

from __future__ import annotations

import asyncio
import base64
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from ductor.api.app import Handler
from ductor.api.call import GONE
from ductor.api.json_reader import MAX_BODY_BYTES

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

THREADS: Final = 16
"""Requests served at once. They mostly wait for the disk, so this may be well above the number of cores."""


WAITING_THREADS: Final = 128
"""Requests that wait for something at once. They have threads of their own, so that all others go on meanwhile."""

Waits = Callable[[str, str], bool]
"""Whether a request with this method and path may wait for long before it is answered."""


class LocalGateway:
    """An ASGI application around a handler. At the server's shutdown it waits for the requests it has begun."""

    def __init__(self, handler: Handler, threads: int = THREADS, waits: Waits = lambda method, path: False) -> None:
        self._handler = handler
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="api")
        self._waiting = ThreadPoolExecutor(WAITING_THREADS, thread_name_prefix="api-waiting")
        self._waits = waits

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                for pool in (self._waiting, self._pool):
                    await asyncio.get_running_loop().run_in_executor(None, pool.shutdown)
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _http(self, scope: Message, receive: Receive, send: Send) -> None:
        body = await _read_body(scope["headers"], receive)
        if body is None:
            return
        event = gateway_event(scope, body)
        if self._waits(scope["method"], scope["path"]):
            response = await self._patiently(event, receive)
        else:
            response = await asyncio.get_running_loop().run_in_executor(self._pool, self._handler, event, None)
        data = _response_body(response)
        start = {"type": "http.response.start", "status": response["statusCode"], "headers": _headers(response, data)}
        await send(start)
        await send({"type": "http.response.body", "body": data})

    async def _patiently(self, event: dict[str, Any], receive: Receive) -> dict[str, Any]:
        """The response to a request that may wait, and that is told when its client hangs up meanwhile."""
        left = threading.Event()
        event[GONE] = left.is_set
        watcher = asyncio.create_task(_hang_up(receive, left))
        try:
            return await asyncio.get_running_loop().run_in_executor(self._waiting, self._handler, event, None)
        finally:
            watcher.cancel()


async def _hang_up(receive: Receive, left: threading.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    left.set()


async def _read_body(headers: Iterable[tuple[bytes, bytes]], receive: Receive) -> bytes | None:
    """The body, or None when the client has gone.

    A body over the limit, by its announced length or while it is read, is answered for by that many zero bytes: the
    handler refuses them with 413, and the server drops the rest as it arrives.
    """
    announced = next((value for name, value in headers if name == b"content-length"), b"0")
    if int(announced) > MAX_BODY_BYTES:
        return bytes(MAX_BODY_BYTES + 1)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BODY_BYTES:
            return bytes(MAX_BODY_BYTES + 1)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


def gateway_event(scope: Message, body: bytes) -> dict[str, Any]:
    """The event that API Gateway would send for this request."""
    headers, cookies = _event_headers(scope["headers"])
    text, encoded = _event_body(body)
    method, path, now = scope["method"], scope["path"], time.time()
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "ANY /{proxy+}",
        "rawPath": path,
        "rawQueryString": scope["query_string"].decode("latin-1"),
        "headers": headers,
        "requestContext": {
            "http": {
                "method": method,
                "path": path,
                "protocol": f"HTTP/{scope['http_version']}",
                "sourceIp": (scope.get("client") or ("",))[0],
                "userAgent": headers.get("user-agent", ""),
            },
            "requestId": str(uuid.uuid4()),
            "routeKey": "ANY /{proxy+}",
            "stage": "$default",
            "timeEpoch": int(now * 1000),
        },
        "body": text,
        "isBase64Encoded": encoded,
    }
    if cookies:
        event["cookies"] = cookies
    return event


def _event_headers(raw: Iterable[tuple[bytes, bytes]]) -> tuple[dict[str, str], list[str]]:
    """Names in lower case, repeated ones joined by commas, cookies apart."""
    headers: dict[str, str] = {}
    cookies: list[str] = []
    for raw_name, raw_value in raw:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        if name == "cookie":
            cookies += [part.strip() for part in value.split(";")]
        else:
            headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers, cookies


def _event_body(body: bytes) -> tuple[str, bool]:
    try:
        return body.decode("utf-8"), False
    except UnicodeDecodeError:
        return base64.b64encode(body).decode(), True


def _response_body(response: dict[str, Any]) -> bytes:
    body: str = response.get("body") or ""
    return base64.b64decode(body) if response.get("isBase64Encoded") else body.encode("utf-8")


def _headers(response: dict[str, Any], data: bytes) -> list[tuple[bytes, bytes]]:
    given = response["headers"].items()
    found = [(name.lower().encode("latin-1"), str(value).encode("latin-1")) for name, value in given]
    found += [(b"set-cookie", cookie.encode("latin-1")) for cookie in response.get("cookies") or ()]
    found.append((b"content-length", str(len(data)).encode()))
    return found
