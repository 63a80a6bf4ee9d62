"""The safety rules, each as a scenario that holds with the rule and breaks without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast
from unittest.mock import patch

import msgspec
import pytest
from tests.simulation import mutants
from tests.simulation.scene import Scene, action, edge, flow, held

from ductor.adapters import rules
from ductor.app.attempts import Row
from ductor.app.dispatch import intent_message, send_all
from ductor.app.headers import HEAD, run_pk
from ductor.model import transition as tr
from ductor.model.attempt import AttemptStatus, AttemptTask
from ductor.model.definition import Retry
from ductor.model.enums import OnError
from ductor.model.intent import Intent, IntentKind
from ductor.ports import Delete, Item, ItemTooLargeError, Outgoing, Put, QueueName
from ductor.testing.actors import LEASE_MS, VISIBILITY_MS
from ductor.testing.chaos import Chances
from ductor.testing.faulty import SkewedClock
from ductor.testing.memory import MemoryQueue, VirtualClock

MINUTE = 60_000
TWO_CHAINS = flow(action("a"), action("b"), action("c"), action("d"), edge("a", "c"), edge("b", "d"))
NOTHING_BUT_MEANWHILE = Chances(meanwhile=1.0)


# Rule 1: de-duplication is per intent; an empty tick never commits; a resend uses the stored commands only


def crash_resend_crash_then_a_smaller_batch() -> bool:
    """Whether both chains go on at once, although two coordinators died after their commits."""
    scene = Scene(TWO_CHAINS)
    scene.deliver()
    scene.work()
    scene.crash("coordinator.after_commit", limit=1)
    scene.crash("coordinator.after_commit")
    begun = scene.clock.now
    scene.deliver(limit=1)
    scene.deliver(limit=1)
    while scene.deliver() or scene.work():
        pass
    assert scene.clock.now == begun
    return scene.effects("c") == scene.effects("d") == 1


def test_rule_01_an_empty_tick_over_unsent_commands_loses_them() -> None:
    held(crash_resend_crash_then_a_smaller_batch, mutants.empty_ticks_commit())


def test_rule_01_a_resend_of_recomputed_commands_sends_nothing() -> None:
    held(crash_resend_crash_then_a_smaller_batch, mutants.resends_what_it_computes_anew())


# Rule 2: every untimed wait has a check that reads the other side


def test_rule_02_a_lost_task_is_found_by_the_look_after_its_attempt() -> None:
    def scenario() -> bool:
        scene = Scene(flow(action("a")))
        scene.deliver()
        lost = scene.world.steps.receive(10, visibility_ms=1)
        scene.world.steps.ack([message.receipt for message in lost])
        begun = scene.clock.now
        scene.settle()
        return scene.status == "completed" and scene.world.state(scene.run_id).finished_at - begun < 10 * MINUTE

    held(scenario, mutants.nobody_looks_after_attempts())


def test_rule_02_a_lost_result_message_is_found_in_the_attempt_row() -> None:
    def scenario() -> bool:
        scene = Scene(flow(action("a")))
        scene.deliver()
        scene.work()
        told = scene.world.intents.receive(10, visibility_ms=1_000)
        scene.world.intents.ack([message.receipt for message in told])
        begun = scene.clock.now
        scene.settle()
        return scene.effects("a") == 1 and scene.status == "completed" and scene.clock.now - begun < 10 * MINUTE

    held(scenario, mutants.nobody_looks_after_attempts())


def test_rule_02_looks_double_up_to_a_day() -> None:
    scene = Scene(flow(action("a", "slow", ms=10 * 86_400_000, timeout_ms=20 * 86_400_000)))
    scene.deliver()
    worker = scene.world.workers[0]
    worker.claim(1)
    worker.begin(worker.waiting[0])
    while scene.world.state(scene.run_id).root.nodes["a"].check_every < 86_400_000:
        at = scene.world.timers.next_at()
        assert at is not None
        scene.clock.set(at)
        worker.worker.renew([worker.running[0].claimed])
        scene.world.timer.step()
        scene.deliver()
    looks = [step.check_every for step in scene.world.history(scene.run_id) if isinstance(step, tr.NodeChecked)]
    assert looks == [min(MINUTE * 2**n, 86_400_000) for n in range(1, len(looks) + 1)]
    assert scene.effects("a") == 1


# Rule 3: a refused command becomes an intent of its own run; batch sends are judged per entry


class Refusing:
    """Refuses one node's tasks for good, as a queue does with a message that is too large."""

    def __init__(self, scene: Scene, node: str) -> None:
        self._queue = scene.world.steps
        self._send = scene.world.steps.send
        self._node = node

    def send(self, messages: Sequence[Outgoing]) -> tuple[int, ...]:
        if any(msgspec.json.decode(message.body, type=AttemptTask).node == self._node for message in messages):
            raise ValueError("the message is too large")
        return self._send(messages)


