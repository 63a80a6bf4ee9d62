"""Runs that limit each other: who runs, who waits in which order, and what becomes of a slot whose holder dies."""

from __future__ import annotations

from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import msgspec
import pytest
from tests.simulation.family import POINTS, Family, act, boom, hold, sub
from tests.unit.app.refusal import refused

from ductor.adapters.local.blobs import SqliteBlobs
from ductor.adapters.local.database import Database
from ductor.adapters.local.fifo import SqliteFifoQueue
from ductor.adapters.local.system import SystemClock, SystemIds
from ductor.adapters.local.table import SqliteTable
from ductor.adapters.local.unit import SqliteUnit
from ductor.app.access import ALL_SCOPES, Caller
from ductor.app.admission import TriggerRequest
from ductor.app.library import Library, plan_item, row_item
from ductor.app.payloads import PayloadStore
from ductor.app.run_summary import run_waits_on
from ductor.app.slot_repair import SlotRepair
from ductor.app.slots import (
    HOLDER,
    SETTLE_MS,
    SLOT,
    WAITER,
    Count,
    Given,
    encode_row,
)
from ductor.app.trigger import Cause, Triggers
from ductor.model.definition import Definition, DefinitionRow
from ductor.model.enums import DefinitionStatus, RunStatus
from ductor.model.errors import ErrorCode, RefusedError
from ductor.ports import Delete, Put, QueueName


class Crowd(Family):
    """Runs of one definition under a rule. Each works until `free` lets one go."""

    def __init__(self, on_limit: str = "queue", limit: int = 1, key: str = '"k"', **fields: Any) -> None:
        super().__init__()
        rule = {"key": key, "limit": limit, "on_limit": on_limit}
        self.add("busy", hold("work"), concurrency=rule, **fields)
        self.all: list[str] = []

    def come(self, value: Any = None, key: str | None = None) -> str:
        """One more run."""
        run_id = self.world.trigger(self.ids["busy"], value, key)
        self.all.append(run_id)
        self.work(4)
        return run_id

    def statuses(self) -> list[str]:
        """In the order in which they came."""
        return [self.state(run_id).status.value for run_id in self.all]

    def end(self, run_id: str) -> None:
        """A run comes to its end: the step is resolved by hand."""
        self.world.control(run_id, "terminate", f"end-{run_id}")
        self.work(6)

    def rows(self, prefix: str) -> list[str]:
        return [row.sk for row in self.world.table.rows() if row.pk.startswith("CS#") and row.sk.startswith(prefix)]

    def nobody_left(self) -> None:
        self.rest()
        assert (self.rows(HOLDER), self.rows(WAITER)) == ([], [])


def test_those_who_wait_start_in_the_order_in_which_they_came() -> None:
    crowd = Crowd()
    for _ in range(4):
        crowd.come()
    assert crowd.statuses() == ["running", "pending", "pending", "pending"]
    for place in range(3):
        crowd.end(crowd.all[place])
        assert crowd.statuses()[place + 1 :] == ["running", *["pending"] * (2 - place)]
    crowd.nobody_left()


def test_a_run_in_line_says_what_it_waits_for_and_its_time_limit_does_not_run() -> None:
    crowd = Crowd(run_timeout_ms=3_000_000)
    crowd.come()
    waiting = crowd.state(crowd.come())
    shown = run_waits_on(waiting, {})
    assert shown is not None
    assert (shown.kind, shown.detail, shown.deadline_at) == ("concurrency", "a free slot for k", None)
    assert shown.since > 0
    assert waiting.deadline == 0


def test_every_key_has_slots_of_its_own() -> None:
    crowd = Crowd(limit=2, key="TRIGGER.payload.customer")
    for customer in ("a", "a", "a", "b", "b", "b"):
        crowd.come({"customer": customer})
    assert crowd.statuses() == ["running", "running", "pending"] * 2
    crowd.nobody_left()


