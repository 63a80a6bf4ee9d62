"""Handing out tasks: in order, once each, to those who may have them, and again when their worker was lost."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.simulation.scene import edge
from tests.unit.bridge.desk import LEASE_S, STRANGER, WORKER, Desk, bridge, code

from ductor.app.admission import TriggerRequest
from ductor.app.bridge_poll import RESTS_MS, ROUNDS, PollRequest, TaskGiven
from ductor.model.attempt import AttemptTask
from ductor.model.errors import RefusedError
from ductor.model.payload import NULL
from ductor.ports import Put
from ductor.testing.chaos import Crash
from ductor.testing.world import TENANT

GONE = msgspec.json.encode(
    AttemptTask(
        run_id="gone",
        tenant=TENANT,
        node="b",
        attempt=1,
        generation=1,
        action="render",
        input=NULL,
        environment="default",
    )
)


def test_a_task_says_all_that_a_worker_needs() -> None:
    desk = Desk(bridge(timeout_ms=60_000))
    now = desk.clock.now
    task = desk.take()
    assert (task.run_id, task.node, task.attempt, task.delivery) == (desk.run_id, "b", 1, 1)
    assert (task.task_type, task.input, task.idempotency_key) == ("render", {"for": "b"}, f"{desk.run_id}/b")
    assert (task.lease_expires_at, task.heartbeat_within_ms) == (now + LEASE_S * 1000, LEASE_S * 1000)
    assert (task.scheduled_at, task.deadline_at, task.last_heartbeat) == (now, now + 60_000, None)


def test_a_task_is_given_once() -> None:
    desk = Desk()
    assert len(desk.poll()) == 1
    assert desk.poll() == ()


def test_two_workers_that_see_the_same_row_get_one_delivery() -> None:
    desk = Desk()
    polls = desk.bridge.polls
    claim, second = polls._claim, list[TaskGiven]()

    def meanwhile(*args: Any) -> Any:
        polls._claim = claim  # type: ignore[method-assign]
        second.extend(desk.poll())
        return claim(*args)

    polls._claim = meanwhile  # type: ignore[method-assign,assignment]
    assert (desk.poll(), len(second)) == ((), 1)


def test_the_oldest_task_of_all_types_comes_first() -> None:
    desk = Desk(bridge("b"), bridge("c", "print"), edge("b", "c"), bridge("d"), edge("b", "d"))
    desk.complete(desk.take())
    desk.clock.advance(5)
    desk.wake()
    other = desk.world.trigger("d0", {"n": 2})
    desk.clock.advance(5)
    desk.wake()
    given = [(task.run_id == other, task.node) for task in desk.poll("render", "print")]
    assert given == [(False, "c"), (False, "d"), (True, "b")]


def test_no_more_than_asked_for_are_given() -> None:
    desk = Desk(bridge("b"), bridge("c"), bridge("d"))
    assert [len(desk.poll(max=2)), len(desk.poll(max=2)), len(desk.poll(max=2))] == [2, 1, 0]


def test_a_poll_waits_until_there_is_a_task() -> None:
    desk = Desk(bridge("b"), bridge("c", "print"), edge("b", "c"))
    task = desk.take()

    def arrives(ms: int) -> bool:
        desk.clock.advance(ms)
        desk.complete(task)
        desk.wake()
        return True

    desk.bridge.polls._pause = arrives
    assert [given.node for given in desk.poll("print", wait_seconds=20)] == ["c"]


def test_a_poll_waits_no_longer_than_asked() -> None:
    desk = Desk()
    began = desk.clock.now
    assert desk.poll("print", wait_seconds=3) == ()
    assert desk.clock.now == began + 3_000
    assert desk.pauses < 10


def test_a_poll_takes_nothing_for_a_client_that_has_gone() -> None:
    desk = Desk()
    assert desk.bridge.polls.poll(WORKER, PollRequest(task_types=("render",)), lambda: True) == ()
    assert len(desk.poll()) == 1


def test_a_lost_worker_is_followed_by_another_one_of_the_same_attempt() -> None:
    desk = Desk()
    first = desk.take()
    desk.bridge.answers.heartbeat(WORKER, first.task_token, {"at": 7})
    desk.lose_lease()
    second = desk.take()
    assert (second.attempt, second.delivery, second.last_heartbeat) == (1, 2, {"at": 7})
    assert second.idempotency_key == first.idempotency_key


def test_a_task_whose_answer_was_lost_comes_again_after_its_lease() -> None:
    desk = Desk()
    desk.world.chaos.crash_at("bridge.after_claim")
    with pytest.raises(Crash):
        desk.poll()
    assert desk.poll() == ()
    desk.lose_lease()
    assert desk.take().delivery == 2


def test_the_third_lost_worker_ends_the_attempt() -> None:
    desk = Desk()
    for _ in range(3):
        desk.take()
        desk.lose_lease()
    assert desk.poll() == ()
    desk.wake()
    assert desk.row().error is not None
    assert (desk.row().status.value, desk.row().error.code) == ("lost", "WORKER_LOST")  # type: ignore[union-attr]
    assert (desk.steps["b"], desk.status) == ("failed", "failed")


def test_a_worker_that_shows_signs_of_life_keeps_its_task() -> None:
    desk = Desk()
    task = desk.take()
    for _ in range(5):
        desk.clock.advance(LEASE_S * 1000 - 1)
        desk.bridge.answers.heartbeat(WORKER, task.task_token)
        assert desk.poll() == ()
    desk.complete(task)
    desk.wake()
    assert desk.status == "completed"


def test_the_steps_heartbeat_timeout_counts_before_the_workers_wish() -> None:
    desk = Desk(bridge(heartbeat_timeout_ms=5_000))
    assert desk.take().heartbeat_within_ms == 5_000
    desk.clock.advance(5_001)
    assert desk.take().delivery == 2


def test_rows_of_tasks_in_hand_hide_no_task_behind_them() -> None:
    desk = Desk(*[bridge(f"b{number:02d}") for number in range(40)])
    held = [task for _ in range(4) for task in desk.poll()]
    assert len(held) == 40
    desk.clock.advance(LEASE_S * 1000 - 1)
    for task in held:
        desk.bridge.answers.heartbeat(WORKER, task.task_token)
    other = desk.world.trigger("d0", {"n": 2})
    desk.wake()
    desk.clock.advance(10)
    assert {task.run_id for task in desk.poll(max=1)} == {other}


def test_thousands_of_rows_of_runs_that_are_gone_hold_up_no_single_poll() -> None:
    desk = Desk()
    (row,) = desk.world.table.query("BQ#t#default#render", low="", high="~").items
    for number in range(600):
        desk.world.table.write([Put(msgspec.structs.replace(row, sk=f"{number:013d}#gone/b/000001", body=GONE))])
    assert desk.poll(max=1) == ()
    polls = 1
    while not desk.poll(max=1):
        polls += 1
    assert polls == 600 // (10 * ROUNDS)


def test_an_ended_attempt_leaves_no_row_behind() -> None:
    desk = Desk()
    desk.complete(desk.take())
    assert desk.queued() == []


def test_a_paused_run_gives_no_task_until_it_is_resumed() -> None:
    desk = Desk()
    desk.control("pause")
    desk.wake()
    assert desk.poll() == ()
    desk.control("resume", "r2")
    desk.wake()
    desk.clock.advance(RESTS_MS[0])
    assert len(desk.poll()) == 1


def test_a_task_in_hand_is_finished_while_the_run_is_paused() -> None:
    desk = Desk(bridge("b"), bridge("c", "print"), edge("b", "c"))
    task = desk.take()
    desk.control("pause")
    desk.wake()
    desk.complete(task, {"v": 1})
    desk.wake()
    assert (desk.steps["b"], desk.steps["c"], desk.status) == ("completed", "pending", "paused")


def test_a_large_input_is_read_from_where_it_is_kept() -> None:
    desk = Desk(bridge(input={"text": "x" * 50_000}))
    assert desk.take().input == {"text": "x" * 50_000}


def test_an_input_that_is_gone_fails_the_attempt() -> None:
    desk = Desk(bridge(input={"text": "x" * 50_000}))
    desk.world.blobs._data.clear()
    assert desk.poll() == ()
    desk.wake()
    assert desk.world.state(desk.run_id).root.nodes["b"].error.code == "INPUT_MISSING"  # type: ignore[union-attr]


def test_an_input_over_a_megabyte_fails_the_step() -> None:
    desk = Desk(bridge(input={"text": "x" * 1_100_000}))
    assert desk.world.state(desk.run_id).root.nodes["b"].error.code == "INPUT_TOO_LARGE"  # type: ignore[union-attr]


def test_another_tenant_gets_nothing() -> None:
    desk = Desk()
    assert desk.poll(caller=STRANGER) == ()


@pytest.mark.parametrize(
    ("grant", "refusal"),
    [
        ({"scopes": frozenset({"workflow_run:write"})}, "SCOPE_MISSING"),
        ({"environments_write": frozenset({"staging"})}, "ENVIRONMENT_NOT_WRITABLE"),
        ({"roles": frozenset({"queue:print", "queue:billing.*"})}, "QUEUE_NOT_ALLOWED"),
    ],
)
def test_who_may_not_poll(grant: dict[str, Any], refusal: str) -> None:
    desk = Desk()
    with pytest.raises(RefusedError) as refused:
        desk.poll(caller=msgspec.structs.replace(WORKER, **grant))
    assert (refused.value.error_code.value, code(refused.value)) == ("PERMISSION_DENIED", refusal)


@pytest.mark.parametrize("role", ["queue:render", "queue:render.*"])
def test_a_key_may_be_limited_to_queues(role: str) -> None:
    desk = Desk(bridge(task_type="render" if role == "queue:render" else "render.video"))
    limited = msgspec.structs.replace(WORKER, roles=frozenset({role}))
    assert len(desk.poll("render" if role == "queue:render" else "render.video", caller=limited)) == 1


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"task_types": ()}, "task_types"),
        ({"task_types": ("a",) * 11}, "task_types"),
        ({"task_types": ("a", "a")}, "task_types[1]"),
        ({"task_types": ("1a",)}, "task_types[0]"),
        ({"task_types": ("a#b",)}, "task_types[0]"),
        ({"max": 0}, "max"),
        ({"max": 11}, "max"),
        ({"wait_seconds": -1}, "wait_seconds"),
        ({"wait_seconds": 21}, "wait_seconds"),
        ({"lease_seconds": 0}, "lease_seconds"),
        ({"lease_seconds": 43_201}, "lease_seconds"),
        ({"worker": "w" * 129}, "worker"),
    ],
)
def test_odd_polls(request_: dict[str, Any], field: str) -> None:
    desk = Desk()
    with pytest.raises(RefusedError) as refused:
        desk.bridge.polls.poll(WORKER, PollRequest(**{"task_types": ("render",), **request_}))
    assert (refused.value.violations[0].field, code(refused.value)) == (field, "FIELD_INVALID")


def test_rule_24_a_task_says_how_deep_its_run_is() -> None:
    desk = Desk()
    definition_id = desk.world.publish(Desk.definition(bridge("c", "deep")))
    desk.world.triggers.trigger(desk.world.caller, definition_id, TriggerRequest(input={}, depth=5))
    desk.deliver()
    (deep,) = desk.poll("deep")
    assert (desk.take().causation_depth, deep.causation_depth) == (0, 5)
