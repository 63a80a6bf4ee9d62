"""A restart in a simulated world: what was in flight is there again at once, in its order, and no time has passed."""

from __future__ import annotations

import pytest

from ductor.ports import Outgoing, QueueName
from ductor.testing.memory import MemoryQueue, VirtualClock


@pytest.mark.parametrize("name", [QueueName.INTENTS, QueueName.STEPS])
def test_what_was_in_flight_is_delivered_again_at_once(name: QueueName) -> None:
    clock = VirtualClock()
    queue = MemoryQueue(name, clock)
    queue.send([Outgoing(body=f"{n}".encode(), group="g", dedup_id=f"{n}") for n in range(3)])
    taken = queue.receive(2, visibility_ms=60_000)

    queue.release()

    again = queue.receive(10, visibility_ms=60_000)
    assert sorted(message.body for message in again) == [b"0", b"1", b"2"]
    assert [message.receives for message in again if message.body != b"2"] == [2, 2]
    queue.ack([message.receipt for message in taken])
    assert queue.depth() == 3


def test_a_delayed_message_that_nobody_has_stays_delayed() -> None:
    clock = VirtualClock()
    queue = MemoryQueue(QueueName.STEPS, clock)
    queue.send([Outgoing(body=b"late", group="", dedup_id="1", delay_ms=5_000)])

    queue.release()

    assert queue.receive(10, visibility_ms=1_000) == ()
    assert queue.next_visible_at() == clock.now + 5_000
