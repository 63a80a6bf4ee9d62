"""What broke other engines, as users reported it: each case with the outcome that Ductor promises."""

from __future__ import annotations

import time

import pytest
from tests.simulation.scene import Scene, action, edge, flow, settled, shape, statuses, switch

from ductor.engine.backoff import delay_ms, jittered_ms
from ductor.model.attempt import AttemptStatus
from ductor.model.definition import Definition, Edge, Retry, Step
from ductor.model.enums import EdgeType, Join
from ductor.model.errors import MAX_ERROR_TEXT_BYTES

TRUE, FALSE, DONE, ERROR = EdgeType.TRUE, EdgeType.FALSE, EdgeType.DONE, EdgeType.ERROR


# B11: diamond with a skipped arm


def diamond(b: Step, c: Step, join: Join = Join.ANY) -> Definition:
    parts = [action("a"), b, c, action("d"), action("e", join=join)]
    return flow(*parts, edge("a", "b"), edge("a", "c"), edge("c", "d"), edge("b", "e"), edge("d", "e"))


def test_b11_a_skipped_arm_skips_what_lies_behind_it_and_the_join_runs() -> None:
    scene = settled(diamond(action("b"), action("c", condition="false")))
    assert statuses(scene, "a", "b", "c", "d", "e") == ["completed", "completed", "skipped", "skipped", "completed"]
    assert scene.effects("e") == 1
    assert scene.status == "completed"


def test_b11_a_join_of_all_is_skipped_with_one_arm() -> None:
    scene = settled(diamond(action("b"), action("c", condition="false"), join=Join.ALL))
    assert statuses(scene, "b", "c", "d", "e") == ["completed", "skipped", "skipped", "skipped"]
    assert scene.status == "completed"


def test_b11_both_arms_skipped_skip_the_join_and_the_run_completes() -> None:
    scene = settled(diamond(action("b", condition="false"), action("c", condition="false")))
    assert statuses(scene, "a", "b", "c", "d", "e") == ["completed", "skipped", "skipped", "skipped", "skipped"]
    assert scene.status == "completed"


# B12: a join is not decided before its slow arm ends


def test_b12_a_join_waits_for_the_slow_arm() -> None:
    slow = action("slow", "slow", ms=3_000)
    scene = Scene(flow(action("no", condition="false"), slow, action("j"), edge("no", "j"), edge("slow", "j")))
    scene.deliver()
    scene.work()
    scene.clock.advance(2_900)
    assert scene.steps == {"no": "skipped", "slow": "scheduled", "j": "pending"}
    scene.settle()
    assert scene.steps == {"no": "skipped", "slow": "completed", "j": "completed"}
    assert scene.effects("j") == 1


# B13: nested branches whose parents are all skipped


def nested(choice: str, *more: Edge) -> Definition:
    """`outer` chooses x or y; x holds an inner switch with two arms and a join; `end` joins x's join and y."""
    parts = [switch("outer", choice), switch("x", "true"), action("p"), action("q"), action("inner"), action("y")]
    edges = [
        edge("outer", "x", TRUE),
        edge("outer", "y", FALSE),
        edge("x", "p", TRUE),
        edge("x", "q", FALSE),
        edge("p", "inner"),
        edge("q", "inner"),
        edge("inner", "end"),
        edge("y", "end"),
    ]
    return flow(*parts, action("end"), *edges, *more)


def test_b13_a_branch_that_was_not_chosen_is_skipped_with_its_inner_join() -> None:
    scene = settled(nested("false"))
    assert statuses(scene, "x", "p", "q", "inner") == ["skipped"] * 4
    assert statuses(scene, "y", "end") == ["completed"] * 2
    assert scene.effects("end") == 1


def test_b13_in_the_chosen_branch_the_inner_join_runs_once() -> None:
    scene = settled(nested("true"))
    assert statuses(scene, "p", "q", "inner", "y", "end") == [
        "completed",
        "skipped",
        "completed",
        "skipped",
        "completed",
    ]


@pytest.mark.parametrize(("kind", "inner"), [(FALSE, "completed"), (TRUE, "skipped")])
def test_b13_an_edge_that_jumps_to_the_inner_join_counts_as_one_arm(kind: EdgeType, inner: str) -> None:
    scene = settled(nested("false", edge("outer", "inner", kind)))
    assert statuses(scene, "p", "q", "inner", "end") == ["skipped", "skipped", inner, "completed"]
    assert scene.effects("end") == 1


