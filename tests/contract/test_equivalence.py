"""The file and the memory implementations, side by side under random operations, answer the same."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, multiple, precondition, rule
from tests.contract.implementations import Backend, memory, sqlite

from ductor.ports import Check, Delete, Expect, Index, Item, Message, Op, Outgoing, Put, Queue

PARTITIONS = st.sampled_from(["p", "q"])
SORT_KEYS = st.sampled_from(["a", "a#1", "a#2", "b", "é", "\uffff", "\U0001f600"])
EXPECTS = st.one_of(st.sampled_from(list(Expect)), st.integers(1, 3))
PAIRS = st.none() | st.tuples(PARTITIONS, st.sampled_from(["1", "2", "é"]))
ITEMS = st.builds(
    Item,
    pk=PARTITIONS,
    sk=SORT_KEYS,
    version=st.integers(1, 3),
    body=st.binary(max_size=3),
    ttl=st.none() | st.integers(1, 5),
    i1=PAIRS,
    i2=PAIRS,
    i3=PAIRS,
)
OPS: st.SearchStrategy[Op] = st.one_of(
    st.builds(Put, ITEMS, EXPECTS),
    st.builds(Delete, PARTITIONS, SORT_KEYS, EXPECTS),
    st.builds(Check, PARTITIONS, SORT_KEYS, EXPECTS),
)
RANGES = st.one_of(
    st.fixed_dictionaries({}, optional={"low": SORT_KEYS, "high": SORT_KEYS}),
    st.fixed_dictionaries({"prefix": st.sampled_from(["", "a", "a#", "\uffff"])}),
)
GROUPS = st.sampled_from(["g", "h"])
DELAYS = st.sampled_from([0, 1, 1000, 2000])


class Pair(RuleBasedStateMachine):
    """Both implementations on clocks that move together."""

    @initialize()
    def open(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.both: tuple[Backend, Backend] = (sqlite(Path(self.directory.name)), memory(Path()))

    def teardown(self) -> None:
        if hasattr(self, "both"):
            self.both[0].close()
            self.directory.cleanup()


class Tables(Pair):
    """Writes and reads of a few rows."""

    def __init__(self) -> None:
        super().__init__()
        self.cursor: tuple[dict[str, Any], str] | None = None

    @rule(ops=st.lists(OPS, min_size=1, max_size=4))
    def write(self, ops: list[Op]) -> None:
        ours, theirs = (answer(lambda table=backend.table: table.write(ops)) for backend in self.both)
        assert ours == theirs

    @rule(pk=PARTITIONS, sk=SORT_KEYS)
    def get(self, pk: str, sk: str) -> None:
        ours, theirs = (backend.table.get(pk, sk) for backend in self.both)
        assert ours == theirs

    @rule(
        pk=PARTITIONS,
        index=st.none() | st.sampled_from(list(Index)),
        bounds=RANGES,
        limit=st.integers(1, 5),
        descending=st.booleans(),
    )
    def query(self, pk: str, index: Index | None, bounds: dict[str, str], limit: int, descending: bool) -> None:
        how: dict[str, Any] = {"pk": pk, "index": index, "limit": limit, "descending": descending, **bounds}
        ours, theirs = (backend.table.query(**how) for backend in self.both)
        assert ours == theirs
        self.cursor = (how, ours.cursor) if ours.cursor else None

    @precondition(lambda self: self.cursor is not None)
    @rule()
    def turn_the_page(self) -> None:
        assert self.cursor is not None
        how, cursor = self.cursor
        ours, theirs = (backend.table.query(**how, cursor=cursor) for backend in self.both)
        assert ours == theirs
        self.cursor = (how, ours.cursor) if ours.cursor else None


def answer(write: Any) -> Any:
    """The outcome of a write, a refusal included."""
    try:
        return write()
    except ValueError as error:
        return str(error)


class Queues(Pair):
    """Messages through one queue of each; the receipts of both are kept in step."""

    taken: Bundle[tuple[str, str]] = Bundle("taken")
    ordered = True

    @property
    def queues(self) -> tuple[Queue, Queue]:
        ours, theirs = self.both
        return (ours.intents, theirs.intents) if self.ordered else (ours.steps, theirs.steps)

    @rule(entries=st.lists(st.tuples(GROUPS, st.integers(0, 9), DELAYS), min_size=1, max_size=5))
    def send(self, entries: list[tuple[str, int, int]]) -> None:
        messages = [
            Outgoing(f"{group}{number}".encode(), group, str(number), 0 if self.ordered else delay)
            for group, number, delay in entries
        ]
        for queue in self.queues:
            assert queue.send(messages) == ()

    @rule(target=taken, limit=st.integers(1, 6), visibility_ms=st.sampled_from([0, 1000, 3000]))
    def receive(self, limit: int, visibility_ms: int) -> Any:
        ours, theirs = (queue.receive(limit, visibility_ms=visibility_ms) for queue in self.queues)
        assert seen(ours) == seen(theirs)
        return multiple(*((a.receipt, b.receipt) for a, b in zip(ours, theirs, strict=True)))

    @rule(receipts=st.lists(taken, max_size=4))
    def ack(self, receipts: list[tuple[str, str]]) -> None:
        for queue, mine in zip(self.queues, zip(*receipts, strict=True), strict=False):
            queue.ack(mine)

    @rule(receipts=st.lists(taken, max_size=4), delay_ms=DELAYS)
    def retry(self, receipts: list[tuple[str, str]], delay_ms: int) -> None:
        for queue, mine in zip(self.queues, zip(*receipts, strict=True), strict=False):
            queue.retry(mine, delay_ms=delay_ms)

    @rule(receipt=taken)
    def dead_letter(self, receipt: tuple[str, str]) -> None:
        for queue, mine in zip(self.queues, receipt, strict=True):
            queue.dead_letter([mine], "why")

    @rule(milliseconds=st.sampled_from([1, 999, 1000, 2000, 150_000, 299_000]))
    def pass_time(self, milliseconds: int) -> None:
        for backend in self.both:
            backend.clock.advance(milliseconds)

    @rule()
    def look(self) -> None:
        ours, theirs = self.queues
        assert ours.oldest_age_ms() == theirs.oldest_age_ms()
        dead, also_dead = (queue.dead_letters() for queue in (ours, theirs))  # type: ignore[attr-defined]
        assert [(*seen([m]), reason) for m, reason in dead] == [(*seen([m]), reason) for m, reason in also_dead]


class UnorderedQueues(Queues):
    """The same on the queue without order."""

    ordered = False


def seen(messages: Sequence[Message]) -> list[tuple[Any, ...]]:
    """What a consumer sees, but for ids and receipts, which each implementation makes up."""
    return [(m.body, m.group, m.receives, m.sent_at) for m in messages]


Tables.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
Queues.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
UnorderedQueues.TestCase.settings = Queues.TestCase.settings

TestTables = Tables.TestCase
TestQueues = Queues.TestCase
TestUnorderedQueues = UnorderedQueues.TestCase
