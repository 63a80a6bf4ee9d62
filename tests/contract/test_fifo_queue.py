"""`ports.Queue` with order per group: the `intents` queue."""

from __future__ import annotations

import pytest

from ductor.ports import Message, Outgoing, Queue
from ductor.testing.memory import VirtualClock

SECOND = 1_000
MINUTE = 60 * SECOND


def send(queue: Queue, *bodies: str) -> None:
    """Send `group:text` bodies, each its own de-duplication id."""
    queue.send([Outgoing(body.encode(), group=body.split(":")[0], dedup_id=body) for body in bodies])


def take(queue: Queue, limit: int = 100, visibility_ms: int = 30 * SECOND) -> list[Message]:
    return list(queue.receive(limit, visibility_ms=visibility_ms))


def bodies(messages: list[Message]) -> list[str]:
    return [message.body.decode() for message in messages]


def test_messages_of_a_group_come_in_the_order_sent(intents: Queue) -> None:
    send(intents, *[f"g:{n}" for n in range(20)])
    send(intents, *[f"g:{n}" for n in range(20, 30)])
    assert bodies(take(intents)) == [f"g:{n}" for n in range(30)]


def test_one_receive_takes_several_groups_each_from_its_oldest_on(intents: Queue) -> None:
    send(intents, "a:1", "b:1", "a:2", "c:1", "b:2", "a:3")
    messages = take(intents)
    assert sorted(bodies(messages)) == ["a:1", "a:2", "a:3", "b:1", "b:2", "c:1"]
    for group in "abc":
        assert bodies([m for m in messages if m.group == group]) == sorted(
            body for body in bodies(messages) if body.startswith(group)
        )


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
def test_a_limit_never_skips_a_message_of_a_group(intents: Queue, limit: int) -> None:
    send(intents, "a:1", "b:1", "a:2", "c:1", "b:2", "a:3")
    found: list[str] = []
    while messages := take(intents, limit):
        assert len(messages) <= limit
        found += bodies(messages)
        intents.ack([m.receipt for m in messages])
    assert sorted(found) == ["a:1", "a:2", "a:3", "b:1", "b:2", "c:1"]
    for group in "abc":
        assert [body for body in found if body.startswith(group)] == sorted(b for b in found if b.startswith(group))


def test_a_group_in_flight_delivers_nothing_else(intents: Queue) -> None:
    send(intents, "a:1")
    first = take(intents)
    send(intents, "a:2", "b:1")
    assert bodies(take(intents)) == ["b:1"]
    intents.ack([first[0].receipt])
    assert bodies(take(intents)) == ["a:2"]


def test_a_group_stays_blocked_until_its_last_message_in_flight_is_settled(intents: Queue) -> None:
    send(intents, "a:1", "a:2", "a:3")
    one, two = take(intents, 2)
    intents.ack([one.receipt])
    assert take(intents) == []
    intents.ack([two.receipt])
    assert bodies(take(intents)) == ["a:3"]


def test_acknowledging_out_of_order_keeps_the_rest_in_order(intents: Queue) -> None:
    send(intents, "a:1", "a:2", "a:3")
    one, two = take(intents, 2)
    intents.ack([two.receipt])
    assert take(intents) == []
    intents.retry([one.receipt], delay_ms=0)
    assert bodies(take(intents)) == ["a:1", "a:3"]


def test_a_visible_message_waits_for_those_of_its_group_still_in_flight(intents: Queue) -> None:
    send(intents, "a:1", "a:2", "a:3")
    one, two = take(intents, 2, visibility_ms=10 * SECOND)
    intents.retry([one.receipt], delay_ms=0)
    assert take(intents) == []
    intents.ack([two.receipt])
    assert bodies(take(intents)) == ["a:1", "a:3"]


def test_the_longest_flight_of_a_group_decides(intents: Queue, clock: VirtualClock) -> None:
    send(intents, "a:1", "a:2", "a:3")
    _, two = take(intents, 2, visibility_ms=SECOND)
    intents.retry([two.receipt], delay_ms=10 * SECOND)
    clock.advance(10 * SECOND - 1)
    assert take(intents) == []
    clock.advance(1)
    assert bodies(take(intents)) == ["a:1", "a:2", "a:3"]


