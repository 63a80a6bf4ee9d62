"""The same routes over real HTTP."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
import uvicorn
from tests.api.world import ApiWorld

from ductor.api.local_server import LocalGateway, gateway_event

DEADLINE_S = 20


@dataclass(frozen=True)
class Running:
    """A server on a free port, and a client with a key."""

    world: ApiWorld
    port: int
    http: httpx.Client

    def raw(self, data: bytes) -> bytes:
        """What the server sends until it closes or goes quiet after an answer."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE_S) as connection:
            connection.sendall(data)
            return connection.recv(65_536)


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    world = ApiWorld()
    server = uvicorn.Server(
        uvicorn.Config(
            LocalGateway(world.handler), port=0, http="httptools", ws="none", lifespan="on", log_level="error"
        )
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    end = time.monotonic() + DEADLINE_S
    while not server.started:
        assert time.monotonic() < end
        thread.join(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    headers = {"Authorization": f"Bearer {world.key}", "X-Tenant-ID": world.tenant}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=DEADLINE_S) as http:
        yield Running(world, port, http)
    server.should_exit = True
    thread.join(DEADLINE_S)
    assert not thread.is_alive()


def test_a_definition_goes_in_and_comes_out(running: Running) -> None:
    created = running.http.post("/api/workflow-definitions", json={"family_slug": "over_http", "title": "é 😀"})
    assert created.status_code == 201
    found = running.http.get(f"/api/workflow-definitions/{created.json()['data']['id']}")
    assert found.json()["data"]["title"] == "é 😀"
    assert found.headers["content-type"] == "application/json"


def test_ten_megabytes_are_refused_and_the_connection_lives_on(running: Running) -> None:
    answer = running.http.post("/api/workflow-definitions", content=b"x" * 10_000_000)
    assert (answer.status_code, answer.json()["error_code"]) == (413, "PAYLOAD_TOO_LARGE")
    assert running.http.get("/healthz").status_code == 200


def test_ten_megabytes_in_chunks_are_refused(running: Running) -> None:
    answer = running.http.post("/api/workflow-definitions", content=(b"x" * 1_000_000 for _ in range(10)))
    assert (answer.status_code, answer.json()["error_code"]) == (413, "PAYLOAD_TOO_LARGE")


def test_a_body_that_is_not_utf8_is_refused(running: Running) -> None:
    answer = running.http.post("/api/workflow-definitions", content=b'{"title": "\xff"}')
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["code"] == "TEXT_INVALID"


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GARBAGE\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /api/workflows/runs/%2F%00%ff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET //..//api/%2e%2e HTTP/1.1\r\nHost: x\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /nothing?%ed%a0%80=%00 HTTP/1.1\r\nHost: x\r\nX-Odd: \xff\xfe\r\n\r\n",
    ],
)
def test_malformed_requests_are_the_clients_fault(running: Running, request_bytes: bytes) -> None:
    status = running.raw(request_bytes).split(b" ")[1]
    assert status.startswith(b"4")


def test_a_client_that_goes_away_does_no_harm(running: Running) -> None:
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", running.port)) as connection:
            connection.sendall(b"POST /api/workflow-definitions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    assert running.http.get("/healthz").status_code == 200


def test_head_has_no_body(running: Running) -> None:
    answer = running.http.head("/healthz")
    assert (answer.status_code, answer.content) == (200, b"")


def test_events_look_like_the_gateways() -> None:
    headers = [(b"X-A", b"1"), (b"x-a", b"2"), (b"cookie", b"a=1; b=2"), (b"user-agent", b"ua")]
    scope = {"method": "POST", "path": "/a b", "query_string": b"x=%20", "http_version": "1.1", "headers": headers}
    event = gateway_event(scope, b"\xff")
    assert event["headers"] == {"x-a": "1,2", "user-agent": "ua"}
    assert event["cookies"] == ["a=1", "b=2"]
    assert (event["rawPath"], event["rawQueryString"]) == ("/a b", "x=%20")
    assert (event["body"], event["isBase64Encoded"]) == ("/w==", True)
    assert event["requestContext"]["http"]["method"] == "POST"