# B15: the args of a step that will be skipped are not rendered


def test_b15_args_of_a_skipped_step_are_never_evaluated() -> None:
    parts = [action("a", condition="false"), action("c", condition="false", v="${{ STEPS.a.output.x }}")]
    scene = settled(flow(*parts, action("e"), edge("a", "c"), edge("c", "e", DONE)))
    assert statuses(scene, "a", "c", "e") == ["skipped", "skipped", "skipped"]
    assert scene.status == "completed"


def test_b15_a_condition_behind_a_skipped_step_is_never_evaluated() -> None:
    parts = [action("a", condition="false"), action("c", condition="STEPS.a.output.x == 1")]
    scene = settled(flow(*parts, edge("a", "c")))
    assert scene.steps == {"a": "skipped", "c": "skipped"}
    assert scene.status == "completed"


# B16: no outgoing condition is true


@pytest.mark.parametrize("conditions", [["false"], ["false", "TRIGGER.payload.n > 5"]])
def test_b16_a_branch_without_a_route_ends_and_shows_it(conditions: list[str]) -> None:
    targets = [action(f"t{n}") for n in range(len(conditions))]
    edges = [edge("a", f"t{n}", condition=condition) for n, condition in enumerate(conditions)]
    scene = settled(flow(action("a"), *targets, *edges), {"n": 1})
    assert scene.status == "completed"
    assert scene.world.state(scene.run_id).root.nodes["a"].no_route
    assert all(scene.steps[target.ref] == "skipped" for target in targets)


def test_b16_a_default_edge_is_the_route_when_no_condition_holds() -> None:
    parts = [action("a"), action("b"), action("rest")]
    scene = settled(flow(*parts, edge("a", "b", condition="false"), edge("a", "rest", EdgeType.DEFAULT)))
    assert statuses(scene, "b", "rest") == ["skipped", "completed"]
    assert not scene.world.state(scene.run_id).root.nodes["a"].no_route


@pytest.mark.parametrize("kind", [EdgeType.SUCCESS, EdgeType.DEFAULT])
def test_b16_a_missing_key_is_an_error_of_the_step_that_owns_the_edge(kind: EdgeType) -> None:
    scene = settled(flow(action("a"), action("b"), edge("a", "b", kind, "TRIGGER.payload.nope == 1")))
    node = scene.world.state(scene.run_id).root.nodes["a"]
    assert node.error is not None
    assert (node.status.value, node.error.code) == ("failed", "EXPRESSION_ERROR")
    assert scene.world.output(scene.run_id, "a")["v"] == "a"
    assert (scene.status, scene.steps["b"]) == ("failed", "pending")


def test_b16_an_error_edge_handles_a_condition_that_cannot_be_evaluated() -> None:
    parts = [action("a"), action("b"), action("rescue")]
    broken = edge("a", "b", condition="TRIGGER.payload.nope == 1")
    scene = settled(flow(*parts, broken, edge("a", "rescue", ERROR)))
    assert statuses(scene, "a", "b", "rescue") == ["failed", "skipped", "completed"]
    assert scene.status == "completed"


# B30: cancel while a retry is pending


def backing_off() -> Scene:
    retry = Retry(max_attempts=5, backoff_ms=30_000, jitter=0.0)
    scene = Scene(flow(action("a", "fail_n", retry, n=3), action("b"), edge("a", "b")))
    scene.deliver()
    scene.work()
    scene.deliver()
    assert scene.steps["a"] == "retrying"
    scene.clock.advance(5_000)
    return scene


@pytest.mark.parametrize(("operation", "status"), [("cancel", "cancelled"), ("terminate", "terminated")])
def test_b30_a_pending_retry_never_starts_after_a_cancel(operation: str, status: str) -> None:
    scene = backing_off()
    scene.control(operation)
    scene.deliver()
    assert scene.status == status
    scene.clock.advance(60_000)
    scene.settle()
    node = scene.world.state(scene.run_id).root.nodes["a"]
    assert (scene.effects("a"), scene.effects("b"), node.status.value) == (1, 0, "cancelled")
    assert node.finished_at
    assert scene.faults == []


