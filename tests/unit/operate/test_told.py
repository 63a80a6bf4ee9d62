"""What operators are told of what they did: since when something is paused, and which request an entry is about."""

from __future__ import annotations

from tests.simulation.scene import Scene, action, edge, flow

from ductor.app.dispatch import intent_message
from ductor.app.presenting import waiting_on
from ductor.app.run_summary import run_waits_on
from ductor.model.intent import Intent, IntentKind
from ductor.model.transition import OperatorAudited


def audited(scene: Scene) -> list[OperatorAudited]:
    history = scene.world.history(scene.run_id)
    return [one for one in history if isinstance(one, OperatorAudited)]


def test_a_paused_run_waits_for_the_operator_since_the_pause() -> None:
    scene = Scene(flow(action("a")))
    scene.clock.advance(5_000)
    scene.control("pause")
    scene.deliver()
    shown = run_waits_on(scene.world.state(scene.run_id), {})
    assert shown is not None
    assert (shown.kind, shown.since, shown.deadline_at) == ("operator", scene.clock.now, None)


def test_a_paused_step_that_never_began_says_since_when() -> None:
    scene = Scene(flow(action("a"), action("b"), edge("a", "b")))
    scene.deliver()
    scene.clock.advance(5_000)
    held_at = scene.clock.now
    scene.world.control_node(scene.run_id, "b", "pause", "n")
    scene.deliver()
    scene.clock.advance(5_000)
    scene.work()
    scene.deliver()
    shown = waiting_on("b", None, scene.world.state(scene.run_id).root.nodes["b"])
    assert shown is not None
    assert (shown.kind, shown.since) == ("operator", held_at)


def test_a_repeated_request_is_audited_under_its_id_and_keeps_its_first_outcome() -> None:
    scene = Scene(flow(action("a")))
    scene.control("pause", "r1")
    scene.deliver()
    first = audited(scene)[0]
    again = Intent(
        id="again",
        run_id=scene.run_id,
        kind=IntentKind.PAUSE,
        request_id="r1",
        request_hash=first.request_hash,
    )
    other = Intent(
        id="other",
        run_id=scene.run_id,
        kind=IntentKind.RESUME,
        request_id="r1",
        request_hash="another",
    )
    for intent in (again, other):
        scene.world.intents.send([intent_message(intent, scene.world.ids)])
        scene.deliver()
    assert [(one.request_id, one.outcome, one.code) for one in audited(scene)] == [
        ("r1", "applied", ""),
        ("r1", "duplicate", "DUPLICATE"),
        ("r1", "rejected", "REQUEST_ID_REUSED"),
    ]
    assert scene.status == "paused"
