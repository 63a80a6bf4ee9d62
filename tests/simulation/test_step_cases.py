"""What broke other engines' steps, as their users told it: events and waits, races, compensation, digests."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.simulation.family import Family, act, boom, hold, undo
from tests.simulation.scene import action, edge, flow, shape
from tests.simulation.test_scopes import gather, scatter, settled
from tests.unit.waits.gates import Gates, definition, note, person

from ductor.app.decisions import Resolve, Verdict
from ductor.model import transition as tr
from ductor.model.definition import Trigger
from ductor.model.enums import EdgeType, NodeStatus, RunStatus
from ductor.model.errors import RefusedError
from ductor.model.lineage import COMPENSATION
from ductor.model.waiting import Event
from ductor.testing.chaos import Crash
from ductor.testing.invariants import violations

OPERATOR = person("operator")


def wait(ref: str = "w", **args: Any) -> dict[str, Any]:
    return {"ref": ref, "type": "wait_event", "args": {"event_name": "order.paid", "correlation_key": "o-1", **args}}


def gate(**args: Any) -> dict[str, Any]:
    return {
        "ref": "gate",
        "type": "approval",
        "action": "approval",
        "args": {"audience": {"roles": ["operator"]}, **args},
    }


def publish(world: Gates, event_id: str = "e1", payload: Any = None) -> Any:
    event = Event(event_name="order.paid", event_id=event_id, correlation_key="o-1", payload=payload)
    done = world.events.publish(world.caller, event)
    world.settle()
    return done


# B18: an empty scatter


@pytest.mark.parametrize("kept", [True, False], ids=["after the gather", "from the beginning"])
def test_b18_a_fork_of_a_run_with_an_empty_scatter(*, kept: bool) -> None:
    parts = [scatter("s", "[]"), action("a"), gather("g"), shape("end", "size(STEPS.g.output.results)")]
    scene = settled(flow(*parts, edge("s", "a"), edge("a", "g"), edge("g", "end")))
    history = scene.world.history(scene.run_id)
    gathered = next(n for n, one in enumerate(history, 1) if isinstance(one, tr.NodeCompleted) and one.node == "g")
    fork = scene.world.reset(scene.run_id, gathered if kept else 0, "again")
    scene.settle()
    assert scene.world.state(fork).status is RunStatus.COMPLETED
    assert scene.world.output(fork, "end") == {"result": {"v": 0}}
    assert scene.faults == []


# B21: an event that comes before the wait


@pytest.mark.parametrize(("lookback", "status"), [(60_000, "completed"), (0, "running")])
def test_b21_the_event_that_starts_a_run_satisfies_its_wait_only_by_looking_back(lookback: int, status: str) -> None:
    world = Gates()
    waiting = definition(wait(lookback_ms=lookback))
    world.publish(msgspec.structs.replace(waiting, triggers=(Trigger(("order.paid",)),)))
    done = publish(world)
    (started,) = done.started_runs
    assert (done.matched, world.status(started)) == (0, status)
    again = publish(world, "e2")
    assert (again.matched, world.status(started)) == (int(not lookback), "completed")


# B28: decisions and events that come too late are refused with a code, and start nothing


@pytest.mark.parametrize("operation", ["approve", "reject", "resolve"])
@pytest.mark.parametrize("ended", ["completed", "cancelled", "terminated", "timed out step"])
def test_b28_what_comes_after_the_end_changes_nothing(operation: str, ended: str) -> None:
    world = Gates()
    limit: dict[str, Any] = {"timeout_ms": 1_000, "on_timeout": "skip"} if ended == "timed out step" else {}
    first = wait(**limit) if operation == "resolve" else gate(**limit)
    ref = str(first["ref"])
    run_id = world.started(first, note("n"), edges=((ref, "n", "done"),))
    if ended == "timed out step":
        world.wait(1_000)
    elif ended == "completed":
        decide(world, run_id, ref, operation, "first")
    else:
        world.control(run_id, "cancel" if ended == "cancelled" else "terminate", "c")
    world.settle()
    before = (world.status(run_id), world.statuses(run_id))
    code = ""
    try:
        decide(world, run_id, ref, operation, "late")
    except RefusedError as refused:
        code = refused.violations[0].code
    world.settle()
    late = [entry.code for entry in world.audit(run_id) if entry.request_id == "late"]
    assert code in ("NOT_WAITING", "RUN_TERMINAL", "NOT_REACHED") or late == ["ALREADY_DECIDED"]
    assert (world.status(run_id), world.statuses(run_id)) == before
    assert publish(world, "late").matched == 0


def decide(world: Gates, run_id: str, ref: str, operation: str, request_id: str) -> None:
    if operation == "resolve":
        world.decisions.resolve(OPERATOR, run_id, ref, Resolve(request_id=request_id))
        return
    send = world.decisions.approve if operation == "approve" else world.decisions.reject
    send(OPERATOR, run_id, ref, Verdict(request_id=request_id))


# B37: a race between an event and a timer


def racing(world: Gates) -> str:
    nap = {"ref": "nap", "type": "wait", "args": {"duration": "2s"}}
    win = {"ref": "win", "type": "race", "args": {}}
    edges = (("w", "win", "success"), ("nap", "win", "success"), ("win", "after", "success"))
    return world.started(wait(), nap, win, note("after"), edges=edges)


@pytest.mark.parametrize(("publishes", "winner", "loser"), [(True, "w", "nap"), (False, "nap", "w")])
def test_b37_an_event_races_a_timer(*, publishes: bool, winner: str, loser: str) -> None:
    world = Gates()
    run_id = racing(world)
    if publishes:
        assert publish(world).matched == 1
    world.wait(2_000)
    assert world.output(run_id, "win")["winner"] == winner
    assert world.statuses(run_id)[loser] == "cancelled"
    assert world.status(run_id) == "completed"
    assert publish(world, "late").matched == 0
    assert violations(world, final=True) == []


def test_b37_event_and_timer_in_the_same_tick_have_one_winner() -> None:
    world = Gates()
    run_id = racing(world)
    world.chaos.crash_at("events.after_claim")
    with pytest.raises(Crash):
        publish(world)
    world.clock.advance(2_000)
    world.timer.step()
    assert publish(world).matched == 1
    world.settle()
    statuses = world.statuses(run_id)
    assert sorted((statuses["w"], statuses["nap"])) == ["cancelled", "completed"]
    ended = [one for one in world.history(run_id) if isinstance(one, tr.NodeCompleted) and one.node == "after"]
    assert (len(ended), world.status(run_id)) == (1, "completed")
    assert violations(world, final=True) == []


# B38: compensation of what a scatter did, and a cancel that comes while it runs


def scattered() -> Family:
    """A; then three items, of which the second fails; B never runs."""
    family = Family()
    item = act("c", args={"v": "${{ ITEM }}"}, compensation=undo("c ${{ ITEM }}"))
    bad = boom("bad")
    first, last = act("a", compensation=undo("a")), act("b", compensation=undo("b"))
    steps = (first, scatter("s", "[1, 2, 3]"), item, bad, gather("g"), last)
    edges = (
        edge("a", "s"),
        edge("s", "c", condition="ITEM != 2"),
        edge("s", "bad", condition="ITEM == 2"),
        edge("c", "g"),
        edge("bad", "g"),
        edge("g", "b"),
    )
    family.add("saga", *steps, chain=False, edges=edges)
    family.start("saga")
    return family


def test_b38_each_successful_item_is_undone_once_and_before_what_came_before() -> None:
    family = scattered()
    family.rest()
    undone = [text for text in family.said() if str(text).startswith("undo")]
    assert sorted(undone[:-1]) == ["undo c 1", "undo c 3"]
    assert undone[-1] == "undo a"
    assert family.state().status is RunStatus.FAILED


def test_b38_a_cancelled_compensation_stops_and_the_run_stays_as_it_ended() -> None:
    family = Family()
    slow = undo("a")
    family.add("saga", act("a", compensation=slow), act("b", compensation=undo("b")), hold("h"), boom("bad"))
    family.start("saga")
    family.work()
    family.world.control(family.root, "cancel", "stop")
    while not family.runs("saga", COMPENSATION):
        family.round()
    compensation = family.one("saga", COMPENSATION).run_id
    family.world.control(compensation, "cancel", "enough")
    family.rest()
    assert family.state().status is RunStatus.CANCELLED
    assert family.state(compensation).status is RunStatus.CANCELLED
    assert family.said().count("undo b") <= 1
    assert not [run for run in family.runs("saga", COMPENSATION) if run.run_id != compensation]


def test_b38_a_failed_run_is_undone_by_one_run_however_often_its_end_is_told() -> None:
    family = Family()
    family.add("saga", act("a", compensation=undo("a")), boom("bad"))
    family.start("saga")
    family.rest()
    for _ in range(3):
        family.world.sweeper.sweep()
        family.rest()
    assert family.said().count("undo a") == 1
    entry = family.one("saga", COMPENSATION).root.nodes
    assert {node.status for node in entry.values()} == {NodeStatus.COMPLETED}


# B37, more: an edge after the race is taken once


def test_b37_what_follows_a_race_runs_once_although_the_loser_ends_too() -> None:
    parts = [action("fast"), action("slow", "slow", ms=3_000), action("after")]
    race = {"ref": "win", "type": "race"}
    scene = settled(
        flow(*parts, *_steps(race), edge("fast", "win"), edge("slow", "win"), edge("win", "after", EdgeType.DONE))
    )
    assert (scene.status, scene.effects("after")) == ("completed", 1)


def _steps(*documents: dict[str, Any]) -> tuple[Any, ...]:
    return definition(*documents).steps
