"""Safety rule 9, digests: each scenario holds with the mechanism and breaks without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from tests.simulation.scene import action, edge, flow, held

from ductor.app.digest_rows import DigestRows
from ductor.app.digests import Digests, Leader
from ductor.model.definition import Definition, Step
from ductor.model.digest import Who, Window, WindowStatus
from ductor.model.enums import StepType
from ductor.model.intent import Intent, IntentKind
from ductor.model.run import RunState
from ductor.ports import Expect, Item, Op, Put
from ductor.testing.actors import VISIBILITY_MS
from ductor.testing.chaos import Crash
from ductor.testing.digests import ARRIVAL
from ductor.testing.invariants import violations
from ductor.testing.schedule import Schedule
from ductor.testing.world import World

MINUTE = 60_000


def gathering(window: str) -> Definition:
    digest = Step(ref="all", type=StepType.DIGEST, args={"digest_key": "k", "window": window, "arrival": ARRIVAL})
    return flow(digest, action("after"), edge("all", "after"))


class Meeting:
    """Runs of one definition that meet; who acts, and where a coordinator dies, is said by hand."""

    def __init__(self, window: str = "1m") -> None:
        self.world = World(1)
        self.schedule = Schedule(self.world, [])
        self.definition_id = self.world.publish(gathering(window))

    def arrive(self) -> str:
        run_id = self.world.trigger(self.definition_id, {"n": 1})
        self.work()
        return run_id

    def work(self) -> None:
        """Everybody does what can be done at this moment. Who dies is built anew, and what it held comes again."""
        while self.guarded(self.schedule.round):
            pass

    def guarded(self, act: Callable[[], object]) -> object:
        try:
            return act()
        except Crash:
            for actor in self.world.coordinators:
                actor.restart()
            self.world.clock.advance(VISIBILITY_MS + 1)
            return True

    def wait(self, ms: int) -> None:
        self.world.clock.advance(ms)
        self.work()

    def rest(self) -> None:
        self.schedule.drain()
        self.schedule.free()

    def control(self, run_id: str, operation: str) -> None:
        self.world.control(run_id, operation, f"{operation}-{run_id}")

    def batches(self) -> list[list[str]]:
        """The runs in each batch, as positions in the order of arrival."""
        runs = self.world.run_ids()
        return [self.batch(run_id) for run_id in runs if self.world.statuses(run_id)["all"] == "completed"]

    def batch(self, run_id: str) -> list[str]:
        order = self.world.run_ids()
        output: Any = self.world.output(run_id, "all")
        return [str(order.index(each["run"])) for each in output["arrivals"]]

    @property
    def statuses(self) -> list[str]:
        return [self.world.state(run_id).status.value for run_id in self.world.run_ids()]

    def ended(self, batches: list[list[str]], *statuses: str) -> bool:
        """Whether the runs ended so, with these batches, and no promise is broken."""
        return self.batches() == batches and self.statuses == list(statuses) and self.sound

    @property
    def sound(self) -> bool:
        return violations(self.world, final=True) == []


# Joining is a transaction that checks that the window is open; who is refused opens the next


def the_window_closes_while_a_run_joins() -> bool:
    meeting = Meeting()
    meeting.arrive()
    meeting.world.clock.advance(MINUTE - 1)
    newest = DigestRows.newest

    def meanwhile(self: DigestRows, pk: str) -> Any:
        found = newest(self, pk)
        if found is not None and found[2].status is WindowStatus.OPEN and once:
            once.pop()
            meeting.world.clock.advance(1)
            meeting.world.timer.step()
            meeting.world.coordinators[1].deliver(10)
            meeting.world.coordinators[1].deliver(10)
        return found

    once = [True]
    meeting.world.trigger(meeting.definition_id, {"n": 1})
    with patch.object(DigestRows, "newest", meanwhile):
        meeting.world.coordinators[0].deliver(10)
    meeting.rest()
    assert not once
    return meeting.ended([["0"], ["1"]], "completed", "completed")


def joins_whatever_the_window_is() -> Any:
    """The member is written without a look at the window's row."""
    enter = DigestRows._enter

    def unchecked(self: DigestRows, put: Put, *rest: Any) -> bool:
        return enter(self, Put(put.item, Expect.ANY), *rest)

    return patch.object(DigestRows, "_enter", unchecked)


def test_rule_09_a_run_that_is_refused_opens_the_next_window() -> None:
    held(the_window_closes_while_a_run_joins, joins_whatever_the_window_is())


# The window is closed before its members are read