def test_a_busy_group_lets_the_others_have_their_turn(intents: Queue) -> None:
    send(intents, *[f"a:{n}" for n in range(8)], "b:1")
    first = take(intents, 4)
    assert bodies(first) == ["a:0", "a:1", "a:2", "a:3"]
    intents.ack([m.receipt for m in first])
    assert "b:1" in bodies(take(intents, 4))


def test_a_message_not_acknowledged_comes_again_in_its_place(intents: Queue, clock: VirtualClock) -> None:
    send(intents, "a:1", "a:2")
    first = take(intents, 1, visibility_ms=10 * SECOND)
    clock.advance(10 * SECOND - 1)
    assert take(intents) == []
    clock.advance(1)
    again = take(intents)
    assert bodies(again) == ["a:1", "a:2"]
    assert [m.receives for m in again] == [2, 1]
    assert again[0].id == first[0].id
    assert again[0].receipt != first[0].receipt
    assert again[0].sent_at == first[0].sent_at


def test_a_retry_with_delay_keeps_the_place_and_blocks_the_group_meanwhile(intents: Queue, clock: VirtualClock) -> None:
    send(intents, "a:1", "a:2", "b:1")
    message = take(intents, 1)[0]
    intents.retry([message.receipt], delay_ms=5 * SECOND)
    assert bodies(take(intents)) == ["b:1"]
    clock.advance(5 * SECOND)
    assert bodies(take(intents)) == ["a:1", "a:2"]


def test_a_retry_can_lengthen_the_flight(intents: Queue, clock: VirtualClock) -> None:
    send(intents, "a:1")
    message = take(intents, 1, visibility_ms=SECOND)[0]
    intents.retry([message.receipt], delay_ms=10 * SECOND)
    clock.advance(9 * SECOND)
    assert take(intents) == []
    intents.ack([message.receipt])
    clock.advance(MINUTE)
    assert take(intents) == []


def test_an_expired_receipt_acknowledges_nothing(intents: Queue, clock: VirtualClock) -> None:
    send(intents, "a:1")
    stale = take(intents, visibility_ms=SECOND)[0]
    clock.advance(SECOND)
    intents.ack([stale.receipt])
    (again,) = take(intents)
    intents.ack([stale.receipt])
    intents.retry([stale.receipt], delay_ms=0)
    intents.dead_letter([stale.receipt], "stale")
    assert take(intents) == []
    intents.ack([again.receipt])
    clock.advance(MINUTE)
    assert take(intents) == []


def test_a_receipt_of_an_acknowledged_message_fits_no_later_one(intents: Queue) -> None:
    send(intents, "a:1")
    old = take(intents)[0]
    intents.ack([old.receipt])
    send(intents, "a:2")
    assert bodies(take(intents)) == ["a:2"]
    intents.ack([old.receipt])
    send(intents, "a:3")
    assert take(intents) == []


def test_a_repeated_id_is_swallowed_for_five_minutes(intents: Queue, clock: VirtualClock) -> None:
    send(intents, "a:1")
    intents.ack([m.receipt for m in take(intents)])
    clock.advance(5 * MINUTE - 1)
    assert intents.send([Outgoing(b"a:1", group="a", dedup_id="a:1")]) == ()
    assert take(intents) == []
    clock.advance(1)
    send(intents, "a:1")
    assert bodies(take(intents)) == ["a:1"]


@pytest.mark.parametrize("offset", [0, MINUTE, 4 * MINUTE, 5 * MINUTE - 1])
@pytest.mark.parametrize("gap", [1, 2 * MINUTE, 5 * MINUTE - 1, 5 * MINUTE, 9 * MINUTE, 14 * MINUTE, 16 * MINUTE])
def test_the_window_is_exact_wherever_it_starts(intents: Queue, clock: VirtualClock, offset: int, gap: int) -> None:
    clock.advance(offset)
    for _ in range(3):
        send(intents, "a:1")
        fresh = bodies(take(intents, visibility_ms=0))
        intents.ack([m.receipt for m in take(intents)])
        assert fresh == ["a:1"]
        clock.advance(gap)
        send(intents, "a:1", "b:1")
        swallowed = "a:1" not in bodies(take(intents))
        assert swallowed == (gap < 5 * MINUTE)
        clock.advance(20 * MINUTE)
        intents.ack([m.receipt for m in take(intents)])
        clock.advance(20 * MINUTE)