def test_drop_refuses_and_lets_in_again_when_somebody_has_left() -> None:
    crowd = Crowd("drop")
    first = crowd.come(key="one")
    with refused(ErrorCode.FAILED_PRECONDITION, "CONCURRENCY_LIMIT", field="definition_id"):
        crowd.world.trigger(crowd.ids["busy"])
    assert crowd.world.trigger(crowd.ids["busy"], None, "one") == first
    assert crowd.world.run_ids() == [first]
    crowd.end(first)
    crowd.come()
    assert crowd.statuses() == ["terminated", "running"]


def test_the_newest_cancels_the_oldest_also_one_in_line() -> None:
    crowd = Crowd("cancel_oldest", limit=2)
    for _ in range(5):
        crowd.come()
    crowd.work()
    assert crowd.statuses() == ["cancelled", "cancelled", "cancelled", "running", "running"]
    reasons = [crowd.state(run_id).reason for run_id in crowd.all[:3]]
    assert all("superseded by run" in reason for reason in reasons)
    crowd.nobody_left()


@pytest.mark.parametrize("control", ["cancel", "terminate"])
def test_a_run_in_line_can_be_ended_and_is_passed_over(control: str) -> None:
    crowd = Crowd()
    first, second, third = crowd.come(), crowd.come(), crowd.come()
    crowd.world.control(second, control, "no")
    crowd.work(6)
    crowd.end(first)
    assert crowd.statuses() == ["terminated", "cancelled" if control == "cancel" else "terminated", "running"]
    assert crowd.state(second).started_at == 0
    assert crowd.state(third).slot.held  # type: ignore[union-attr]
    crowd.nobody_left()


def test_a_paused_run_steps_out_of_the_line_and_has_its_place_again() -> None:
    crowd = Crowd()
    first, second, third, fourth = (crowd.come() for _ in range(4))
    crowd.world.control(second, "pause", "p")
    crowd.work(6)
    crowd.end(first)
    assert crowd.statuses() == ["terminated", "paused", "running", "pending"]
    crowd.world.control(second, "resume", "r")
    crowd.work(6)
    assert crowd.statuses() == ["terminated", "pending", "running", "pending"]
    crowd.end(third)
    assert crowd.statuses() == ["terminated", "running", "terminated", "pending"]
    assert crowd.state(fourth).slot.awaited  # type: ignore[union-attr]
    crowd.nobody_left()


def test_a_paused_run_keeps_the_slot_that_it_has() -> None:
    crowd = Crowd()
    first = crowd.come()
    crowd.world.control(first, "pause", "p")
    crowd.work(6)
    crowd.come()
    assert crowd.statuses() == ["paused", "pending"]
    crowd.world.control(first, "resume", "r")
    crowd.nobody_left()


def test_a_redriven_run_waits_behind_those_who_have_come_since() -> None:
    family = Family()
    rule = {"key": '"k"', "limit": 1, "on_limit": "queue"}
    family.add("flaky", hold("first"), boom("then"), concurrency=rule)
    one = family.world.trigger(family.ids["flaky"])
    family.rest()
    two, three = (family.world.trigger(family.ids["flaky"]) for _ in range(2))
    family.work(6)
    family.world.control(one, "redrive", "again")
    family.work(6)
    states = [family.state(run_id) for run_id in (one, two, three)]
    assert [state.status.value for state in states] == ["pending", "running", "pending"]
    assert states[0].slot is not None
    assert states[0].slot.lease == 2
    family.rest()


def test_a_successor_has_the_slot_of_the_run_that_it_goes_on_for() -> None:
    crowd = Crowd()
    first, second = crowd.come(), crowd.come()
    crowd.world.continue_as_new(first, "continueAsNew", "b")
    crowd.work(8)
    (heir,) = [run_id for run_id in crowd.world.run_ids() if run_id not in (first, second)]
    assert crowd.state(heir).status is RunStatus.RUNNING
    assert crowd.state(second).status is RunStatus.PENDING
    crowd.nobody_left()


