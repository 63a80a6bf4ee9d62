"""What an action can ask while it runs."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from ductor.actions.context import MAX_DETAILS_BYTES, ActionContext
from ductor.actions.errors import ActionError, AttemptCancelledError


def test_a_heartbeat_carries_its_details_to_the_worker() -> None:
    seen: list[Any] = []

    def beat(details: Any) -> bool:
        seen.append(details)
        return True

    ctx = ActionContext(on_heartbeat=beat)
    ctx.heartbeat()
    ctx.heartbeat({"page": 3})

    assert seen == [None, {"page": 3}]


def test_a_heartbeat_of_a_lost_attempt_raises() -> None:
    ctx = ActionContext(on_heartbeat=lambda details: False)

    with pytest.raises(AttemptCancelledError):
        ctx.heartbeat()


def test_a_heartbeat_of_a_cancelled_attempt_raises_and_reports_nothing() -> None:
    seen: list[Any] = []

    def beat(details: Any) -> bool:
        seen.append(details)
        return True

    ctx = ActionContext(on_heartbeat=beat)
    ctx.stop.set()

    assert ctx.cancelled
    with pytest.raises(AttemptCancelledError):
        ctx.heartbeat({"page": 3})
    assert seen == []


@pytest.mark.parametrize("details", [float("nan"), {"a": b"x"}, {"a": "x" * MAX_DETAILS_BYTES}])
def test_details_that_cannot_be_stored_are_refused(details: Any) -> None:
    with pytest.raises(ActionError) as refused:
        ActionContext().heartbeat(details)

    assert (refused.value.code, refused.value.retryable) == ("HEARTBEAT_INVALID", False)


def test_a_wait_ends_at_once_when_the_attempt_is_to_stop() -> None:
    ctx = ActionContext()
    threading.Timer(0.01, ctx.stop.set).start()

    assert ctx.wait(60)


def test_a_wait_that_nobody_interrupts_says_so() -> None:
    assert not ActionContext().wait(0.001)
    assert not ActionContext().wait(-1)
