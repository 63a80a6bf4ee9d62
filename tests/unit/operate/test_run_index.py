"""Runs found by label and by visibility attribute, and paging while runs come and change."""

from __future__ import annotations

from tests.simulation.family import Family, act, boom, sub
from tests.simulation.scene import Scene, action, edge, flow

from ductor.app.admission import Label, TriggerRequest
from ductor.app.run_filter import RunFilter, read_filter
from ductor.app.run_list import find_runs
from ductor.app.trigger import Cause
from ductor.model.definition import Effects
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