def test_a_fork_waits_for_its_turn() -> None:
    crowd = Crowd()
    first = crowd.come()
    fork = crowd.world.reset(first, 0, "fork")
    crowd.work(6)
    assert crowd.state(fork).status is RunStatus.PENDING
    crowd.end(first)
    assert crowd.state(fork).status is RunStatus.RUNNING
    crowd.nobody_left()


@pytest.mark.parametrize("rule", ["queue", "drop"])
def test_children_stand_in_the_same_line(rule: str) -> None:
    crowd = Crowd(rule)
    crowd.add("parent", sub("child", "busy"))
    crowd.come()
    crowd.start("parent")
    crowd.work(10)
    children = [state for state in crowd.runs("busy") if state.origin.parent_run_id]
    if rule == "queue":
        assert [child.status for child in children] == [RunStatus.PENDING]
    else:
        assert children == []
        error = crowd.state().root.nodes["child"].error
        assert error is not None
        assert error.code == "CONCURRENCY_LIMIT"
    crowd.rest()


def test_a_key_without_a_value_is_refused_at_the_door() -> None:
    crowd = Crowd(key="TRIGGER.payload.nope")
    with refused(ErrorCode.INVALID_ARGUMENT, "EXPRESSION_ERROR", field="concurrency.key"):
        crowd.come({})
    assert crowd.world.run_ids() == []


@pytest.mark.parametrize("on_limit", ["queue", "drop", "cancel_oldest"])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("passing", [1, 3, 6])
def test_rule_10_a_coordinator_that_dies_anywhere_neither_leaks_nor_doubles_a_slot(
    on_limit: str, point: str, passing: int
) -> None:
    crowd = Crowd(on_limit)
    crowd.world.chaos.crash_at(point, passing)
    for _ in range(3):
        try:
            crowd.come()
        except RefusedError:
            assert on_limit == "drop"
    crowd.world.control(crowd.all[-1], "terminate", "end")
    crowd.work(20)
    crowd.nobody_left()
    assert crowd.world.crowd.faults == []


def test_rule_10_the_sweeper_frees_the_slot_of_a_run_that_ended_and_did_not_say_so() -> None:
    crowd = Crowd("drop")
    first = crowd.come()
    (sk,) = crowd.rows(HOLDER)
    kept = next(row for row in crowd.world.table.rows() if row.sk == sk)
    count = next(row for row in crowd.world.table.rows() if row.sk == SLOT)
    crowd.end(first)
    assert crowd.rows(HOLDER) == []
    crowd.world.table.write([Put(kept), Put(msgspec.structs.replace(count, version=count.version + 5))])
    with refused(ErrorCode.FAILED_PRECONDITION, "CONCURRENCY_LIMIT"):
        crowd.world.trigger(crowd.ids["busy"])
    crowd.world.clock.advance(120_000)
    crowd.world.sweeper.sweep()
    crowd.come()
    assert crowd.statuses() == ["terminated", "running"]


def test_a_slot_that_leaked_is_freed_however_many_come_and_go_meanwhile() -> None:
    crowd = Crowd("drop", limit=2)
    gone = crowd.come()
    (sk,) = crowd.rows(HOLDER)
    kept = next(row for row in crowd.world.table.rows() if row.sk == sk)
    crowd.end(gone)
    count = next(row for row in crowd.world.table.rows() if row.sk == SLOT)
    crowd.world.table.write([Put(kept), Put(msgspec.structs.replace(count, body=encode_row(Count(1))))])
    for _ in range(6):
        crowd.end(crowd.come())
        crowd.world.clock.advance(30_000)
        crowd.world.sweeper.sweep()
    assert crowd.rows(HOLDER) == []


def test_of_many_in_line_who_come_to_look_one_does_when_it_is_time() -> None:
    crowd = Crowd()
    for _ in range(5):
        crowd.come()
    table, clock = crowd.world.table, crowd.world.clock
    (pk,) = {row.pk for row in table.rows() if row.sk == SLOT}
    looks: list[int] = []

    class Counting(SlotRepair):
        def _holders(self, pk: str, settled: bool) -> list[Given]:
            looks.append(clock.now_ms())
            return super()._holders(pk, settled)

    clock.advance(SETTLE_MS)
    for place in range(5):
        Counting(table, clock).look(pk, f"look-{place}")
    assert len(looks) == 1


