"""Digests: who leads, what is in a batch, how a window closes, and who goes on when a leader does not."""

from __future__ import annotations

import pytest
from tests.unit.waits.gates import definition
from tests.unit.waits.mail import MINUTE, Mail, sound


def test_the_first_run_leads_and_the_others_are_merged_into_it() -> None:
    mail = Mail()
    first, second, third = (mail.arrive(n) for n in (1, 2, 3))
    assert [mail.status(run_id) for run_id in (first, second, third)] == ["waiting"] * 3

    mail.wait(MINUTE)

    arrivals = [{"run": run_id, "n": n} for run_id, n in ((first, 1), (second, 2), (third, 3))]
    assert mail.output(first, "all") == {"arrivals": arrivals, "count": 3}
    assert mail.merged_into(second) == mail.merged_into(third) == first
    assert mail.statuses(first)["mail"] == "completed"
    assert mail.statuses(second)["mail"] == "pending"
    assert mail.rows() == []
    sound(mail)


def test_a_window_is_counted_from_the_first_arrival() -> None:
    mail = Mail()
    first = mail.arrive(1)
    mail.wait(MINUTE - 1)
    second = mail.arrive(2)
    mail.wait(1)

    assert mail.batch(first) == [1, 2]
    assert mail.merged_into(second) == first


def test_what_comes_after_the_window_opens_the_next() -> None:
    mail = Mail()
    first = mail.arrive(1)
    mail.wait(MINUTE)
    second = mail.arrive(2)
    mail.wait(MINUTE)

    assert (mail.batch(first), mail.batch(second)) == ([1], [2])


def test_keys_do_not_mix() -> None:
    mail = Mail()
    runs = [mail.arrive(n, key) for n, key in enumerate(("a", "b", 7, "7"))]
    mail.wait(MINUTE)

    assert [mail.status(run_id) for run_id in runs] == ["completed", "completed", "completed", "merged"]


def test_families_do_not_mix() -> None:
    mail = Mail()
    first = mail.arrive(1)
    step = {"ref": "all", "type": "digest", "args": {"digest_key": "k", "window": "1m"}}
    other = mail.publish(definition(step, family="other"))
    second = mail.trigger(other, {})
    mail.settle()
    mail.wait(MINUTE)

    assert mail.batch(first) == [1]
    assert mail.output(second, "all") == {"arrivals": [{}], "count": 1}


def test_a_full_digest_closes_at_once() -> None:
    mail = Mail(max_wait="1h", max_count=2)
    first, second, third = (mail.arrive(n) for n in (1, 2, 3))

    assert mail.batch(first) == [1, 2]
    assert mail.merged_into(second) == first
    assert mail.status(third) == "waiting"


def test_a_digest_that_is_not_full_closes_after_its_longest_wait() -> None:
    mail = Mail(max_wait="1h", max_count=2)
    only = mail.arrive(1)
    mail.wait(60 * MINUTE)

    assert mail.batch(only) == [1]


def test_a_digest_of_one_closes_with_its_first_arrival() -> None:
    mail = Mail(max_wait="1h", max_count=1)

    assert [mail.batch(mail.arrive(n)) for n in (1, 2)] == [[1], [2]]


def test_of_arrivals_with_one_dedup_key_the_first_counts() -> None:
    mail = Mail(dedup_key="${{ TRIGGER.payload.id }}")
    first, second, third, fourth = (mail.arrive(n, id=key) for n, key in ((1, "x"), (2, "y"), (3, "x"), (4, "")))
    mail.wait(MINUTE)

    assert mail.batch(first) == [1, 2, 4]
    assert {mail.merged_into(run_id) for run_id in (second, third, fourth)} == {first}


def test_arrivals_together_are_bounded_in_size() -> None:
    mail = Mail()
    runs = [mail.arrive("x" * 250_000) for _ in range(20)]
    mail.wait(2 * MINUTE)

    batches = [mail.batch(run_id) for run_id in runs if mail.status(run_id) == "completed"]
    assert [len(batch) for batch in batches] == [15, 5]
    sound(mail)


def test_an_arrival_that_is_too_large_fails_its_step() -> None:
    mail = Mail()
    run_id = mail.arrive("x" * 300_000)

    error = mail.state(run_id).error
    assert error is not None
    assert error.code == "DIGEST_ARRIVAL_TOO_LARGE"


@pytest.mark.parametrize("key", ["", None, True, ["a"], "x" * 1_025])
def test_a_key_that_is_none_fails_its_step(key: object) -> None:
    mail = Mail()
    run_id = mail.arrive(1, key)

    error = mail.state(run_id).error
    assert error is not None
    assert error.code == "DIGEST_KEY_INVALID"
    assert mail.rows() == []
