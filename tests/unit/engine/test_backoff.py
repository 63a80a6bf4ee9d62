"""The wait between attempts: never negative, never shorter than before, capped, and the same whenever asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ductor.engine.backoff import delay_ms, jittered_ms, may_retry
from ductor.model.definition import Retry
from ductor.model.errors import StepError

RETRIES = st.builds(
    Retry,
    backoff_ms=st.integers(0, 86_400_000),
    backoff_multiplier=st.floats(1, 10),
    max_backoff_ms=st.integers(0, 86_400_000),
    jitter=st.floats(0, 1),
)


@given(RETRIES, st.integers(1, 2_000))
def test_a_delay_is_never_negative_never_shorter_than_the_one_before_and_never_over_the_cap(
    retry: Retry, failures: int
) -> None:
    delays = [delay_ms(retry, failures), delay_ms(retry, failures + 1)]
    assert 0 <= delays[0] <= delays[1] <= retry.max_backoff_ms


@pytest.mark.parametrize(
    ("failures", "expected"), [(1, 1_000), (2, 2_000), (9, 256_000), (10, 300_000), (64, 300_000), (1_100, 300_000)]
)
def test_the_default_policy_doubles_up_to_five_minutes(failures: int, expected: int) -> None:
    assert delay_ms(Retry(), failures) == expected


def test_a_multiplier_of_one_keeps_the_delay() -> None:
    assert delay_ms(Retry(backoff_multiplier=1, backoff_ms=700), 1_000) == 700


@given(RETRIES, st.integers(1, 200), st.text(max_size=40))
def test_jitter_stays_within_its_share_and_depends_only_on_its_key(retry: Retry, failures: int, key: str) -> None:
    base, moved = delay_ms(retry, failures), jittered_ms(retry, failures, key)
    assert abs(moved - base) <= base * retry.jitter + 1
    assert moved >= 0
    assert moved == jittered_ms(retry, failures, key)


def test_jitter_spreads_different_nodes() -> None:
    retry = Retry(backoff_ms=100_000, jitter=0.5)
    assert len({jittered_ms(retry, 1, f"run/{node}/1") for node in range(50)}) > 40


@pytest.mark.parametrize(
    ("retry", "failures", "error", "elapsed", "allowed"),
    [
        (Retry(), 1, StepError("X"), 0, False),
        (Retry(max_attempts=3), 2, StepError("X"), 0, True),
        (Retry(max_attempts=3), 3, StepError("X"), 0, False),
        (Retry(max_attempts=3), 1, StepError("X", retryable=False), 0, False),
        (Retry(max_attempts=3, non_retryable_codes=("X",)), 1, StepError("X"), 0, False),
        (Retry(max_attempts=3, non_retryable_codes=("Y",)), 1, StepError("X"), 0, True),
        (Retry(max_attempts=3, max_elapsed_ms=500), 1, StepError("X"), 499, True),
        (Retry(max_attempts=3, max_elapsed_ms=500), 1, StepError("X"), 500, False),
    ],
)
def test_attempts_codes_and_elapsed_time_each_end_the_retries(
    retry: Retry, failures: int, error: StepError, elapsed: int, allowed: bool
) -> None:
    assert may_retry(retry, failures, error, elapsed) is allowed