@pytest.mark.parametrize(("on_limit", "accepted"), [("drop", 5), ("queue", 30)])
def test_rule_10_of_thirty_triggers_at_once_no_more_get_a_slot_than_there_are(
    tmp_path: Path, on_limit: str, accepted: int
) -> None:
    database, clock, ids = Database(tmp_path / "ductor.db"), SystemClock(), SystemIds()
    table = SqliteTable(database)
    definition = Definition(
        family_slug="busy", steps=(act("a"),), concurrency={"key": '"k"', "limit": 5, "on_limit": on_limit}
    )
    row = DefinitionRow(
        id="d", tenant="t", family_slug="busy", status=DefinitionStatus.PUBLISHED, version=1, document={}
    )
    table.write([Put(row_item(row, 1)), Put(plan_item("t", "d", definition))])
    triggers = Triggers(
        table=table,
        payloads=PayloadStore(table, SqliteBlobs(database)),
        intents=SqliteFifoQueue(database, QueueName.INTENTS, clock),
        unit=SqliteUnit(database),
        clock=clock,
        ids=ids,
        library=Library(table),
    )
    caller, barrier = Caller("key", "t", frozenset(ALL_SCOPES)), Barrier(30)
    answers: list[str] = []

    def ask() -> None:
        barrier.wait()
        try:
            answers.append(triggers.trigger(caller, "d", TriggerRequest()).status.value)
        except RefusedError as fault:
            answers.append(fault.violations[0].code)

    threads = [Thread(target=ask) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    database.close()
    assert answers.count("running") == 5
    rest = "CONCURRENCY_LIMIT" if on_limit == "drop" else "pending"
    assert answers.count(rest) == 25
    assert len([answer for answer in answers if answer != "CONCURRENCY_LIMIT"]) == accepted


@pytest.mark.parametrize("rule", ["queue", "drop"])
def test_runs_that_no_caller_starts_stand_in_the_same_line(rule: str) -> None:
    crowd = Crowd(rule)
    crowd.come()
    causes = [Cause(run_id="by-event", event={"event_name": "e"}), Cause(run_id="by-schedule", scheduled_at=1)]
    for cause in causes:
        if rule == "drop":
            with refused(ErrorCode.FAILED_PRECONDITION, "CONCURRENCY_LIMIT"):
                crowd.world.triggers.start("t", crowd.ids["busy"], TriggerRequest(), cause)
        else:
            admitted = crowd.world.triggers.start("t", crowd.ids["busy"], TriggerRequest(), cause)
            assert admitted.status is RunStatus.PENDING
    assert len(crowd.world.run_ids()) == (1 if rule == "drop" else 3)
    crowd.nobody_left()


def test_the_slot_of_a_run_that_is_not_there_at_all_is_free_in_the_end() -> None:
    crowd = Crowd("drop")
    first = crowd.come()
    crowd.world.table.write([Delete(f"R#{first}", "HEAD")])
    for _ in range(8):
        crowd.world.clock.advance(3_600_000)
        crowd.world.sweeper.sweep()
    assert (crowd.rows(HOLDER), crowd.world.crowd.miscounted(crowd.world.table)) == ([], [])


def test_a_run_that_asks_after_those_that_came_later_is_superseded_all_the_same() -> None:
    crowd = Crowd("cancel_oldest")
    first = crowd.world.trigger(crowd.ids["busy"])
    crowd.world.clock.advance(1)
    late = crowd.world.trigger(crowd.ids["busy"])
    crowd.world.clock.advance(1)
    newest = crowd.world.trigger(crowd.ids["busy"])
    crowd.all = [first, late, newest]
    crowd.work(3)
    crowd.work(20)
    assert crowd.statuses() == ["cancelled", "cancelled", "running"]
    crowd.nobody_left()