def a_run_arrives_between_the_reading_and_the_end_of_the_leader() -> bool:
    """To the clock of the run that comes now the window is open; what the leader is told of its batch takes longer."""
    meeting = Meeting()
    meeting.arrive()
    meeting.world.clock.advance(MINUTE)
    meeting.world.timer.step()
    meeting.world.coordinators[0].deliver(10)
    (closed,) = meeting.world.intents.receive(1, visibility_ms=1_000)
    meeting.world.clock.advance(-1)
    meeting.world.trigger(meeting.definition_id, {"n": 1})
    meeting.world.coordinators[1].deliver(1)
    meeting.world.intents.retry([closed.receipt], delay_ms=0)
    meeting.rest()
    return meeting.ended([["0"], ["1"]], "completed", "completed")


def reads_an_open_window() -> Any:
    """The leader takes whoever is there, and the window stays open."""
    change = DigestRows.change

    def stays_open(self: DigestRows, item: Item, window: Window) -> bool:
        return window.status is WindowStatus.CLOSED or change(self, item, window)

    return patch.object(DigestRows, "change", stays_open)


def test_rule_09_a_window_is_closed_before_its_members_are_read() -> None:
    held(a_run_arrives_between_the_reading_and_the_end_of_the_leader, reads_an_open_window())


# Leadership passes by condition on the window's row


def two_followers_find_the_leader_gone_at_once() -> bool:
    """The news of the leader's end is lost. Both look at the same moment, and both read before either writes."""
    with patch.object(Digests, "leave", lambda self, graph, state, command, mark: ()):
        meeting = Meeting("90s")
        first, *_ = meeting.arrive(), meeting.arrive(), meeting.arrive()
        meeting.control(first, "cancel")
        meeting.work()
    for actor in meeting.world.coordinators:
        actor.restart()
    judge, once = Digests._leader, [True]

    def meanwhile(self: Digests, window: Window) -> Leader:
        how = judge(self, window)
        if how is Leader.GONE and once:
            once.pop()
            meeting.world.coordinators[1].deliver(1)
        return how

    with patch.object(Digests, "_leader", meanwhile):
        meeting.world.clock.advance(MINUTE)
        meeting.world.timer.step()
        while meeting.world.coordinators[0].deliver(1):
            pass
    assert not once
    meeting.rest()
    return len(meeting.batches()) == 1 and sorted(meeting.statuses) == ["cancelled", "completed", "merged"]


@contextmanager
def leads_who_was_told() -> Iterator[None]:
    """The last writer of a window's row wins, and a leader does not look once more before it takes the batch."""

    def change(self: DigestRows, item: Item, window: Window) -> bool:
        body = msgspec.json.encode(window)
        row = msgspec.structs.replace(item, version=item.version + 1, body=body)
        return self._table.write((Put(row, Expect.ANY),)) is None

    def close(self: Digests, state: RunState, who: Who) -> list[Intent]:
        seat = self._rows.seat(who)
        assert seat is not None
        return [self._told(who, IntentKind.DIGEST_CLOSED, {"into": ""}, self._batch(seat))]

    with patch.object(DigestRows, "change", change), patch.object(Digests, "_close", close):
        yield


def test_rule_09_of_two_that_find_the_leader_gone_one_leads() -> None:
    held(two_followers_find_the_leader_gone_at_once, leads_who_was_told())


def a_leader_is_paused() -> bool:
    meeting = Meeting("10s")
    first, second = meeting.arrive(), meeting.arrive()
    meeting.control(first, "pause")
    meeting.work()
    meeting.wait(10_000)
    in_time = meeting.world.state(second).status.value == "completed"
    meeting.control(first, "resume")
    meeting.rest()
    return (
        in_time and meeting.batches() == [["0", "1"]] and meeting.statuses == ["merged", "completed"] and meeting.sound
    )


def test_rule_09_a_paused_leader_hands_the_lead_on() -> None:
    held(a_leader_is_paused, patch.object(Digests, "pass_on", lambda self, graph, state, command, mark: ()))


# From the closing on, the lead passes only when the leader's own header shows that its step ended without the batch


def a_leader_stalls_with_its_batch_on_the_way() -> bool:
    meeting = Meeting()
    first, second = meeting.arrive(), meeting.arrive()
    meeting.world.clock.advance(MINUTE)
    meeting.world.timer.step()
    meeting.world.coordinators[0].deliver(10)
    meeting.world.damage(first)
    for _ in range(30):
        meeting.wait(MINUTE)
    waits = meeting.world.state(second).status.value == "running"
    meeting.world.mend()
    meeting.control(first, "redrive")
    meeting.rest()
    return waits and meeting.ended([["0", "1"]], "completed", "merged")


def test_rule_09_a_closed_window_stays_with_a_leader_whose_end_nobody_can_see() -> None:
    held(a_leader_stalls_with_its_batch_on_the_way, patch.object(Window, "undecided", property(lambda self: True)))


