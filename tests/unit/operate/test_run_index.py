"""Runs found by label and by visibility attribute, and paging while runs come and change."""

from __future__ import annotations

from tests.simulation.scene import Scene, action, edge, flow

from ductor.app.run_filter import RunFilter, read_filter
from ductor.app.run_list import find_runs
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