def test_rule_03_a_refused_task_fails_its_step_and_blocks_nobody() -> None:
    def scenario() -> bool:
        scene = Scene(flow(action("a"), action("b", on_error=OnError.CONTINUE), action("c"), edge("a", "c")))
        with patch.object(scene.world.steps, "send", Refusing(scene, "b").send):
            try:
                scene.settle()
            except ValueError:
                return False
        error = scene.world.state(scene.run_id).root.nodes["b"].error
        return scene.status == "completed" and error is not None and error.code == "COMMAND_REFUSED"

    held(scenario, mutants.refusals_escape())


@pytest.mark.parametrize(("send", "arrives"), [(send_all, True), (mutants.believes_in_batches, False)])
def test_rule_03_entries_that_a_queue_refuses_are_sent_again_in_order(send: Callable[..., None], arrives: bool) -> None:
    queue = MemoryQueue(QueueName.INTENTS, VirtualClock())
    accept = queue.send
    first: list[bool] = []

    def throttled(messages: Sequence[Outgoing]) -> tuple[int, ...]:
        if first:
            return accept(messages)
        first.append(True)
        accept([messages[0], messages[3]])
        return (1, 2)

    with patch.object(queue, "send", throttled):
        send(queue, [Outgoing(f"{n}".encode(), group="h" if n == 3 else "g", dedup_id=f"{n}") for n in range(4)])
    received = [message.body for message in queue.receive(10, visibility_ms=1_000) if message.group == "g"]
    assert (received == [b"0", b"1", b"2"]) is arrives


# Rule 5: an attempt ends first in its row, by one conditional write


def test_rule_05_the_first_recorded_result_stays() -> None:
    def scenario() -> bool:
        scene = Scene(flow(action("a", "big", bytes=400)))
        scene.deliver()
        first, second = scene.world.workers
        first.claim(1)
        first.begin(first.waiting[0])
        scene.clock.advance(LEASE_MS + 1)
        scene.work(worker=1)
        assert not second.running
        scene.deliver()
        recorded = scene.world.output(scene.run_id, "a")
        first.finish(first.ready)
        scene.settle()
        return bool(scene.world.output(scene.run_id, "a") == recorded) and not scene.faults

    held(scenario, mutants.rows_are_overwritten())


def test_rule_05_a_success_after_a_timeout_is_kept_beside_the_end() -> None:
    def scenario() -> bool:
        scene = Scene(flow(action("a", "slow", ms=5_000, timeout_ms=1_000)))
        scene.deliver()
        worker = scene.world.workers[0]
        worker.claim(1)
        worker.begin(worker.waiting[0])
        scene.clock.advance(2_000)
        # The watchdog ends it; the action returns later, knowing only the row as it was claimed.
        claimed = worker.running[0].claimed
        as_claimed = Row(claimed.row.attempt, claimed.row.version)
        worker.worker.expire([claimed])
        claimed.row = as_claimed
        scene.deliver()
        scene.clock.advance(5_000)
        worker.finish(worker.ready)
        scene.settle()
        (row,) = scene.world.attempts(scene.run_id)
        return scene.status == "failed" and row.status is AttemptStatus.TIMED_OUT and row.late_output is not None

    held(scenario, mutants.rows_are_overwritten())


# Rule 6: failing runs drain: unclaimed work is revoked, the end comes after the last attempt row closed


def a_failure_beside_claimed_and_unclaimed_work() -> Scene:
    scene = Scene(flow(action("bad", "boom", retryable=False), action("held"), action("queued")))
    scene.deliver()
    claimer, other = scene.world.workers
    claimer.claim(1)
    other.claim(1)
    claimer.begin(claimer.waiting[0])
    claimer.finish(claimer.ready)
    scene.deliver()
    return scene


def test_rule_06_the_end_waits_for_the_last_attempt() -> None:
    def scenario() -> bool:
        scene = a_failure_beside_claimed_and_unclaimed_work()
        waited = scene.status == "running"
        scene.work(worker=1)
        scene.settle()
        return waited and scene.status == "failed" and not scene.faults

    held(scenario, mutants.ends_at_once())


def test_rule_06_unclaimed_work_is_revoked() -> None:
    def scenario() -> bool:
        scene = a_failure_beside_claimed_and_unclaimed_work()
        scene.work(worker=1)
        scene.settle()
        return scene.effects("queued") == 0 and scene.steps["queued"] == "cancelled" and scene.status == "failed"

    held(scenario, mutants.nothing_is_revoked())


# Rule 15: input is stored before the commit and never rendered again


def test_rule_15_what_a_commit_refers_to_is_stored_before() -> None:
    def scenario() -> bool:
        scene = Scene(flow(action("a", v="x" * 9_000)))
        scene.crash("coordinator.after_commit")
        scene.settle()
        return scene.status == "completed" and not scene.faults

    held(scenario, mutants.inputs_are_not_stored())


