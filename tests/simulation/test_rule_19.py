"""Rule 19: no resend storm. Resends wait for the queue, go on in portions, and a run has one nudge on its way."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import msgspec
import pytest
from tests.simulation.mutants import Mutant
from tests.simulation.scene import Scene, action, edge, flow, held, shape
from tests.simulation.test_scopes import gather, repeated, scatter

from ductor.app.resends import Resends
from ductor.engine.due import LOOKS_PER_TICK
from ductor.model import transition as tr
from ductor.model.attempt import AttemptTask
from ductor.model.intent import Intent, IntentKind
from ductor.model.payload import NULL
from ductor.ports import UnavailableError
from ductor.testing.actors import VISIBILITY_MS
from ductor.testing.chaos import Crash

MINUTE = 60_000
HOUR = 60 * MINUTE


def fanned_out(count: int) -> Scene:
    """A run whose items are all on the steps queue, with nobody who takes them."""
    scene = Scene(repeated(action("a")), list(range(count)))
    while scene.deliver():
        pass
    assert scene.tasks == count
    return scene


def passes(scene: Scene, ms: int) -> None:
    """Time goes by: wake-ups fire and coordinators work, workers do not."""
    until = scene.clock.now + ms
    while scene.clock.now < until:
        at = scene.world.timers.next_at()
        scene.clock.set(until if at is None else max(min(at, until), scene.clock.now))
        while scene.world.timer.step() or scene.deliver():
            pass


def works_off(scene: Scene) -> None:
    """The workers are there again: until the run has ended."""
    while scene.work() or scene.deliver():
        pass
    assert scene.status == "completed"


def swallow(scene: Scene) -> int:
    """Every message to the workers is lost; how many there were."""
    lost = scene.world.steps.receive(100_000, visibility_ms=1)
    scene.world.steps.ack([message.receipt for message in lost])
    return len(lost)


def looks(scene: Scene) -> list[int]:
    """How many attempts each commit has looked after, of those that did."""
    history = scene.world.history(scene.run_id)
    marks = [place for place, one in enumerate(history) if isinstance(one, tr.WakeArmed)]
    parts = [history[begin:end] for begin, end in zip(marks, [*marks[1:], len(history)], strict=True)]
    counts = [sum(isinstance(one, tr.NodeChecked) for one in part) for part in parts]
    return [count for count in counts if count]


def effects(scene: Scene) -> Counter[str]:
    return Counter(effect.node for effect in scene.world.ledger.effects if effect.node.startswith("a@"))


def blind() -> Mutant:
    """Nobody knows how old the queue is."""
    return patch.object(Resends, "_oldest", lambda self, now: 0)


def an_hour_without_workers(count: int) -> bool:
    """Whether the queue holds no more than one message of each attempt when the workers are back."""
    scene = fanned_out(count)
    passes(scene, HOUR)
    bounded = scene.tasks == count
    works_off(scene)
    assert set(effects(scene).values()) == {1}
    assert len(effects(scene)) == count
    return bounded


def test_rule_19_an_hour_without_workers_adds_no_message_and_then_everything_finishes_once() -> None:
    held(lambda: an_hour_without_workers(20), blind())


@pytest.mark.slow
def test_rule_19_thousands_of_attempts_wait_for_their_workers() -> None:
    assert an_hour_without_workers(2_000)


def test_rule_19_a_lost_task_is_sent_again_within_its_backoff_while_others_are_busy() -> None:
    scene = fanned_out(3)
    swallow(scene)
    begun = scene.clock.now
    while not scene.tasks:
        passes(scene, MINUTE)
    assert 5 * MINUTE <= scene.clock.now - begun <= 8 * MINUTE
    works_off(scene)
    assert set(effects(scene).values()) == {1}


def test_rule_19_a_task_lost_in_a_backlog_is_sent_again_when_the_backlog_is_gone() -> None:
    scene = fanned_out(3)
    lost = scene.world.steps.receive(1, visibility_ms=1)
    scene.world.steps.ack([message.receipt for message in lost])
    passes(scene, HOUR)
    assert scene.tasks == 2
    while scene.work() or scene.deliver():
        pass
    assert scene.status == "running"
    passes(scene, HOUR + 10 * MINUTE)
    works_off(scene)
    assert set(effects(scene).values()) == {1}


def test_rule_19_resends_go_in_portions_and_every_attempt_has_its_turn() -> None:
    count = 2 * LOOKS_PER_TICK + 50
    scene = fanned_out(count)
    assert swallow(scene) == count
    passes(scene, 8 * MINUTE)
    assert max(looks(scene)) == LOOKS_PER_TICK
    assert sum(looks(scene)) == 3 * count  # after one minute, three, and seven
    assert scene.tasks == count
    works_off(scene)
    assert set(effects(scene).values()) == {1}


@pytest.mark.parametrize("point", ["coordinator.before_commit", "coordinator.after_commit", "coordinator.before_ack"])
def test_rule_19_a_crash_between_two_portions_resumes_where_they_stopped(point: str) -> None:
    with patch("ductor.engine.due.LOOKS_PER_TICK", 4):
        scene = fanned_out(10)
        swallow(scene)
        passes(scene, 7 * MINUTE - 1)
        scene.clock.advance(1)
        scene.world.timer.step()
        scene.crash(point)
        passes(scene, MINUTE)
        assert len(looks(scene)) == 9
        works_off(scene)
    assert set(effects(scene).values()) == {1}
    assert len(effects(scene)) == 10


# One nudge on its way


def nudges(scene: Scene) -> int:
    """Nudges that wait in the queue of intents."""
    entries = scene.world.intents._entries.values()
    bodies = [msgspec.json.decode(entry.message("").body, type=Intent) for entry in entries]
    return sum(body.kind is IntentKind.NUDGE for body in bodies)


def dies(scene: Scene) -> None:
    """The coordinator dies after it has sent what its next commit asks for, before it acknowledges."""
    scene.world.chaos.crash_at("coordinator.after_send")
    coordinator = scene.world.coordinators[0]
    try:
        while coordinator.deliver(1):
            pass
    except Crash:
        coordinator.restart()
        scene.clock.advance(VISIBILITY_MS + 1)


def copies_die_out(between: bool) -> bool:
    """Whether the copies of nudges that crashes leave behind end with the next commits, `between` other intents."""
    with patch("ductor.engine.tick.STARTS_PER_TICK", 2):
        scene = Scene(repeated(action("a")), list(range(60)))
        scene.deliver(1)
        for _ in range(3):
            dies(scene)
            if between:
                scene.control("pause", f"p{scene.clock.now}")
                scene.control("resume", f"r{scene.clock.now}")
            scene.deliver(1)
        for _ in range(14):
            scene.deliver(1)
        left = nudges(scene)
        while scene.work() or scene.deliver():
            pass
        assert scene.status == "completed"
        assert set(effects(scene).values()) == {1}
        return left == 1


@pytest.mark.parametrize("between", [False, True])
def test_rule_19_crashes_leave_one_nudge_on_its_way(between: bool) -> None:
    assert copies_die_out(between)


def test_rule_19_a_nudge_that_arrives_while_the_run_is_paused_is_asked_for_again_by_the_resume() -> None:
    with patch("ductor.engine.tick.STARTS_PER_TICK", 2):
        scene = Scene(repeated(action("a")), list(range(20)))
        scene.control("pause", "p")
        for _ in range(3):  # the start, which asks for a nudge; the pause; the nudge
            scene.deliver(1)
        assert nudges(scene) == 0
        scene.control("resume", "r")
        scene.deliver(1)
        assert nudges(scene) == 1
        while scene.deliver():  # nobody works: nothing but nudges goes on
            pass
        assert scene.tasks == 20


def test_rule_19_a_nudge_that_a_stall_kept_back_goes_on_after_the_redrive() -> None:
    with patch("ductor.engine.tick.STARTS_PER_TICK", 2):
        scene = Scene(repeated(action("a")), list(range(10)))
        scene.crash("coordinator.after_commit")
        scene.world.damage(scene.run_id)
        scene.deliver()
        assert scene.world.stalled(scene.run_id)
        scene.world.mend()
        scene.control("redrive", "again")
        while scene.deliver():
            pass
        assert scene.tasks >= 10  # all are handed out, without a result that would have brought the next tick
        works_off(scene)


@pytest.mark.parametrize("portions", [0, 1, 3])
def test_a_nudge_that_is_lost_for_good_is_followed_by_another_one(portions: int) -> None:
    """The queue was emptied by hand, when nothing but the nudge would have brought the run on."""
    with patch("ductor.engine.tick.TRANSITIONS_PER_TICK", 10):
        scene = Scene(repeated(shape("a")), list(range(40)))
        for _ in range(1 + portions):
            scene.deliver(1)
        assert nudges(scene) == 1
        entries = scene.world.intents
        entries.ack([message.receipt for message in entries.receive(100, visibility_ms=1)])
        assert (nudges(scene), scene.tasks) == (0, 0)
        passes(scene, 11 * MINUTE)
        works_off(scene)


def test_rule_19_work_that_begins_after_a_nudge_came_for_nothing_is_gone_on_with() -> None:
    first, second = scatter("s", "[1, 2, 3]"), scatter("t", "TRIGGER.payload")
    parts = [first, action("a"), gather("g"), second, action("b"), gather("h")]
    ways = [edge("s", "a"), edge("a", "g"), edge("g", "t"), edge("t", "b"), edge("b", "h")]
    with patch("ductor.engine.tick.STARTS_PER_TICK", 2):
        scene = Scene(flow(*parts, *ways), list(range(10)))
        scene.control("resume", "nothing-to-resume")
        scene.deliver(1)
        scene.deliver(1)  # the request brings a tick, which finishes what the nudge behind it was for
        assert (scene.tasks, nudges(scene)) == (3, 1)
        scene.deliver(1)
        scene.work()
        while scene.deliver():
            pass
        assert scene.tasks == 10
        works_off(scene)


def test_rule_19_a_queue_that_is_behind_gets_a_wake_up_once_in_five_minutes() -> None:
    scene = Scene(flow(action("a")))
    scene.clock.advance(10 * MINUTE)
    for _ in range(60):
        scene.world.sweeper.sweep()
        scene.clock.advance(MINUTE)
    assert scene.world.intents.depth() <= 1 + 60 // 5
    works_off(scene)


# What is known of the queue


class Rows:
    """Every attempt is unclaimed."""

    def inspect(self, task: object, now: int) -> object:
        return task


class Aged:
    """A queue whose oldest message has this age; counts who asks."""

    def __init__(self, age: int = 0) -> None:
        self.age = age
        self.asked = 0

    def oldest_age_ms(self) -> int:
        self.asked += 1
        return self.age


class Away(Aged):
    def oldest_age_ms(self) -> int:
        super().oldest_age_ms()
        raise UnavailableError("nobody answers")


def again(resends: Resends, out_ms: int, now: int = 100 * HOUR) -> bool:
    """Whether a task that was handed out so long ago is sent again."""
    task = AttemptTask("r", "t", "n", 1, 1, "a", NULL, scheduled_at=now - out_ms)
    return resends.inspect(task, now) is task


def over(queue: Aged) -> Resends:
    return Resends(Rows(), queue)  # type: ignore[arg-type]


def test_rule_19_nobody_asks_for_the_age_before_a_resend_is_due() -> None:
    queue = Aged()
    assert not again(over(queue), 4 * MINUTE)
    assert queue.asked == 0


def test_rule_19_the_age_is_read_once_a_minute() -> None:
    queue = Aged()
    resends = over(queue)
    assert all(again(resends, HOUR, 100 * HOUR + n * 1_000) for n in range(60))
    assert queue.asked == 1
    assert again(resends, HOUR, 100 * HOUR + MINUTE)
    assert queue.asked == 2


def test_rule_19_what_waited_at_the_last_reading_has_waited_on() -> None:
    resends = over(Aged(5 * MINUTE - 30_000))
    assert again(resends, 7 * MINUTE)
    assert not again(resends, 7 * MINUTE, 100 * HOUR + 31_000)


def test_rule_19_a_resend_waits_while_the_oldest_message_is_older_than_the_backoff() -> None:
    resends = over(Aged(20 * MINUTE))
    assert not again(resends, 31 * MINUTE)
    assert again(resends, 63 * MINUTE)


def test_rule_19_an_age_that_cannot_be_read_stops_no_recovery() -> None:
    queue = Away()
    resends = over(queue)
    assert again(resends, 7 * MINUTE)
    assert again(resends, 7 * MINUTE)
    assert queue.asked == 1
