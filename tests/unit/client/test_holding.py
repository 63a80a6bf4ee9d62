"""What becomes of a task in the hands of a worker: its answer, its signs of life, and the end of its claim."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from tests.unit.client.server import FakeServer, refused, task

from ductor.client import (
    Access,
    FatalTaskError,
    RetryableTaskError,
    Task,
    TaskCancelled,
    TaskError,
    UnreachableError,
)
from ductor.client.api import BridgeApi
from ductor.client.holding import Held, Holding

ANSWERS = ("complete", "fail", "release")


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def hold(server: FakeServer) -> Iterator[Callable[..., Holding]]:
    made: list[Holding] = []

    def begin(handler: Any, given: dict[str, Any] | None = None) -> Holding:
        made.append(Holding(server.api, {"render": handler}))
        made[-1].begin(Task(given or task()))
        return made[-1]

    yield begin
    for one in made:
        one.close()


def raising(error: Exception) -> Callable[[Task], Any]:
    def handler(_: Task) -> Any:
        raise error

    return handler


async def slowly(given: Task) -> Any:
    return {"got": given.input}


@pytest.mark.parametrize(
    ("handler", "output"),
    [(lambda given: {"got": given.input}, {"got": {"v": 1}}), (lambda _: None, None), (slowly, {"got": {"v": 1}})],
)
def test_what_a_handler_returns_is_the_output(
    server: FakeServer, hold: Callable[..., Holding], handler: Any, output: Any
) -> None:
    assert hold(handler).wait(0, 20)
    assert server.said(*ANSWERS) == [("complete", "t1", {"output": output})]


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (RetryableTaskError("later", code="BUSY"), {"code": "BUSY", "message": "later", "retryable": True}),
        (FatalTaskError("never"), {"code": "TASK_FAILED", "message": "never", "retryable": False}),
        (
            TaskError("so", code="C" * 99, details={"n": 1}),
            {"code": "C" * 64, "message": "so", "retryable": True, "details": {"n": 1}},
        ),
        (FatalTaskError("x", details=object()), {"code": "TASK_FAILED", "message": "x", "retryable": False}),
        (FatalTaskError("x", details="y" * 9_000), {"code": "TASK_FAILED", "message": "x", "retryable": False}),
        (RuntimeError(), {"code": "TASK_FAILED", "message": "RuntimeError", "retryable": True}),
        (KeyError("v"), {"code": "TASK_FAILED", "message": "KeyError: 'v'", "retryable": True}),
    ],
)
def test_what_a_handler_raises_is_the_failure(
    server: FakeServer, hold: Callable[..., Holding], error: Exception, failure: dict[str, Any]
) -> None:
    assert hold(raising(error)).wait(0, 20)
    assert server.said(*ANSWERS) == [("fail", "t1", failure)]


@pytest.mark.parametrize("output", [object(), float("nan"), {1, 2}])
def test_an_output_that_is_no_json_fails_for_good(
    server: FakeServer, hold: Callable[..., Holding], output: Any
) -> None:
    assert hold(lambda _: output).wait(0, 20)
    ((verb, _, body),) = server.said(*ANSWERS)
    assert (verb, body["code"], body["retryable"]) == ("fail", "OUTPUT_INVALID", False)


def test_an_output_that_is_too_large_fails_for_good(server: FakeServer, hold: Callable[..., Holding]) -> None:
    server.answers["complete"] = [refused("OUTPUT_TOO_LARGE", 413)]
    assert hold(lambda _: "x").wait(0, 20)
    assert server.said(*ANSWERS)[-1][2]["code"] == "OUTPUT_TOO_LARGE"


def test_a_task_without_a_handler_fails(server: FakeServer, hold: Callable[..., Holding]) -> None:
    assert hold(lambda _: 1, task(task_type="other")).wait(0, 20)
    assert server.said(*ANSWERS)[0][2]["code"] == "TASK_TYPE_UNKNOWN"


def test_an_answer_is_sent_until_it_arrives(server: FakeServer, hold: Callable[..., Holding]) -> None:
    server.answers["complete"] = [httpx.ConnectError("gone"), (503, {}), (429, {}), (200, {})]
    assert hold(lambda _: 7).wait(0, 20)
    assert server.said(*ANSWERS) == [("complete", "t1", {"output": 7})] * 4


def test_an_answer_that_is_refused_is_not_sent_again(server: FakeServer, hold: Callable[..., Holding]) -> None:
    server.answers["complete"] = [refused("TASK_TOKEN_EXPIRED")]
    assert hold(lambda _: 7).wait(0, 20)
    assert len(server.said(*ANSWERS)) == 1


def test_signs_of_life_go_out_while_a_handler_works(server: FakeServer, hold: Callable[..., Holding]) -> None:
    done = threading.Event()
    holding = hold(lambda _: done.wait(20), task(heartbeat_within_ms=300))
    server.until(lambda: len(server.said("heartbeat")) >= 3)
    done.set()
    assert holding.wait(0, 20)
    assert server.said(*ANSWERS)[0][0] == "complete"


def test_progress_goes_with_the_next_sign_of_life(server: FakeServer, hold: Callable[..., Holding]) -> None:
    done = threading.Event()

    def handler(given: Task) -> None:
        given.heartbeat({"rows": 7})
        done.wait(20)

    hold(handler)
    server.until(lambda: ("heartbeat", "t1", {"details": {"rows": 7}}) in server.calls)
    done.set()


def test_a_cancelled_task_is_given_back(server: FakeServer, hold: Callable[..., Holding]) -> None:
    server.answers["heartbeat"] = [(200, {"cancel_requested": True})]
    holding = hold(lambda given: given.wait(20), task(heartbeat_within_ms=300))
    assert holding.wait(0, 20)
    assert [verb for verb, _, _ in server.said(*ANSWERS)] == ["release"]


def test_a_task_that_was_lost_stops_and_is_answered_no_more(server: FakeServer, hold: Callable[..., Holding]) -> None:
    server.answers["heartbeat"] = [refused("TASK_TOKEN_EXPIRED")]
    holding = hold(lambda given: given.wait(20), task(heartbeat_within_ms=300))
    assert holding.wait(0, 20)
    assert server.said(*ANSWERS) == []


def test_a_heartbeat_that_gets_no_answer_is_tried_again(server: FakeServer, hold: Callable[..., Holding]) -> None:
    done = threading.Event()
    server.answers["heartbeat"] = [httpx.ReadTimeout("slow"), (503, {}), (200, {"cancel_requested": False})]
    holding = hold(lambda _: done.wait(20), task(heartbeat_within_ms=300))
    server.until(lambda: len(server.said("heartbeat")) >= 3)
    done.set()
    assert holding.wait(0, 20)
    assert server.said(*ANSWERS)[0][0] == "complete"


def test_a_sign_of_life_that_hangs_holds_up_no_other_task(server: FakeServer, hold: Callable[..., Holding]) -> None:
    done = threading.Event()
    server.on["heartbeat"] = lambda token: done.wait(20) if token == "t1" else None
    holding = hold(lambda _: done.wait(20), task("t1", heartbeat_within_ms=300))
    server.until(lambda: len(server.said("heartbeat")) == 1)
    for token in ("t2", "t3"):
        holding.begin(Task(task(token, heartbeat_within_ms=300)))
    server.until(lambda: all(len([1 for call in server.said("heartbeat") if call[1] == t]) >= 3 for t in ("t2", "t3")))
    assert [token for _, token, _ in server.said("heartbeat")].count("t1") == 1
    done.set()
    assert holding.wait(0, 20)
    assert sorted(call[:2] for call in server.said(*ANSWERS)) == [("complete", f"t{n}") for n in (1, 2, 3)]


def test_a_sign_of_life_is_given_up_in_time_for_the_next_ones() -> None:
    held = Held(Task(task(heartbeat_within_ms=15_000)))
    assert held.beat_answer_s == 5.0
    assert Held(Task(task(heartbeat_within_ms=300))).beat_answer_s == 1.0
    assert Held(Task(task(heartbeat_within_ms=3_600_000))).beat_answer_s == 10.0


def test_a_server_that_takes_the_call_and_says_nothing_is_left_when_the_time_is_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        api = BridgeApi(Access(f"http://127.0.0.1:{silent.getsockname()[1]}", "dk_1", "t"))
        with pytest.raises(UnreachableError, match="no answer"):
            api.heartbeat("t1", None, 0.1)
        api.close()


def test_giving_back_takes_no_longer_than_it_may(
    server: FakeServer, hold: Callable[..., Holding], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ductor.client.holding.GIVE_BACK_S", 0.1)
    done = threading.Event()
    server.on["release"] = lambda _token: done.wait(20)
    holding = hold(lambda given: given.wait(20), task("t1"))
    for token in ("t2", "t3"):
        holding.begin(Task(task(token)))
    assert holding.give_back() == 3
    assert not done.is_set()
    done.set()


def test_what_is_still_at_work_is_given_back(server: FakeServer, hold: Callable[..., Holding]) -> None:
    seen: list[BaseException] = []

    def handler(given: Task) -> None:
        try:
            given.wait(20)
        except TaskCancelled as cancelled:
            seen.append(cancelled)
            raise

    holding = hold(handler)
    assert holding.give_back() == 1
    assert holding.wait(0, 20)
    assert len(seen) == 1
    assert [verb for verb, _, _ in server.said(*ANSWERS)] == ["release"]