def test_rule_09_an_open_window_passes_from_a_stalled_leader() -> None:
    meeting = Meeting()
    first, second = meeting.arrive(), meeting.arrive()
    meeting.world.damage(first)
    for _ in range(10):
        meeting.wait(MINUTE)
    assert meeting.batch(second) == ["0", "1"]
    meeting.world.mend()
    meeting.control(first, "redrive")
    meeting.rest()
    assert meeting.statuses == ["merged", "completed"]
    assert meeting.sound


def test_rule_09_a_leader_that_ends_with_its_batch_on_the_way_is_followed() -> None:
    meeting = Meeting()
    first, *_ = meeting.arrive(), meeting.arrive(), meeting.arrive()
    meeting.world.clock.advance(MINUTE)
    meeting.world.timer.step()
    meeting.world.coordinators[0].deliver(10)
    meeting.control(first, "terminate")
    intents = meeting.world.intents
    received = intents.receive(10, visibility_ms=1_000)
    told = [message.receipt for message in received if b"digest_closed" in message.body]
    assert told
    intents.ack(told)
    intents.retry([message.receipt for message in received if message.receipt not in told], delay_ms=0)
    meeting.rest()
    assert meeting.ended([["1", "2"]], "terminated", "completed", "merged")


# Rule 2 for digests: a run reads the other side, and finds what it was not told


def lost(meeting: Meeting, kind: bytes) -> bool:
    """Every message of a kind that is on its way is lost; whether there was one."""
    received = meeting.world.intents.receive(100, visibility_ms=1_000)
    gone = [message.receipt for message in received if kind in message.body]
    meeting.world.intents.ack(gone)
    meeting.world.intents.retry([one.receipt for one in received if one.receipt not in gone], delay_ms=0)
    return bool(gone)


def test_rule_02_a_run_that_was_not_told_of_its_part_finds_it() -> None:
    meeting = Meeting("10s")
    meeting.world.trigger(meeting.definition_id, {"n": 1})
    meeting.world.coordinators[0].deliver(10)
    assert lost(meeting, b"digest_arrival")
    meeting.wait(MINUTE)
    assert meeting.ended([["0"]], "completed")


def test_rule_02_a_run_that_was_not_told_that_it_is_merged_finds_it() -> None:
    meeting = Meeting()
    meeting.arrive()
    meeting.arrive()
    meeting.world.clock.advance(MINUTE)
    meeting.world.timer.step()
    while not lost(meeting, b'"into":"0'):
        assert meeting.world.coordinators[0].deliver(1)
    for _ in range(4):
        meeting.wait(MINUTE)
    assert meeting.ended([["0", "1"]], "completed", "merged")


# Nothing is lost and nothing doubled wherever a coordinator dies


class Deadly:
    """A table whose n-th write to a digest kills, before or after it has happened."""

    def __init__(self, world: World, passing: int, *, after: bool) -> None:
        self.left = passing
        self.after = after
        self._write = world.table.write

    def write(self, ops: Any) -> Any:
        deadly = any(_key(op).startswith("DG#") for op in ops)
        self.left -= deadly
        if deadly and self.left == 0 and not self.after:
            raise Crash("before a write")
        done = self._write(ops)
        if deadly and self.left == 0 and self.after:
            raise Crash("after a write")
        return done


def _key(op: Op) -> str:
    return op.item.pk if isinstance(op, Put) else op.pk


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("operation", ["", "pause", "cancel", "terminate"])
def test_rule_09_a_crash_at_any_write_loses_no_arrival(operation: str, *, after: bool) -> None:
    for passing in range(1, 12):
        meeting = Meeting()
        deadly = Deadly(meeting.world, passing, after=after)
        with patch.object(meeting.world.table, "write", deadly.write):
            first = meeting.arrive()
            meeting.arrive()
            if operation:
                meeting.control(first, operation)
            meeting.work()
            meeting.wait(MINUTE // 2)
            meeting.wait(MINUTE // 2)
        meeting.rest()
        if operation in ("cancel", "terminate"):
            assert meeting.batches() == [["1"]], passing
        else:
            assert meeting.batches() == [["0", "1"]], passing
        assert violations(meeting.world, final=True) == [], passing


@pytest.mark.parametrize(
    "point",
    ["coordinator.before_commit", "coordinator.after_commit", "coordinator.after_send", "coordinator.before_ack"],
)
def test_rule_09_a_crash_at_any_point_loses_no_arrival(point: str) -> None:
    for passing in range(1, 12):
        meeting = Meeting()
        meeting.world.chaos.crash_at(point, passing)
        for _ in range(3):
            meeting.arrive()
        meeting.wait(MINUTE)
        meeting.rest()
        assert sorted(number for batch in meeting.batches() for number in batch) == ["0", "1", "2"], passing
        assert violations(meeting.world, final=True) == [], passing
