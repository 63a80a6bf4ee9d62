"""The actions without an outside."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from ductor.actions.context import ActionContext
from ductor.actions.core import MAX_SLEEP_MS
from ductor.actions.errors import ActionError, AttemptCancelledError
from ductor.actions.execute import execute, failure
from ductor.actions.registry import default_registry
from ductor.steps.duration import parse_duration

REGISTRY = default_registry(parse_duration=parse_duration)


class Recorded:
    """A context whose waits pass at once, and what was asked of it."""

    def __init__(self, **given: Any) -> None:
        self.waits: list[float] = []
        self.beats: list[Any] = []
        self.ctx = ActionContext(stop=_Stop(self.waits), on_heartbeat=self._beat, **given)

    def _beat(self, details: Any) -> bool:
        self.beats.append(details)
        return True


class _Stop(threading.Event):
    def __init__(self, waits: list[float]) -> None:
        super().__init__()
        self._waits = waits

    def wait(self, timeout: float | None = None) -> bool:
        self._waits.append(timeout or 0)
        return self.is_set()


def run(name: str, args: dict[str, Any], ctx: ActionContext | None = None) -> Any:
    action = REGISTRY.get(name)
    assert action is not None
    return execute(action, args, ctx or ActionContext())[0]


def test_echo_gives_its_args_back() -> None:
    args = {"message": "Hello Ada", "n": [1, 2.5, None, {"deep": True}]}

    assert run("core.echo", args) == args


def test_echo_and_fail_never_wait() -> None:
    blocking = {name: action.blocking for name in REGISTRY.names() if (action := REGISTRY.get(name))}

    assert {name for name, waits in blocking.items() if not waits} == {"core.echo", "core.fail"}


def test_fail_fails_as_it_is_told() -> None:
    with pytest.raises(ActionError) as raised:
        run("core.fail", {"code": "BOOM", "message": "as asked", "retryable": False}, ActionContext(attempt=4))

    error = failure(raised.value)
    assert (error.code, error.message, error.retryable) == ("BOOM", "as asked", False)
    assert error.details == {"attempt": 4}


def test_fail_without_args_is_retryable() -> None:
    with pytest.raises(ActionError) as raised:
        run("core.fail", {})

    assert (raised.value.code, raised.value.retryable) == ("FAILED", True)


@pytest.mark.parametrize(("attempt", "fails"), [(1, True), (2, True), (3, False), (4, False)])
def test_only_the_first_attempts_fail(attempt: int, fails: bool) -> None:
    ctx = ActionContext(attempt=attempt)
    if fails:
        with pytest.raises(ActionError):
            run("core.fail", {"fail_first_n": 2}, ctx)
    else:
        assert run("core.fail", {"fail_first_n": 2}, ctx) == {"attempt": attempt}


@pytest.mark.parametrize("args", [{"duration": "2500ms"}, {"duration_ms": 2_500}, {"duration": "PT2.5S"}])
def test_sleep_sleeps_and_gives_signs_of_life(args: dict[str, Any]) -> None:
    recorded = Recorded()

    assert run("core.sleep", args, recorded.ctx) == {"slept_ms": 2_500}
    assert recorded.waits == [1.0, 1.0, 0.5]
    assert recorded.beats == [{"slept_ms": 1_000}, {"slept_ms": 2_000}]


def test_a_second_delivery_sleeps_only_the_rest() -> None:
    recorded = Recorded(last_heartbeat={"slept_ms": 2_000}, deliveries=2)

    assert run("core.sleep", {"duration": "2500ms"}, recorded.ctx) == {"slept_ms": 2_500}
    assert recorded.waits == [0.5]


def test_sleeping_nothing_waits_for_nothing() -> None:
    recorded = Recorded()

    assert run("core.sleep", {"duration_ms": 0}, recorded.ctx) == {"slept_ms": 0}
    assert recorded.waits == []


def test_a_cancelled_sleep_ends_at_once() -> None:
    recorded = Recorded()
    recorded.ctx.stop.set()

    with pytest.raises(AttemptCancelledError):
        run("core.sleep", {"duration": "10m"}, recorded.ctx)
    assert len(recorded.waits) == 1


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({}, ""),
        ({"duration": "2s", "duration_ms": 1}, ""),
        ({"duration": "two seconds"}, "duration"),
        ({"duration": "16m"}, "duration"),
        ({"duration_ms": MAX_SLEEP_MS + 1}, "duration_ms"),
        ({"duration_ms": -1}, "duration_ms"),
        ({"duration_ms": "5"}, "duration_ms"),
    ],
)
def test_a_sleep_without_a_usable_length_is_found_before_a_run(args: dict[str, Any], path: str) -> None:
    assert [found for found, _ in REGISTRY.validate_args("core.sleep", args)] == [path]
    with pytest.raises(ActionError, match=r"core\.sleep refuses its args"):
        run("core.sleep", args)


@pytest.mark.parametrize("args", [{"duration": "${{ VARS.pause }}"}, {"duration_ms": "${{ 5 * 60 }}"}])
def test_a_computed_length_is_no_fault(args: dict[str, Any]) -> None:
    assert REGISTRY.validate_args("core.sleep", args) == []


def test_without_a_reader_of_durations_milliseconds_remain() -> None:
    registry = default_registry()

    assert registry.validate_args("core.sleep", {"duration_ms": 5}) == []
    assert registry.validate_args("core.sleep", {"duration": "5s"})[0][0] == "duration"
