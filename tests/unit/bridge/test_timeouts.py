"""The clocks of a bridge step: how long it waits for a worker, how long that may take, and what an operator sees."""

from __future__ import annotations

import pytest
from tests.simulation.scene import action, edge
from tests.unit.bridge.desk import WORKER, Desk, bridge, code

from ductor.app.bridge_door import BridgeDoor, started_intent
from ductor.app.presenting import waiting_on
from ductor.model.definition import Retry
from ductor.model.enums import EdgeType
from ductor.model.errors import RefusedError
from ductor.ports import Delete
from ductor.testing.chaos import Crash


def shown(desk: Desk) -> tuple[str, int | None]:
    """What the step says that it waits for, and until when."""
    graph, state = desk.world.graph(desk.run_id), desk.world.state(desk.run_id)
    waiting = waiting_on("b", graph.by_ref["b"].step, state.root.nodes["b"])
    assert waiting is not None
    assert waiting.kind == "bridge"
    return waiting.detail, waiting.deadline_at


def test_a_task_that_no_worker_takes_in_time_times_out_exactly_then() -> None:
    desk = Desk(
        bridge(schedule_to_start_timeout_ms=90_000, retry=Retry(max_attempts=3)),
        action("nobody"),
        edge("b", "nobody", EdgeType.TIMEOUT),
    )
    began = desk.clock.now
    desk.clock.advance(89_999)
    desk.wake()
    assert desk.steps["b"] == "scheduled"
    desk.clock.advance(1)
    desk.wake()
    entry = desk.world.state(desk.run_id).root.nodes["b"]
    assert (entry.status.value, entry.attempt, entry.finished_at) == ("timed_out", 1, began + 90_000)
    assert entry.error is not None
    assert entry.error.code == "SCHEDULE_TO_START_TIMEOUT"
    assert (desk.poll(), desk.queued()) == ((), [])
    desk.settle()
    assert (desk.status, desk.faults) == ("completed", [])


def test_a_task_that_was_taken_in_time_has_no_limit_of_its_own() -> None:
    desk = Desk(bridge(schedule_to_start_timeout_ms=5_000))
    desk.clock.advance(4_999)
    task = desk.take()
    for _ in range(100):
        desk.clock.advance(25_000)
        desk.wake()
        desk.bridge.answers.heartbeat(WORKER, task.task_token)
    desk.complete(task)
    desk.wake()
    assert desk.status == "completed"


def test_a_worker_that_takes_too_long_times_out_exactly_then_however_alive_it_is() -> None:
    desk = Desk(bridge(timeout_ms=45_000, retry=Retry(max_attempts=2, backoff_ms=0, jitter=0.0)))
    desk.clock.advance(100_000)
    desk.wake()
    task, began = desk.take(), desk.clock.now
    desk.deliver()
    desk.clock.advance(25_000)
    desk.bridge.answers.heartbeat(WORKER, task.task_token)
    desk.clock.advance(19_999)
    desk.wake()
    assert desk.row().status.value == "running"
    desk.clock.advance(1)
    desk.wake()
    error = desk.row().error
    assert error is not None
    assert (desk.row().status.value, error.code, desk.row().finished_at) == (
        "timed_out",
        "ATTEMPT_TIMEOUT",
        began + 45_000,
    )
    with pytest.raises(RefusedError) as refused:
        desk.complete(task, {"v": 1})
    assert code(refused.value) == "TASK_ENDED"
    assert desk.take().attempt == 2


def test_each_delivery_has_the_whole_time() -> None:
    desk = Desk(bridge(timeout_ms=45_000))
    desk.take()
    desk.deliver()
    desk.lose_lease()
    second = desk.take()
    desk.deliver()
    desk.clock.advance(29_000)
    desk.wake()
    desk.complete(second)
    desk.wake()
    assert desk.status == "completed"


