"""A message that a slow coordinator brings once more, after later commits: it loses nothing that those asked for."""

from __future__ import annotations

from tests.simulation.scene import Scene, action, flow

from ductor.testing.actors import VISIBILITY_MS


def test_a_repeated_request_does_not_overwrite_what_the_last_commit_has_not_sent() -> None:
    scene = Scene(flow(action("a")))
    scene.deliver()
    scene.control("pause", "r1")
    slow = scene.world.intents.receive(10, visibility_ms=VISIBILITY_MS)
    scene.clock.advance(VISIBILITY_MS + 1)
    scene.deliver(coordinator=1)
    scene.control("resume", "r2")
    scene.crash("coordinator.after_commit", coordinator=1)
    scene.world.coordinators[0].coordinator.handle(slow)
    scene.settle()
    told = [telling.event.event_name for telling in scene.world.bus.told]
    assert sorted(set(told)) == [f"ductor.run.{name}" for name in ("completed", "paused", "resumed", "started")]