def test_rule_15_a_retry_gets_the_input_of_the_first_attempt() -> None:
    def scenario() -> bool:
        retry = Retry(max_attempts=2, backoff_ms=5_000, jitter=0.0)
        scene = Scene(flow(action("a", "fail_n", retry, n=1, v="${{ RUN.now }}")))
        scene.settle()
        first, second = scene.world.attempts(scene.run_id)
        return first.task.input == second.task.input

    held(scenario, mutants.retries_render_again())


# Rule 18: history has no gaps


@pytest.mark.parametrize("point", ["coordinator.before_commit", "coordinator.after_commit", "coordinator.after_send"])
def test_rule_18_history_has_no_gap_wherever_a_crash_strikes(point: str) -> None:
    def scenario() -> bool:
        scene = Scene(TWO_CHAINS)
        scene.deliver()
        scene.work()
        scene.crash(point, limit=1)
        scene.settle()
        return scene.status == "completed" and not scene.faults

    held(scenario, mutants.history_is_not_put())


# Rule 21: the header has a budget


def test_rule_21_a_run_that_outgrows_its_header_fails_and_never_loops() -> None:
    def scenario() -> bool:
        parts = [action(f"s{n}", v="x" * 200) for n in range(20)]
        scene = Scene(flow(*parts))
        with patch.object(rules, "MAX_ITEM_BYTES", 12_000), patch.object(rules, "_SURELY_SMALL", 0):
            try:
                scene.settle()
            except ItemTooLargeError:
                return False
        error = scene.world.state(scene.run_id).error
        return scene.status == "failed" and error is not None and error.code == "STATE_TOO_LARGE" and not scene.faults

    with patch("ductor.app.commit.MAX_HEADER_BYTES", 8_000):
        held(scenario, mutants.headers_have_no_limit())


# Rule 22: after a lost race only stored commands are sent; missing runs are waited for; time never runs backwards


def a_timeout_seen_by_the_loser_alone() -> bool:
    """The clock of the slower coordinator is ahead: it would end the run, and loses to one that pauses it."""
    scene = Scene(flow(action("a"), run_timeout_ms=MINUTE))
    scene.deliver()
    clocks = [cast(SkewedClock, actor.coordinator._committer._clock) for actor in scene.world.coordinators]
    clocks[0].skew_ms = 20_000
    scene.clock.advance(45_000)
    fired = Intent(id="early", run_id=scene.run_id, kind=IntentKind.TIMER_FIRED)
    scene.world.intents.send([intent_message(fired, scene.world.ids)])

    def winner_pauses() -> None:
        scene.world.chaos.meanwhile = None
        scene.clock.advance(VISIBILITY_MS + 1)
        scene.control("pause")
        scene.deliver(coordinator=1)

    scene.world.chaos.meanwhile = winner_pauses
    with (
        patch.object(scene.world.chaos, "strikes", bool),
        patch.object(scene.world.chaos, "chances", NOTHING_BUT_MEANWHILE),
    ):
        scene.deliver()
    clocks[0].skew_ms = 0
    paused = scene.status == "paused"
    scene.control("resume", "r2")
    scene.settle()
    return paused and scene.status == "completed" and scene.effects("a") == 1 and not scene.faults


def test_rule_22_the_loser_of_a_race_sends_only_what_is_stored() -> None:
    held(a_timeout_seen_by_the_loser_alone, mutants.losers_send())


def test_rule_22_time_never_runs_backwards_within_a_run() -> None:
    def scenario() -> bool:
        scene = Scene(TWO_CHAINS)
        scene.deliver()
        scene.clock.advance(5_000)
        scene.control("pause")
        scene.deliver()
        scene.clock.advance(-4_000)
        scene.control("resume", "r2")
        scene.deliver()
        return not scene.faults

    held(scenario, mutants.time_runs_backwards())


def test_rule_22_an_intent_for_a_run_that_is_not_there_yet_waits_for_it() -> None:
    def scenario() -> bool:
        scene = Scene(flow(action("a")))
        header = hide(scene)
        scene.deliver()
        scene.world.table.write([Put(header)])
        scene.clock.advance(1_000)
        scene.deliver()
        return scene.status == "running"

    held(scenario, mutants.missing_runs_are_dropped())


def test_rule_22_an_intent_for_a_run_that_never_comes_ends_in_the_dead_letters() -> None:
    scene = Scene(flow(action("a")))
    hide(scene)
    scene.world.ledger.runs.clear()
    scene.settle()
    ((message, reason),) = scene.world.intents.dead_letters()
    assert msgspec.json.decode(message.body, type=Intent).run_id == scene.run_id
    assert "does not exist" in reason


def hide(scene: Scene) -> Item:
    """Take the run's header away, as if its admission were not visible yet."""
    item = scene.world.table.get(run_pk(scene.run_id), HEAD)
    assert item is not None
    scene.world.table.write([Delete(item.pk, item.sk)])
    return item


def test_rule_22_starts_that_are_sent_again_have_ids_that_no_queue_swallows() -> None:
    scene = Scene(flow(action("a")))
    repeated = [scene.world.trigger("d0", {}, "key") for _ in range(3)]
    assert len(set(repeated)) == 1
    assert scene.world.intents.depth() == 4