def test_a_result_in_the_row_beats_a_deadline_that_passes_before_the_run_hears_of_it() -> None:
    desk = Desk(bridge(timeout_ms=45_000))
    task = desk.take()
    desk.deliver()
    desk.clock.advance(44_999)
    desk.world.chaos.crash_at("bridge.after_answer")
    with pytest.raises(Crash):
        desk.complete(task, {"v": 1})
    desk.clock.advance(1)
    desk.wake()
    assert (desk.status, desk.world.output(desk.run_id, "b")) == ("completed", {"v": 1})


def test_a_run_that_was_never_told_of_the_worker_finds_out_in_time_all_the_same() -> None:
    desk = Desk(bridge(schedule_to_start_timeout_ms=30_000, timeout_ms=50_000))
    desk.take()
    message = desk.world.intents.receive(10, visibility_ms=1_000)
    desk.world.intents.ack([one.receipt for one in message])
    desk.clock.advance(30_000)
    desk.wake()
    assert desk.world.state(desk.run_id).root.nodes["b"].worker == "w"
    desk.clock.advance(20_000)
    desk.wake()
    assert desk.row().status.value == "timed_out"


def test_a_lost_queue_row_is_put_back_by_the_run() -> None:
    desk = Desk()
    for name in list(desk.world.table.query("BQ#t#default#render", low="", high="~").items):
        desk.world.table.write([Delete(name.pk, name.sk)])
    assert desk.poll() == ()
    desk.clock.advance(60_000)
    desk.wake()
    assert len(desk.poll()) == 1


def test_deadlines_wait_for_a_paused_run_to_be_resumed() -> None:
    desk = Desk(bridge(schedule_to_start_timeout_ms=30_000))
    desk.control("pause")
    desk.wake()
    desk.clock.advance(100_000)
    desk.wake()
    assert desk.steps["b"] == "scheduled"
    desk.control("resume", "r2")
    desk.wake()
    assert desk.steps["b"] == "timed_out"


def test_a_longer_timeout_is_heeded_while_the_worker_works() -> None:
    desk = Desk(bridge(timeout_ms=20_000))
    desk.take()
    desk.deliver()
    desk.world.control_node(desk.run_id, "b", "updateTimeout", "n1")  # to 30 s
    desk.wake()
    desk.clock.advance(29_000)
    desk.wake()
    assert desk.row().status.value == "running"
    desk.clock.advance(1_001)
    desk.wake()
    assert desk.row().status.value == "timed_out"


def test_the_step_says_whom_it_waits_for() -> None:
    desk = Desk(bridge(schedule_to_start_timeout_ms=30_000, timeout_ms=50_000))
    now = desk.clock.now
    assert shown(desk) == ("step b: a worker for render", now + 30_000)
    task = desk.take()
    desk.deliver()
    assert shown(desk) == ("step b: worker w", now + 50_000)
    desk.bridge.answers.release(WORKER, task.task_token)
    desk.deliver()
    assert shown(desk) == ("step b: a worker for render", None)


def test_the_history_names_the_key_that_took_the_task() -> None:
    desk = Desk()
    desk.take()
    desk.deliver()
    (watched,) = [one for one in desk.world.history(desk.run_id) if type(one).__name__ == "NodeWatched"]
    assert (getattr(watched, "worker", ""), getattr(watched, "actor", "")) == ("w", "worker-key")


def test_a_check_of_an_attempt_that_is_well_changes_nothing() -> None:
    desk = Desk(bridge(timeout_ms=600_000))
    desk.take()
    desk.wake()
    seq = desk.world.state(desk.run_id).seq
    row = desk.row()
    door = BridgeDoor(desk.bridge.polls._queue, desk.bridge.polls._attempts, desk.clock)
    graph, state = desk.world.graph(desk.run_id), desk.world.state(desk.run_id)
    assert list(door.check(graph, state, "b", 1, 1, "m")) == []
    again = started_intent(row, 600_000, desk.clock.now)
    desk.world.coordinators[0].coordinator._dispatcher.intend([again])
    desk.deliver()
    assert desk.world.state(desk.run_id).seq == seq
