"""`ports.Queue` without order: the `steps` queue."""

from __future__ import annotations

import pytest

from ductor.ports import Message, Outgoing, Queue
from ductor.testing.memory import VirtualClock

SECOND = 1_000


def send(queue: Queue, *bodies: str, delay_ms: int = 0) -> None:
    queue.send([Outgoing(body.encode(), delay_ms=delay_ms) for body in bodies])


def take(queue: Queue, limit: int = 10, visibility_ms: int = 30 * SECOND) -> list[Message]:
    return list(queue.receive(limit, visibility_ms=visibility_ms))


def bodies(messages: list[Message]) -> list[str]:
    return sorted(message.body.decode() for message in messages)


def test_an_empty_queue_gives_nothing(steps: Queue) -> None:
    assert take(steps) == []
    steps.ack([])
    steps.retry([], delay_ms=0)
    steps.dead_letter([], "none")
    assert steps.send([]) == ()


def test_each_message_is_delivered_once_while_in_flight(steps: Queue) -> None:
    send(steps, "a", "b", "c")
    assert bodies(take(steps, 2) + take(steps, 2)) == ["a", "b", "c"]
    assert take(steps) == []


def test_an_acknowledged_message_never_comes_again(steps: Queue, clock: VirtualClock) -> None:
    send(steps, "a", "b")
    one, _ = take(steps)
    steps.ack([one.receipt])
    clock.advance(60 * SECOND)
    assert [m.id for m in take(steps)] != [one.id]
    assert len(take(steps)) == 0


def test_a_message_not_acknowledged_comes_again(steps: Queue, clock: VirtualClock) -> None:
    send(steps, "a")
    (first,) = take(steps)
    clock.advance(30 * SECOND - 1)
    assert take(steps) == []
    clock.advance(1)
    (again,) = take(steps)
    assert (again.id, again.receives, first.receives) == (first.id, 2, 1)


def test_a_delayed_message_waits(steps: Queue, clock: VirtualClock) -> None:
    send(steps, "later", delay_ms=900 * SECOND)
    send(steps, "now")
    assert bodies(take(steps)) == ["now"]
    clock.advance(900 * SECOND - 1)
    assert bodies(take(steps, visibility_ms=0)) == ["now"]
    clock.advance(1)
    assert bodies(take(steps)) == ["later", "now"]


@pytest.mark.parametrize("delay_ms", [-1, 900_001])
def test_a_delay_outside_the_limits_is_refused(steps: Queue, delay_ms: int) -> None:
    with pytest.raises(ValueError, match="delay_ms"):
        send(steps, "a", delay_ms=delay_ms)


def test_a_retry_comes_again_at_once_or_after_its_delay(steps: Queue, clock: VirtualClock) -> None:
    send(steps, "a", "b")
    messages = {m.body: m for m in take(steps)}
    steps.retry([messages[b"a"].receipt], delay_ms=0)
    steps.retry([messages[b"b"].receipt], delay_ms=SECOND)
    assert bodies(take(steps)) == ["a"]
    clock.advance(SECOND)
    assert bodies(take(steps)) == ["b"]


def test_an_old_receipt_does_nothing_to_a_new_delivery(steps: Queue, clock: VirtualClock) -> None:
    send(steps, "a")
    (stale,) = take(steps)
    clock.advance(30 * SECOND)
    take(steps)
    steps.ack([stale.receipt])
    steps.retry([stale.receipt], delay_ms=0)
    steps.dead_letter([stale.receipt], "stale")
    assert take(steps) == []
    clock.advance(30 * SECOND)
    assert bodies(take(steps)) == ["a"]


def test_repeated_ids_are_not_swallowed(steps: Queue) -> None:
    steps.send([Outgoing(b"a", dedup_id="x"), Outgoing(b"b", dedup_id="x")])
    assert bodies(take(steps)) == ["a", "b"]


def test_messages_of_one_group_do_not_wait_for_each_other(steps: Queue) -> None:
    steps.send([Outgoing(b"a", group="g"), Outgoing(b"b", group="g")])
    assert bodies(take(steps, 1) + take(steps, 1)) == ["a", "b"]


def test_a_dead_letter_never_comes_again_and_can_be_read(steps: Queue, clock: VirtualClock) -> None:
    send(steps, "a", "b")
    for message in take(steps):
        steps.dead_letter([message.receipt], f"why {message.body.decode()}")
    clock.advance(60 * SECOND)
    assert take(steps) == []
    dead = steps.dead_letters()  # type: ignore[attr-defined]
    assert [(m.body, reason) for m, reason in dead] == [(b"a", "why a"), (b"b", "why b")]
    assert len(steps.dead_letters(1)) == 1  # type: ignore[attr-defined]


def test_dead_letters_are_sent_again_as_new_messages_oldest_first(steps: Queue, clock: VirtualClock) -> None:
    send(steps, "a", "b", "c")
    for message in take(steps):
        steps.dead_letter([message.receipt], "why")
    assert steps.redrive(2) == 2  # type: ignore[attr-defined]
    assert sorted(bodies(take(steps))) == ["a", "b"]
    assert [m.body for m, _ in steps.dead_letters()] == [b"c"]  # type: ignore[attr-defined]
    assert (steps.redrive(), steps.redrive()) == (1, 0)  # type: ignore[attr-defined]
    (again,) = take(steps)
    assert (again.body, again.receives) == (b"c", 1)


def test_the_two_queues_are_apart(steps: Queue, intents: Queue) -> None:
    send(steps, "a")
    assert take(intents) == []
    assert bodies(take(steps)) == ["a"]


def test_a_receipt_that_no_receive_returned_is_refused(steps: Queue) -> None:
    with pytest.raises(ValueError, match=r"int|unpack|receipt"):
        steps.ack(["nonsense"])


@pytest.mark.parametrize(("limit", "visibility_ms"), [(0, 1), (1, -1), (1, 43_200_001)])
def test_a_receive_outside_the_limits_is_refused(steps: Queue, limit: int, visibility_ms: int) -> None:
    with pytest.raises(ValueError, match=r"limit|visibility"):
        steps.receive(limit, visibility_ms=visibility_ms)
