"""The worker's loop: what it asks for, how it waits out trouble, and how it stops."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import httpx
import pytest
from tests.unit.client.server import ACCESS, FakeServer, refused, task

from ductor.client import Access, AccessError, ApiError, Task, Worker
from ductor.client.holding import Holding

Run = Callable[[Worker], threading.Thread]


@pytest.fixture
def server() -> Iterator[FakeServer]:
    server = FakeServer()
    with patch("ductor.client.worker.BridgeApi", lambda access: server.api):
        yield server


@pytest.fixture
def run() -> Iterator[Run]:
    """Runs workers on threads of their own, and stops them at the end."""
    workers: list[tuple[Worker, threading.Thread]] = []

    def begin(worker: Worker) -> threading.Thread:
        thread = threading.Thread(target=worker.run, daemon=True)
        workers.append((worker, thread))
        thread.start()
        return thread

    yield begin
    for worker, thread in workers:
        worker.stop(at_once=True)
        thread.join(20)
        assert not thread.is_alive()


def worker_for(handler: Callable[[Task], Any], **options: Any) -> Worker:
    worker = Worker(ACCESS, idle_seconds=0.05, name="w", **options)
    worker.task("render")(handler)
    return worker


def test_it_asks_for_the_types_that_it_has_handlers_for(server: FakeServer, run: Run) -> None:
    worker = worker_for(lambda _: 1, concurrency=4, poll_seconds=2, lease_seconds=30, environment="staging")
    worker.task("print")(lambda _: 2)
    run(worker)
    server.until(lambda: bool(server.calls))
    assert server.calls[0][2] == {
        "task_types": ["render", "print"],
        "max": 4,
        "wait_seconds": 2,
        "lease_seconds": 30,
        "worker": "w",
        "environment": "staging",
    }


def test_it_never_asks_for_more_than_it_has_room_for(server: FakeServer, run: Run) -> None:
    done = threading.Event()
    server.tasks = [task("t1"), task("t2")]
    run(worker_for(lambda _: done.wait(20), concurrency=3))
    server.until(lambda: len(server.said("poll")) >= 3)
    assert [body["max"] for _, _, body in server.said("poll")[:3]] == [3, 1, 1]
    done.set()
    server.until(lambda: len(server.said("complete")) == 2)


def test_trouble_on_the_way_is_waited_out(server: FakeServer, run: Run) -> None:
    server.answers["poll"] = [
        httpx.ConnectError("down"),
        (503, {}),
        (429, {}),
        (200, {"tasks": [task()]}),
        (200, {"tasks": []}),
    ]
    run(worker_for(lambda _: 7))
    server.until(lambda: server.said("complete") == [("complete", "t1", {"output": 7})])


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_refusal_that_will_not_pass_ends_it(server: FakeServer, status: int) -> None:
    server.answers["poll"] = [refused("KEY_INVALID", status)]
    with pytest.raises(ApiError) as error:
        worker_for(lambda _: 1).run(signals=False)
    assert (error.value.status, error.value.code) == (status, "KEY_INVALID")


def test_it_finishes_what_it_has_before_it_stops(server: FakeServer, run: Run) -> None:
    begun, done = threading.Event(), threading.Event()

    def handler(_: Task) -> int:
        begun.set()
        done.wait(20)
        return 7

    server.tasks = [task()]
    worker = worker_for(handler)
    thread = run(worker)
    assert begun.wait(20)
    worker.stop()
    done.set()
    thread.join(20)
    assert [verb for verb, _, _ in server.said("complete", "release")] == ["complete"]


def test_it_gives_back_what_takes_too_long(server: FakeServer, run: Run) -> None:
    begun = threading.Event()

    def handler(given: Task) -> None:
        begun.set()
        given.wait(20)

    server.tasks = [task()]
    worker = worker_for(handler, grace_seconds=0.1)
    thread = run(worker)
    assert begun.wait(20)
    worker.stop()
    thread.join(20)
    assert [verb for verb, _, _ in server.said("complete", "release")] == ["release"]


def test_a_task_that_comes_after_the_stop_goes_back(server: FakeServer, run: Run) -> None:
    """Also when the server is slow to take them: they are given back side by side."""
    together = threading.Barrier(3)
    server.on["release"] = lambda _token: together.wait(10)
    worker = worker_for(lambda _: 1)
    worker.stop()
    holding = Holding(server.api, {})
    worker._take(holding, [task(token) for token in ("t1", "t2", "t3")])
    assert (len(holding), {token for _, token, _ in server.said("release")}) == (0, {"t1", "t2", "t3"})
    assert not together.broken
    holding.close()


def test_sigterm_gives_back_what_a_late_poll_brings(server: FakeServer) -> None:
    """The poll is out when the signal comes; what it brings was not begun, and goes back before the process ends."""

    def poll_is_out(_token: str) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        assert worker._stop.wait(20)

    server.on["poll"] = poll_is_out
    server.tasks = [task("t1"), task("t2")]
    worker = worker_for(lambda _: 1)
    worker.run()
    assert sorted(server.said("release", "complete")) == [("release", "t1", {}), ("release", "t2", {})]


def test_a_worker_without_handlers_does_not_start() -> None:
    with pytest.raises(ValueError, match="register a handler"):
        Worker(ACCESS).run()


def test_two_handlers_for_one_type_are_refused() -> None:
    worker = worker_for(lambda _: 1)
    with pytest.raises(ValueError, match="already"):
        worker.task("render")(lambda _: 2)


@pytest.mark.parametrize(
    "options", [{"concurrency": 0}, {"lease_seconds": 0}, {"poll_seconds": 21}, {"poll_seconds": -1}]
)
def test_odd_options(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Worker(ACCESS, **options)


def test_access_from_the_environment() -> None:
    given = {"DUCTOR_API_KEY": "k", "DUCTOR_TENANT_ID": "t", "DUCTOR_API_URL": "https://x.example/"}
    assert Access.of_environment(given) == Access("https://x.example", "k", "t")
    assert "k'" not in repr(Access.of_environment(given))
    with pytest.raises(AccessError, match="DUCTOR_TENANT_ID not set"):
        Access.of_environment({"DUCTOR_API_KEY": "k"})
    with pytest.raises(AccessError, match="no address"):
        Access("nowhere", "k", "t")