def test_a_swallowed_repeat_does_not_prolong_the_window(intents: Queue, clock: VirtualClock) -> None:
    send(intents, "a:1")
    intents.ack([m.receipt for m in take(intents)])
    clock.advance(4 * MINUTE)
    send(intents, "a:1")
    clock.advance(MINUTE)
    send(intents, "a:1")
    assert bodies(take(intents)) == ["a:1"]


def test_ids_are_compared_within_their_group(intents: Queue) -> None:
    intents.send([Outgoing(b"1", group="a", dedup_id="x"), Outgoing(b"2", group="b", dedup_id="x")])
    assert sorted(bodies(take(intents))) == ["1", "2"]


def test_repeats_in_one_send_are_swallowed_and_the_rest_keeps_its_order(intents: Queue) -> None:
    send(intents, "a:1", "b:1", "a:1", "a:2", "b:1", "a:2", "a:3")
    assert bodies(take(intents)) == ["a:1", "b:1", "a:2", "a:3"]


def test_a_dead_letter_leaves_the_group_free_and_can_be_read(intents: Queue) -> None:
    send(intents, "a:1", "a:2")
    message = take(intents, 1)[0]
    intents.dead_letter([message.receipt], "cannot be read")
    assert bodies(take(intents)) == ["a:2"]
    ((dead, reason),) = intents.dead_letters()  # type: ignore[attr-defined]
    assert (dead.body, dead.group, dead.id, dead.receives, reason) == (b"a:1", "a", message.id, 1, "cannot be read")


def test_dead_letters_of_a_group_are_sent_again_behind_what_it_has_now(intents: Queue) -> None:
    send(intents, "a:1", "a:2", "b:1", "a:3")
    for message in take(intents):
        if message.body != b"a:3":
            intents.dead_letter([message.receipt], "why")
        else:
            intents.retry([message.receipt], delay_ms=0)
    assert intents.redrive() == 3  # type: ignore[attr-defined]
    assert intents.dead_letters() == ()  # type: ignore[attr-defined]
    again = bodies(take(intents))
    assert [body for body in again if body.startswith("a")] == ["a:3", "a:1", "a:2"]
    assert "b:1" in again


def test_the_oldest_age_is_that_of_the_oldest_message_not_acknowledged(intents: Queue, clock: VirtualClock) -> None:
    assert intents.oldest_age_ms() == 0
    send(intents, "a:1")
    clock.advance(SECOND)
    send(intents, "b:1")
    one, _ = take(intents)
    clock.advance(SECOND)
    assert intents.oldest_age_ms() == 2 * SECOND
    intents.ack([one.receipt])
    assert intents.oldest_age_ms() == SECOND


@pytest.mark.parametrize(
    "message",
    [
        Outgoing(b"", group="g", dedup_id="d", delay_ms=1),
        Outgoing(b"", group="", dedup_id="d"),
        Outgoing(b"", group="g"),
        Outgoing(b"", group="g", dedup_id="d" * 129),
        Outgoing(b"x" * 1_048_577, group="g", dedup_id="d"),
    ],
)
def test_what_sqs_refuses_is_refused_and_nothing_is_sent(intents: Queue, message: Outgoing) -> None:
    with pytest.raises(ValueError, match=r"delay|group|bytes"):
        intents.send([Outgoing(b"good", group="g", dedup_id="good"), message])
    assert take(intents) == []


def test_a_message_says_when_it_was_sent(intents: Queue, clock: VirtualClock) -> None:
    send(intents, "a:1")
    assert take(intents)[0].sent_at == clock.now_ms()
