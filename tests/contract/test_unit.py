"""`ports.Unit`: what becomes durable together, and what an exception undoes where the backend can group."""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress

import pytest
from tests.contract.implementations import Backend

from ductor.ports import Conflict, Expect, Item, Outgoing, Put


class Boom(Exception):
    """Thrown by a test."""


def put(backend: Backend, *sort_keys: str) -> None:
    for sk in sort_keys:
        backend.table.write([Put(Item(pk="p", sk=sk))])


def stored(backend: Backend) -> str:
    return "".join(item.sk for item in backend.table.query("p").items)


def send(backend: Backend, dedup_id: str = "1") -> None:
    backend.intents.send([Outgoing(b"i", group="g", dedup_id=dedup_id)])


def test_a_batch_keeps_everything_it_did(backend: Backend) -> None:
    with backend.unit.batch():
        put(backend, "a")
        with backend.unit.part():
            put(backend, "b")
        send(backend)
        backend.timers.arm("r", 1)
        backend.blobs.put("k", b"v")
    assert stored(backend) == "ab"
    assert len(backend.intents.receive(10, visibility_ms=1000)) == 1
    assert backend.timers.due(1) == (("r", 1),)
    assert backend.blobs.get("k") == b"v"


def test_reads_in_a_batch_see_its_own_writes(backend: Backend) -> None:
    with backend.unit.batch():
        put(backend, "a")
        assert stored(backend) == "a"
        assert backend.table.get("p", "a") is not None
        assert backend.table.write([Put(Item(pk="p", sk="a"), Expect.ABSENT)]) == Conflict(0, Item(pk="p", sk="a"))
        send(backend)
        assert len(backend.intents.receive(10, visibility_ms=1000)) == 1


def test_an_exception_leaves_a_batch_as_it_is(backend: Backend) -> None:
    with suppress(Boom), backend.unit.batch():
        put(backend, "a")
        raise Boom
    assert stored(backend) == ("" if backend.groups else "a")


def test_an_exception_undoes_all_of_a_grouped_batch(backend: Backend) -> None:
    send(backend)
    (message,) = backend.intents.receive(10, visibility_ms=1000)
    with suppress(Boom), backend.unit.batch():
        backend.intents.ack([message.receipt])
        send(backend, "2")
        backend.steps.send([Outgoing(b"s")])
        backend.timers.arm("r", 1)
        backend.blobs.put("k", b"v")
        raise Boom
    backend.clock.advance(1000)
    bodies = [m.receives for m in backend.intents.receive(10, visibility_ms=1000)]
    if backend.groups:
        assert bodies == [2]
        assert backend.steps.receive(10, visibility_ms=1000) == ()
        assert backend.timers.due(1) == ()
        assert backend.blobs.get("k") is None
    else:
        assert bodies == [1]


def test_a_swallowed_id_of_an_undone_batch_can_be_sent_again(backend: Backend) -> None:
    with suppress(Boom), backend.unit.batch():
        send(backend)
        raise Boom
    send(backend)
    assert len(backend.intents.receive(10, visibility_ms=1000)) == 1


def test_an_undone_part_leaves_what_came_before_and_after_it(backend: Backend) -> None:
    with backend.unit.batch():
        put(backend, "a")
        with suppress(Boom), backend.unit.part():
            put(backend, "b")
            raise Boom
        put(backend, "c")
    assert stored(backend) == ("ac" if backend.groups else "abc")


def test_messages_of_an_undone_part_do_not_arrive_and_those_around_it_do(backend: Backend) -> None:
    with backend.unit.batch():
        backend.steps.send([Outgoing(b"before")])
        with suppress(Boom), backend.unit.part():
            backend.steps.send([Outgoing(b"in it")])
            raise Boom
        backend.steps.send([Outgoing(b"after")])
    bodies = {message.body for message in backend.steps.receive(10, visibility_ms=1000)}
    assert bodies == {b"before", b"after"} | (set() if backend.groups else {b"in it"})


def test_a_message_that_an_undone_part_received_arrives_again(backend: Backend) -> None:
    with backend.unit.batch():
        backend.steps.send([Outgoing(b"s")])
        with suppress(Boom), backend.unit.part():
            assert [message.body for message in backend.steps.receive(10, visibility_ms=1000)] == [b"s"]
            raise Boom
    backend.clock.advance(1000)
    assert [message.body for message in backend.steps.receive(10, visibility_ms=1000)] == [b"s"]


def test_parts_and_batches_nest(backend: Backend) -> None:
    with backend.unit.batch():
        with backend.unit.part():
            put(backend, "a")
            with suppress(Boom), backend.unit.part():
                put(backend, "b")
                raise Boom
        with suppress(Boom), backend.unit.batch():
            put(backend, "c")
            raise Boom
        with backend.unit.batch():
            put(backend, "d")
    assert stored(backend) == ("ad" if backend.groups else "abcd")


def test_the_outermost_batch_decides(backend: Backend) -> None:
    with suppress(Boom), backend.unit.batch():
        with backend.unit.batch():
            put(backend, "a")
        raise Boom
    assert stored(backend) == ("" if backend.groups else "a")


def test_a_part_outside_a_batch_undoes_nothing(backend: Backend) -> None:
    with suppress(Boom), backend.unit.part():
        put(backend, "a")
        raise Boom
    assert stored(backend) == "a"


def test_a_conflict_inside_a_batch_undoes_that_write_alone(backend: Backend) -> None:
    with backend.unit.batch():
        put(backend, "a")
        conflict = backend.table.write([Put(Item(pk="p", sk="b")), Put(Item(pk="p", sk="a"), Expect.ABSENT)])
        assert conflict == Conflict(1, Item(pk="p", sk="a"))
        put(backend, "c")
    assert stored(backend) == "ac"


def test_a_refused_argument_does_not_spoil_the_batch(backend: Backend) -> None:
    with backend.unit.batch():
        put(backend, "a")
        with pytest.raises(ValueError, match="empty"):
            put(backend, "")
        put(backend, "b")
    assert stored(backend) == "ab"


@pytest.mark.parametrize("kind", ["batch", "part"])
def test_an_exception_passes_through(backend: Backend, kind: str) -> None:
    def fail(block: AbstractContextManager[object]) -> None:
        with block:
            raise Boom

    with pytest.raises(Boom):
        fail(backend.unit.batch() if kind == "batch" else backend.unit.part())
    with backend.unit.batch(), pytest.raises(Boom):
        fail(backend.unit.batch() if kind == "batch" else backend.unit.part())
