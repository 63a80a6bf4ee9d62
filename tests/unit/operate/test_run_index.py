"""Runs found by label and by visibility attribute, and paging while runs come and change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
import pytest
from tests.simulation.family import Family, act, boom, sub
from tests.simulation.scene import Scene, action, edge, flow

from ductor.app.admission import Label, TriggerRequest
from ductor.app.commit import Committer, EngineFaultError
from ductor.app.headers import HEAD, run_pk, shard, sort_time, starting_pk, wake_pk
from ductor.app.run_filter import RunFilter, read_filter
from ductor.app.run_list import MAX_SCANNED, find_runs
from ductor.app.sweeper import OVERDUE_MS
from ductor.app.trigger import START_WAKE_MS, Cause
from ductor.engine.graph import Graph
from ductor.model.definition import Effects
from ductor.model.run import RunState
from ductor.ports import Conflict, Item, Op, Put
from ductor.testing.chaos import Crash
from ductor.testing.world import TENANT, World

REGION = flow(
    action("a", effects=Effects(visibility={"region": '"north"', "size": "2"})),
    action("b", effects=Effects(visibility={"region": '"south"'})),
    edge("a", "b"),
)


def found(world: World, **query: str) -> list[str]:
    wanted = read_filter([(name.replace("__", "."), value) for name, value in query.items()], world.clock.now)
    return [state.run_id for _, state in find_runs(world.table, TENANT, wanted, None, None).items]


def test_a_run_is_found_by_what_it_says_of_itself_now() -> None:
    scene = Scene(REGION)
    scene.deliver()
    scene.work()
    scene.deliver()
    assert found(scene.world, attr__region="north") == [scene.run_id]
    scene.settle()
    assert found(scene.world, attr__region="north") == []
    assert found(scene.world, attr__region="south") == found(scene.world, attr__size="2") == [scene.run_id]
    assert found(scene.world, attr__region="south", attr__size="3") == []


def test_a_commit_that_died_leaves_nothing_that_is_found() -> None:
    scene = Scene(REGION)
    scene.deliver()
    scene.work()
    scene.crash("coordinator.before_commit")
    assert found(scene.world, attr__region="north") == []
    scene.settle()
    assert found(scene.world, attr__region="south") == [scene.run_id]


def test_pages_hold_every_run_once_while_runs_come_and_end() -> None:
    world = World(1)
    definition_id = world.publish(flow(action("a")))
    runs = []
    for _ in range(7):
        runs.append(world.trigger(definition_id))
        world.clock.advance(10)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = find_runs(world.table, TENANT, RunFilter(), 2, cursor)
        seen += [state.run_id for _, state in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
        world.trigger(definition_id)
        world.clock.advance(10)
        for coordinator in world.coordinators:
            coordinator.deliver(10)
    assert seen == runs[::-1]


def test_runs_are_in_the_lists_by_status_before_their_first_tick_too() -> None:
    world = World(1)
    definition_id = world.publish(flow(action("a")))
    runs: list[str] = []
    for number in range(6):
        runs.insert(0, world.trigger(definition_id))
        world.clock.advance(10)
        if number == 2:
            for _ in range(3):
                world.coordinators[0].deliver(1)
    assert found(world, status="pending") == found(world, status="pending", workflow_type="flow") == runs[:3]
    assert found(world, status="running") == runs[3:]
    assert found(world, active_only="true") == runs
    wanted, cursor, seen = RunFilter(active_only=True), None, []
    for _ in range(3):
        page = find_runs(world.table, TENANT, wanted, 2, cursor)
        seen += [state.run_id for _, state in page.items]
        cursor = page.next_cursor
    assert (seen, cursor) == (runs, None)
    assert find_runs(world.table, "other", wanted, None, None).items == ()


def test_a_long_backlog_of_others_bounds_the_search_for_runs_before_their_first_tick() -> None:
    world = World(1)
    definition_id = world.publish(flow(action("a")))
    mine = world.trigger(definition_id)
    number = shard(mine)
    for place in range(MAX_SCANNED):
        sort = f"{sort_time(world.clock.now + place)}#r{place}"
        world.table.write((Put(Item(pk=f"R#r{place}", sk=HEAD, i3=(starting_pk(number), f"{sort}#other"))),))
    assert found(world, status="pending") == []
    assert found(world) == [mine]
    world.coordinators[0].deliver(1)
    assert found(world, status="running") == [mine]


def test_completed_runs_are_listed_whether_or_not_they_have_an_entry_by_status() -> None:
    """Rows of earlier releases have one."""
    scene = Scene(flow(action("a")))
    scene.settle()
    assert found(scene.world, status="completed") == [scene.run_id]
    item = scene.world.table.get(run_pk(scene.run_id), HEAD)
    assert item is not None
    assert item.i1 is None
    assert item.i2 is not None
    old = msgspec.structs.replace(item, i1=(f"RS#{TENANT}#completed#{shard(scene.run_id)}", item.i2[1]))
    scene.world.table.write((Put(old),))
    assert found(scene.world, status="completed") == [scene.run_id]
    assert found(scene.world, active_only="true") == []


def test_a_run_that_earlier_releases_admitted_is_listed_and_started() -> None:
    scene = Scene(flow(action("a")))
    item = scene.world.table.get(run_pk(scene.run_id), HEAD)
    assert item is not None
    assert item.i2 is not None
    number = shard(scene.run_id)
    wake = wake_pk(number), f"{sort_time(scene.clock.now + START_WAKE_MS)}#{scene.run_id}"
    old = msgspec.structs.replace(item, i1=(f"RS#{TENANT}#pending#{number}", item.i2[1]), i3=wake)
    scene.world.table.write((Put(old),))
    assert found(scene.world, status="pending") == [scene.run_id]
    scene.world.intents.ack([message.receipt for message in scene.world.intents.receive(10, visibility_ms=1)])
    scene.clock.advance(START_WAKE_MS + OVERDUE_MS + 1)
    assert scene.world.sweeper.sweep() == 1
    scene.settle()
    assert found(scene.world, status="completed") == [scene.run_id]


def test_the_first_commit_writes_again_what_finds_the_run_only_if_the_trigger_may_not_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(1)
    definition_id = world.publish(flow(action("a")))
    write, entered = world._table.write, Counter[str]()

    def noted(ops: Sequence[Op]) -> Conflict | None:
        for op in ops:
            if isinstance(op, Put) and op.item.pk.startswith("RO#"):
                entered[op.item.sk] += 1
                if entered.total() == 1:
                    raise Crash("the trigger dies")
        return write(ops)

    monkeypatch.setattr(world._table, "write", noted)
    with pytest.raises(Crash):
        world.trigger(definition_id)
    world.trigger(definition_id)
    world.coordinators[0].deliver(10)
    world.clock.advance(START_WAKE_MS + OVERDUE_MS + 1)
    assert world.sweeper.sweep() >= 1
    world.coordinators[0].deliver(10)
    assert len(found(world, workflow_type="flow")) == 2
    assert sorted(entered.values()) == [1, 2]  # one by its trigger; one by a trigger that died, and by its first commit


def test_a_run_that_stalled_in_its_first_tick_is_found_when_it_goes_on() -> None:
    family = Family()
    family.add("in-ner", act("only"))
    family.add("outer", sub("child", "in-ner"))
    family.start("outer")
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(Committer, "graph", fails_for("in-ner"))
        family.work(20)
    (child,) = family.runs("in-ner")
    assert family.world.stalled(child.run_id)
    family.world.control(child.run_id, "redrive", "r")
    family.rest()
    assert found(family.world, parent_run_id=family.root) == found(family.world, workflow_type="in-ner")
    assert found(family.world, parent_run_id=family.root) == [child.run_id]


def fails_for(slug: str) -> Callable[[Committer, RunState], Graph]:
    graph = Committer.graph

    def failing(committer: Committer, state: RunState) -> Graph:
        if state.origin.family_slug == slug:
            raise EngineFaultError("does not compile")
        return graph(committer, state)

    return failing


def tree() -> tuple[Family, dict[str, str]]:
    """A run with a child, its fork, and a run of another family about the same subject."""
    family = Family()
    family.add("in-ner", act("only"))
    family.add("outer", sub("child", "in-ner"), boom("late"))
    family.start("outer")
    family.rest()
    root, inner = family.root, family.one("in-ner").run_id
    fork = family.world.reset(root, 0, "f")
    family.rest()
    request = TriggerRequest(subject_type="order", subject_id="s-1", correlation_labels=(Label("order", "O-77"),))
    other = family.world.triggers.trigger(family.world.caller, family.ids["in-ner"], request).run_id
    family.rest()
    forked = next(run.run_id for run in family.runs("in-ner") if run.origin.root_run_id == fork)
    return family, {"root": root, "inner": inner, "fork": fork, "forked": forked, "other": other}


def test_a_run_is_found_by_where_it_comes_from() -> None:
    family, ids = tree()

    def named(**query: str) -> set[str]:
        known = {run_id: name for name, run_id in ids.items()}
        return {known[run_id] for run_id in found(family.world, **query)}

    assert named() == {"root", "inner", "fork", "forked", "other"}
    assert named(workflow_type="in_ner") == {"inner", "forked", "other"}
    assert named(root_run_id=ids["root"]) == {"root", "inner"}
    assert named(root_run_id=ids["fork"]) == {"fork", "forked"}
    assert named(journey_id=ids["root"]) == {"root", "inner", "fork", "forked"}
    assert named(parent_run_id=ids["fork"]) == {"forked"}
    assert named(journey_id=ids["root"], workflow_type="in-ner") == {"inner", "forked"}
    assert named(subject_id="s-1") == named(subject_type="order") == named(q="o-77") == {"other"}
    assert named(subject_id="s-1", subject_type="person") == set()
    assert named(q=ids["inner"][:23].upper()) >= {"inner"}
    assert named(workflow_type="outer", status="failed") == {"root", "fork"}
    assert named(workflow_type="in_ner", status="failed") == set()
    assert named(definition_id=family.ids["outer"]) == {"root", "fork"}
    assert named(environment="nowhere") == named(schedule="outer") == named(root_run_id="nope") == set()


def test_a_family_that_failed_and_was_redriven_is_found_by_what_it_is_now() -> None:
    family = Family()
    family.add("flaky", act("a", "double.fail_n", args={"n": 1, "v": 1}))
    family.start("flaky")
    family.rest()
    assert found(family.world, workflow_type="flaky", status="failed") == [family.root]
    family.world.control(family.root, "redrive", "r")
    family.rest()
    assert found(family.world, workflow_type="flaky", status="failed") == []
    assert found(family.world, workflow_type="flaky", status="completed") == [family.root]


def test_another_tenants_root_is_nobodys() -> None:
    family, ids = tree()
    wanted = RunFilter(root_run_id=ids["root"])
    assert find_runs(family.world.table, "other", wanted, None, None).items == ()


def test_the_runs_of_a_schedule_are_found_apart_from_others_of_the_family() -> None:
    world = World(1)
    definition_id = world.publish(flow(action("a")))
    world.trigger(definition_id)
    cause = Cause(run_id="by-schedule", scheduled_at=world.clock.now, by="schedule")
    world.triggers.start(TENANT, definition_id, TriggerRequest(), cause)
    assert found(world, schedule="flow") == ["by-schedule"]
    assert len(found(world, workflow_type="flow")) == 2
