"""Runs that continue as new: context, lineage, waiting parents, late intents, with a crash at every fault point."""

from __future__ import annotations

import pytest
from tests.simulation.family import POINTS, Family, act, hold, nest, sub

from ductor.app.successors import Continuations
from ductor.model.enums import RunStatus
from ductor.model.errors import RefusedError
from ductor.testing.memory import NullUnit


def continuations(family: Family) -> Continuations:
    world = family.world
    return Continuations(
        table=world.table,
        payloads=world.payloads,
        intents=world.intents,
        unit=NullUnit(),
        clock=world.clock,
        ids=world.ids,
    )


def test_a_run_continues_as_new_with_its_context() -> None:
    family = Family()
    family.add("loop", hold(), act("a", args={"v": "${{ CONTEXT.n }}"}))
    family.start("loop", {"x": 1})
    family.work()
    done = continuations(family).send(family.world.caller, family.root, "r1", "on", {"n": 5})
    again = continuations(family).send(family.world.caller, family.root, "r1", "on", {"n": 5})
    family.rest()
    assert again.new_run_id == done.new_run_id
    assert family.state().status is RunStatus.CONTINUED_AS_NEW
    successor = family.state(done.new_run_id)
    assert successor.status is RunStatus.COMPLETED
    assert family.world.output(done.new_run_id, "a")["v"] == 5
    assert successor.origin.source_run_id == family.root
    assert successor.origin.root_run_id == family.root
    assert family.world.value(done.new_run_id, successor.origin.input) == {"x": 1}


def test_a_waiting_parent_follows_the_successor_of_its_child() -> None:
    family = Family()
    family.add("leaf", hold(), act("a"), output={"v": "${{ CONTEXT.n }}"})
    family.add("root", sub("c", "leaf"))
    family.start("root")
    family.work()
    continuations(family).send(family.world.caller, family.one("leaf").run_id, "r1", "", {"n": 9})
    family.rest()
    assert family.state().status is RunStatus.COMPLETED
    assert family.world.output(family.root, "c") == {"v": 9}


def test_cancelling_a_parent_reaches_the_successor_of_its_child() -> None:
    family = nest(2)
    family.work()
    child = family.one("level0").run_id
    done = continuations(family).send(family.world.caller, child, "r1")
    family.work()
    family.world.control(family.root, "cancel", "stop")
    family.work()
    assert family.state(done.new_run_id).status is RunStatus.CANCELLED
    assert family.state().status is RunStatus.CANCELLED
    family.rest()


def test_a_run_with_a_live_child_continues_only_when_it_may_discard_it() -> None:

    family = nest(2)
    family.work()
    with pytest.raises(RefusedError) as refused:
        continuations(family).send(family.world.caller, family.root, "r1")
    assert refused.value.violations[0].code == "LIVE_ATTEMPTS"
    continuations(family).send(family.world.caller, family.root, "r2", discard_pending=True)
    family.work()
    assert family.state().status is RunStatus.CONTINUED_AS_NEW
    first = next(run for run in family.runs("level0") if run.origin.parent_run_id == family.root)
    assert first.status is RunStatus.CANCELLED
    family.rest()


def test_a_cancel_that_comes_too_late_goes_to_the_successor() -> None:
    family = Family()
    family.add("loop", hold())
    family.start("loop")
    family.work()
    done = continuations(family).send(family.world.caller, family.root, "r1")
    family.world.control(family.root, "cancel", "late")
    family.work()
    assert family.state().status is RunStatus.CONTINUED_AS_NEW
    assert family.state(done.new_run_id).status is RunStatus.CANCELLED
    family.rest()


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_at_any_point_of_the_move_loses_nothing(point: str) -> None:
    for passing in range(1, 16):
        family = Family()
        family.add("loop", hold(), act("a"))
        family.start("loop")
        family.work(10)
        family.world.chaos.crash_at(point, passing)
        done = continuations(family).send(family.world.caller, family.root, "r1", "", {"n": 1})
        family.work(30)
        family.rest()
        assert family.state().status is RunStatus.CONTINUED_AS_NEW
        assert family.state(done.new_run_id).status is RunStatus.COMPLETED
