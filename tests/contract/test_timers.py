"""`ports.Timers`, and the reading end that the runtime drains."""

from __future__ import annotations

import pytest
from tests.contract.implementations import ReadTimers as Timers


def test_a_timer_is_due_at_its_time_and_not_before(timers: Timers) -> None:
    timers.arm("r", 1000)
    assert timers.due(999) == ()
    assert timers.due(1000) == (("r", 1000),)


def test_arming_the_same_pair_again_is_a_no_op(timers: Timers) -> None:
    timers.arm("r", 1000)
    timers.arm("r", 1000)
    assert timers.due(2000) == (("r", 1000),)


def test_an_earlier_wake_up_stays_armed_beside_a_later_one(timers: Timers) -> None:
    timers.arm("r", 1000)
    timers.arm("r", 3000)
    assert timers.due(2000) == (("r", 1000),)
    timers.fired(timers.due(2000))
    assert timers.due(3000) == (("r", 3000),)


def test_a_timer_stays_armed_until_it_is_said_to_have_fired(timers: Timers) -> None:
    timers.arm("r", 1000)
    assert timers.due(1000) == timers.due(1000) == (("r", 1000),)
    timers.fired([("r", 1000), ("unknown", 1)])
    assert timers.due(1000) == ()


def test_due_timers_come_earliest_first_up_to_the_limit(timers: Timers) -> None:
    for run_id, at in [("c", 3), ("a", 2), ("b", 2), ("d", 1), ("past", -5)]:
        timers.arm(run_id, at)
    assert timers.due(10, limit=4) == (("past", -5), ("d", 1), ("a", 2), ("b", 2))
    with pytest.raises(ValueError, match="at least 1"):
        timers.due(10, limit=0)


def test_the_next_timer_is_known(timers: Timers) -> None:
    assert timers.next_at() is None
    timers.arm("r", 2000)
    timers.arm("q", 1000)
    assert timers.next_at() == 1000