def test_b30_a_backoff_that_begins_during_a_pause_runs_on_from_the_resume() -> None:
    retry = Retry(max_attempts=2, backoff_ms=30_000, jitter=0.0)
    scene = Scene(flow(action("a", "fail_n", retry, n=1)))
    scene.deliver()
    scene.control("pause", "p")
    scene.deliver()
    scene.clock.advance(100_000)
    scene.work()
    scene.deliver()
    scene.clock.advance(500_000)
    scene.control("resume", "r")
    scene.deliver()
    assert scene.world.state(scene.run_id).root.nodes["a"].deadline == scene.clock.now + 30_000
    scene.settle()
    assert scene.status == "completed"
    assert scene.faults == []


# B40: backoff overflow


@pytest.mark.parametrize("base", [0, 1, 1_000, 86_400_000])
@pytest.mark.parametrize("multiplier", [1.0, 1.5, 2.0, 10.0, 100.0])
@pytest.mark.parametrize("jitter", [0.0, 0.1, 1.0])
def test_b40_delays_are_capped_monotone_and_never_negative(base: int, multiplier: float, jitter: float) -> None:
    retry = Retry(max_attempts=100, backoff_ms=base, backoff_multiplier=multiplier, jitter=jitter)
    tries = [1, 2, 3, 31, 32, 33, 40, 64, 65, 100, 1_100, 10**6]
    delays = [delay_ms(retry, failures) for failures in tries]
    assert delays == sorted(delays)
    assert all(0 <= delay <= retry.max_backoff_ms for delay in delays)
    jittered = [jittered_ms(retry, failures, f"run/a/{failures}") for failures in tries]
    assert all(
        0 <= with_jitter <= delay * (1 + jitter) + 1 for with_jitter, delay in zip(jittered, delays, strict=True)
    )


def test_b40_a_hundred_attempts_end() -> None:
    retry = Retry(max_attempts=100, backoff_ms=1_000, backoff_multiplier=2.0, jitter=1.0)
    scene = settled(flow(action("a", "boom", retry)))
    assert (scene.status, scene.effects("a")) == ("failed", 100)


# B41: attempts off by one; errors that must not be retried


@pytest.mark.parametrize(("most", "fails", "executed", "status"), [(1, 2, 1, "failed"), (3, 2, 3, "completed")])
def test_b41_max_attempts_counts_all_attempts(most: int, fails: int, executed: int, status: str) -> None:
    scene = settled(flow(action("a", "fail_n", Retry(max_attempts=most, backoff_ms=0), n=fails)))
    assert (scene.effects("a"), scene.status) == (executed, status)
    assert [row.task.attempt for row in scene.world.attempts(scene.run_id)] == list(range(1, executed + 1))


@pytest.mark.parametrize("args", [{"code": "FATAL"}, {"retryable": False}])
def test_b41_an_error_that_is_not_retryable_is_final(args: dict[str, object]) -> None:
    retry = Retry(max_attempts=5, backoff_ms=0, non_retryable_codes=("FATAL",))
    scene = settled(flow(action("a", "boom", retry, **args)))
    assert (scene.effects("a"), scene.status) == (1, "failed")


def test_b41_a_lost_worker_is_redelivered_under_the_same_attempt() -> None:
    scene = Scene(flow(action("a")))
    scene.deliver()
    lost, other = scene.world.workers
    lost.claim(1)
    lost.restart()
    scene.clock.advance(10_001)
    other.claim(1)
    other.begin(other.waiting[0])
    other.finish(other.ready)
    scene.settle()
    (row,) = scene.world.attempts(scene.run_id)
    assert (row.task.attempt, row.deliveries, row.status) == (1, 2, AttemptStatus.SUCCEEDED)
    assert scene.status == "completed"


def test_b41_an_attempt_whose_workers_all_die_is_worker_lost_and_retried() -> None:
    scene = Scene(flow(action("a", retry=Retry(max_attempts=2, backoff_ms=0))))
    scene.deliver()
    worker = scene.world.workers[0]
    for _ in range(3):
        assert worker.claim(1) == 1
        worker.restart()
        scene.clock.advance(10_001)
    scene.settle()
    first, second = scene.world.attempts(scene.run_id)
    assert first.error is not None
    assert (first.deliveries, first.error.code, second.status) == (3, "WORKER_LOST", AttemptStatus.SUCCEEDED)
    assert (scene.status, scene.faults) == ("completed", [])


