"""A message that a slow coordinator brings once more, after later commits: it loses nothing that those asked for."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from tests.simulation.scene import Scene, action, flow, held, wait

from ductor.app.coordinator import Coordinator
from ductor.ports import Message
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


TWO_WAITS = flow(wait("first", "1m"), wait("second", "10m"))
EVENTS = ["ductor.run.completed", "ductor.run.paused", "ductor.run.resumed", "ductor.run.started"]


def told(scene: Scene) -> list[str]:
    """The names of the events about the run, each once."""
    return sorted({telling.event.event_name for telling in scene.world.bus.told})


def the_first_wait_ends(scene: Scene) -> tuple[Message, ...]:
    """Two coordinators get its wake-up, because the slower lets it come again; what the slower one holds."""
    scene.deliver()
    scene.clock.advance(60_000)
    scene.world.timer.step()
    slow = scene.world.intents.receive(10, visibility_ms=VISIBILITY_MS)
    assert slow
    scene.clock.advance(VISIBILITY_MS + 1)
    scene.deliver(coordinator=1)
    return slow


def a_commit_upon_one_that_was_not_sent() -> bool:
    """Whether all is told although a wake-up that was applied long ago overwrites the commit of an unsent pause."""
    scene = Scene(TWO_WAITS)
    slow = the_first_wait_ends(scene)
    scene.clock.advance(600_000)
    scene.control("pause", "r1")
    scene.crash("coordinator.after_commit", coordinator=1)
    before = scene.world.state(scene.run_id).version
    scene.world.coordinators[0].coordinator.handle(slow)
    assert scene.world.state(scene.run_id).version > before
    scene.deliver(coordinator=1)
    scene.control("resume", "r2")
    scene.settle()
    assert scene.status == "completed"
    return told(scene) == EVENTS


def test_what_an_overwritten_commit_had_to_tell_is_told_by_whoever_gets_its_intents_again() -> None:
    with_nobody = patch.object(Coordinator, "_make_up", lambda self, state, intents, lost: None)
    held(a_commit_upon_one_that_was_not_sent, with_nobody)


def a_race_lost_against_a_commit_that_was_not_sent() -> bool:
    """Whether all is told before the loser of a race commits upon what the winner has not sent."""
    scene = Scene(TWO_WAITS)
    slow = the_first_wait_ends(scene)
    scene.control("pause", "r1")
    scene.deliver(coordinator=1)
    scene.clock.advance(600_000)
    loser = scene.world.coordinators[0].coordinator
    commit = loser._committer.commit

    def overtaken(*args: Any, **rest: Any) -> Any:
        loser._committer.commit = commit  # type: ignore[method-assign]
        scene.control("resume", "r2")
        scene.crash("coordinator.after_commit", coordinator=1)
        return commit(*args, **rest)

    loser._committer.commit = overtaken  # type: ignore[method-assign]
    loser.handle(slow)
    return "ductor.run.resumed" in told(scene)


def test_the_loser_of_a_race_sends_what_the_winner_has_not() -> None:
    with_nobody = patch.object(Coordinator, "_make_up", lambda self, state, intents, lost: None)
    held(a_race_lost_against_a_commit_that_was_not_sent, with_nobody)
