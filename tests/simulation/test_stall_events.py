"""A run that stalls tells so, once, whatever dies or is away; and when it goes on."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from tests.simulation.scene import Scene, action, edge, flow

from ductor.model.waiting import Event
from ductor.testing.chaos import Chances
from ductor.testing.invariants import violations


def about_stalls(scene: Scene) -> dict[str, Event]:
    """What the bus took of stalls and redrives, by id."""
    told = [telling.event for telling in scene.world.bus.told]
    return {one.event_id: one for one in told if one.event_name in ("ductor.run.stalled", "ductor.run.redriven")}


def names(scene: Scene) -> list[str]:
    return sorted(one.event_name.removeprefix("ductor.run.") for one in about_stalls(scene).values())


def broken(point: str = "") -> Scene:
    """A run on which the engine fails; the coordinator dies at `point` on the way."""
    scene = Scene(flow(action("a"), action("b"), edge("a", "b")))
    scene.deliver()
    scene.work()
    fails(scene, point)
    assert scene.world.stalled(scene.run_id)
    return scene


def fails(scene: Scene, point: str = "") -> None:
    with patch("ductor.app.commit.tick", side_effect=RuntimeError("a fault that comes back")):
        if point:
            scene.crash(point)
        while scene.deliver():
            pass


@pytest.mark.parametrize("point", ["", "coordinator.after_stall", "coordinator.before_ack"])
def test_a_stall_is_told_once_with_its_reason(point: str) -> None:
    scene = broken(point)
    for _ in range(2):
        scene.world.sweeper.sweep()
    (event,) = about_stalls(scene).values()
    assert event.event_name == "ductor.run.stalled"
    assert event.payload["run_id"] == scene.run_id
    assert event.payload["status"] == "running"
    assert event.payload["family_slug"] == "flow"
    assert "a fault that comes back" in str(event.payload["reason"])


@pytest.mark.parametrize("point", ["", "coordinator.after_replay", "coordinator.before_ack"])
def test_a_stalled_run_that_goes_on_is_told_under_an_id_of_that_stall(point: str) -> None:
    scene = broken()
    scene.control("redrive", "again")
    if point:
        scene.crash(point)
    scene.settle()
    scene.world.sweeper.sweep()
    assert scene.status == "completed"
    stalled, redriven = sorted(about_stalls(scene), key=lambda one: "redriven" in one)
    assert (stalled.replace("stalled", "redriven"), names(scene)) == (redriven, ["redriven", "stalled"])
    assert violations(scene.world, final=True) == []


def test_each_stall_of_a_run_is_told() -> None:
    scene = broken()
    scene.clock.advance(1)
    scene.control("redrive", "too-early")
    fails(scene)
    scene.world.sweeper.sweep()
    assert names(scene) == ["redriven", "stalled", "stalled"]


def test_a_stalled_run_that_is_ended_tells_its_end_and_no_redrive() -> None:
    scene = broken()
    scene.control("terminate", "enough")
    scene.settle()
    scene.world.sweeper.sweep()
    assert names(scene) == ["stalled"]
    assert "ductor.run.terminated" in [telling.event.event_name for telling in scene.world.bus.told]
    assert violations(scene.world, final=True) == []


def test_of_a_header_that_nobody_can_read_the_event_names_the_run() -> None:
    scene = Scene(flow(action("a")))
    scene.deliver()
    scene.work()
    scene.world.damage(scene.run_id)
    scene.deliver()
    scene.world.sweeper.sweep()
    (telling,) = [one for one in scene.world.bus.told if one.event.event_name == "ductor.run.stalled"]
    assert (telling.tenant, telling.event.payload["run_id"]) == (scene.world.caller.tenant, scene.run_id)


def test_a_bus_that_is_away_is_told_later() -> None:
    scene = broken()
    scene.world.chaos.on = True
    scene.world.chaos.chances = Chances(partial_send=1.0)
    scene.world.sweeper.sweep()
    assert names(scene) == []
    scene.world.chaos.on = False
    scene.world.sweeper.sweep()
    assert names(scene) == ["stalled"]