def test_b41_running_past_the_timeout_is_a_failed_attempt_at_once() -> None:
    scene = Scene(flow(action("a", "slow", ms=60_000, timeout_ms=2_000)))
    scene.deliver()
    worker = scene.world.workers[0]
    worker.claim(1)
    worker.begin(worker.waiting[0])
    scene.clock.advance(2_001)
    worker.look(heed=False)
    scene.deliver()
    (row,) = scene.world.attempts(scene.run_id)
    assert row.error is not None
    assert (row.status, row.error.code, scene.steps["a"]) == (AttemptStatus.TIMED_OUT, "ATTEMPT_TIMEOUT", "timed_out")
    assert scene.status == "failed"


# B44: payload sizes


@pytest.mark.parametrize("size", [250, 260, 8_000, 9_000, 255_000, 300_000, 401_000, 1_048_576, 5_000_000])
def test_b44_outputs_up_to_five_megabytes_pass_from_step_to_step(size: int) -> None:
    parts = [action("a", "big", bytes=size), action("b", v="${{ STEPS.a.output.fill }}")]
    scene = settled(flow(*parts, edge("a", "b")))
    assert scene.status == "completed"
    assert scene.world.output(scene.run_id, "b")["v"] == "x" * size


def test_b44_a_larger_output_fails_its_step_and_an_error_edge_catches_it() -> None:
    parts = [action("a", "big", Retry(max_attempts=3, backoff_ms=0), bytes=5 * 1_048_576), action("rescue")]
    scene = settled(flow(*parts, edge("a", "rescue", ERROR)))
    error = scene.world.state(scene.run_id).root.nodes["a"].error
    assert error is not None
    assert (error.code, scene.effects("a")) == ("OUTPUT_TOO_LARGE", 1)
    assert statuses(scene, "a", "rescue") == ["failed", "completed"]
    assert scene.status == "completed"


def test_b44_sixty_steps_of_twenty_kilobytes_fit() -> None:
    parts = [action(f"s{n}", "big", bytes=20_000) for n in range(60)]
    scene = settled(flow(*parts, *[edge(f"s{n}", f"s{n + 1}") for n in range(59)]))
    assert scene.status == "completed"


def test_b44_a_huge_error_text_is_cut() -> None:
    scene = settled(flow(action("a", "boom", retryable=False, code="é" * 300_000)))
    (row,) = scene.world.attempts(scene.run_id)
    assert row.error is not None
    assert len(row.error.code.encode()) <= MAX_ERROR_TEXT_BYTES
    assert scene.status == "failed"


# B47: the cost of an expression

NESTED_ALL = "[1,2,3,4,5,6,7,8,9,10].all(a, " * 8 + "true" + ")" * 8


@pytest.mark.parametrize("source", [NESTED_ALL, '"a".matches("^(a+)+$") && ' + NESTED_ALL])
@pytest.mark.parametrize("place", ["condition", "edge", "args"])
def test_b47_an_expensive_expression_stops_in_time_with_an_error_on_its_step(source: str, place: str) -> None:
    parts: dict[str, list[Step | Edge]] = {
        "condition": [shape("a", condition=source)],
        "edge": [shape("a"), shape("b"), edge("a", "b", condition=source)],
        "args": [shape("a", source)],
    }
    begun = time.perf_counter()
    scene = settled(flow(*parts[place]))
    assert time.perf_counter() - begun < 2.0
    error = scene.world.state(scene.run_id).root.nodes["a"].error
    assert error is not None
    assert error.code.startswith("EXPRESSION_")
    assert scene.status == "failed"


def test_b47_a_run_that_computes_too_much_leaves_others_alone() -> None:
    scene = Scene(flow(shape("a", NESTED_ALL)))
    other = scene.world.trigger(scene.world.publish(flow(action("a"))), {})
    scene.settle()
    assert scene.status == "failed"
    assert scene.world.state(other).status.value == "completed"
