"""When a node starts and when it is skipped: joins, conditions, and arms that never come."""

from __future__ import annotations

from typing import Any

from tests.unit.engine.runs import Run

from ductor.model.attempt import AttemptStatus
from ductor.model.enums import RunStatus
from ductor.model.intent import IntentKind


def step(ref: str, **fields: Any) -> dict[str, Any]:
    return {"ref": ref, "type": "action", "action": "core.echo", **fields}


def edge(source: str, target: str, **fields: Any) -> dict[str, Any]:
    return {"source_ref": source, "target_ref": target, **fields}


def test_a_chain_runs_in_order_and_completes() -> None:
    run = Run({"steps": [step("a"), step("b")], "edges": [edge("a", "b")]})
    assert (run.status("a"), run.status("b")) == ("scheduled", "pending")
    run.succeed("a", {"x": 1})
    assert (run.status("a"), run.status("b")) == ("completed", "scheduled")
    run.succeed("b")
    assert run.state.status is RunStatus.COMPLETED


def test_a_join_waits_for_the_slow_arm_although_another_is_skipped() -> None:
    run = Run(
        {
            "steps": [step("a"), step("b", condition="false"), step("c"), step("join")],
            "edges": [edge("a", "b"), edge("a", "c"), edge("b", "join"), edge("c", "join")],
        }
    )
    run.succeed("a")
    assert (run.status("b"), run.status("c"), run.status("join")) == ("skipped", "scheduled", "pending")
    run.succeed("c")
    assert run.status("join") == "scheduled"


def test_a_join_of_all_is_skipped_when_one_arm_is() -> None:
    run = Run(
        {
            "steps": [step("a"), step("b", condition="false"), step("c"), step("join", join="all")],
            "edges": [edge("a", "b"), edge("a", "c"), edge("b", "join"), edge("c", "join")],
        }
    )
    run.succeed("a")
    run.succeed("c")
    assert run.status("join") == "skipped"
    assert run.state.status is RunStatus.COMPLETED


def test_what_lies_behind_a_skipped_step_is_skipped_too() -> None:
    run = Run(
        {
            "steps": [step("a", condition="false"), step("b"), step("c")],
            "edges": [edge("a", "b"), edge("b", "c")],
        }
    )
    assert [run.status(ref) for ref in "abc"] == ["skipped"] * 3
    assert run.state.status is RunStatus.COMPLETED


def test_a_skipped_steps_args_are_not_evaluated() -> None:
    run = Run({"steps": [step("a", condition="false", args={"x": "${{ TRIGGER.payload.nope.deep }}"})]})
    assert run.status("a") == "skipped"
    assert run.state.status is RunStatus.COMPLETED


def test_no_edge_taken_ends_the_branch_and_says_so() -> None:
    run = Run({"steps": [step("a"), step("b")], "edges": [edge("a", "b", condition="false")]})
    run.succeed("a")
    assert run.state.root.nodes["a"].no_route
    assert run.status("b") == "skipped"
    assert run.state.status is RunStatus.COMPLETED


def test_a_default_edge_is_taken_only_when_no_other_is() -> None:
    document = {
        "steps": [step("a"), step("b"), step("c")],
        "edges": [edge("a", "b", condition="STEPS.a.output.go"), edge("a", "c", type="default")],
    }
    gone, stayed = Run(document), Run(document)
    gone.succeed("a", {"go": True})
    stayed.succeed("a", {"go": False})
    assert (gone.status("b"), gone.status("c")) == ("scheduled", "skipped")
    assert (stayed.status("b"), stayed.status("c")) == ("skipped", "scheduled")


def test_an_edge_condition_on_a_missing_key_fails_the_step_that_owns_the_edge() -> None:
    run = Run(
        {
            "steps": [step("a"), step("b"), step("rescue")],
            "edges": [
                edge("a", "b", condition="TRIGGER.payload.nope == 1"),
                edge("a", "rescue", type="error"),
            ],
        },
        payload={},
    )
    run.succeed("a", {"x": 1})
    assert run.status("a") == "failed"
    assert run.error("a") == "EXPRESSION_ERROR"
    assert run.output("a") == {"x": 1}
    assert (run.status("b"), run.status("rescue")) == ("skipped", "scheduled")


def test_a_default_edge_never_handles_a_failure() -> None:
    run = Run({"steps": [step("a"), step("b")], "edges": [edge("a", "b", type="default")]})
    run.fail("a")
    assert run.state.status is RunStatus.FAILED
    assert run.status("b") == "pending"


def test_a_timeout_edge_comes_before_an_error_edge() -> None:
    run = Run(
        {
            "steps": [step("a"), step("late"), step("broken")],
            "edges": [edge("a", "late", type="timeout"), edge("a", "broken", type="error")],
        }
    )
    entry = run.state.root.nodes["a"]
    run.tell(
        IntentKind.ATTEMPT_FINISHED, node="a", attempt=1, generation=entry.generation, status=AttemptStatus.TIMED_OUT
    )
    assert run.status("a") == "timed_out"
    assert run.status("late") == "scheduled"


def test_on_error_continue_counts_as_success_and_shows_the_error() -> None:
    run = Run(
        {
            "steps": [step("a", on_error="continue"), step("b", args={"why": "${{ STEPS.a.error.code }}"})],
            "edges": [edge("a", "b")],
        }
    )
    run.fail("a", "NOPE")
    assert run.status("a") == "completed"
    assert run.state.root.nodes["b"].input.value == {"why": "NOPE"}  # type: ignore[union-attr]


def test_a_retry_waits_for_its_backoff_and_gets_the_very_same_input() -> None:
    run = Run({"steps": [step("a", retry_max_attempts=2, retry_jitter=0, args={"at": "${{ RUN.now }}"})], "edges": []})
    first = run.state.root.nodes["a"].input
    run.fail("a")
    assert run.status("a") == "retrying"
    due = run.state.root.nodes["a"].deadline
    assert due == run.now + 1_000
    run.wake(due)
    assert run.status("a") == "scheduled"
    assert run.state.root.nodes["a"].attempt == 2
    assert run.state.root.nodes["a"].input == first
    run.fail("a")
    assert run.state.status is RunStatus.FAILED


def test_a_late_result_of_an_earlier_attempt_changes_nothing() -> None:
    run = Run({"steps": [step("a", retry_max_attempts=3, retry_backoff_ms=0)], "edges": []})
    run.fail("a")
    result = run.tell(IntentKind.ATTEMPT_FINISHED, node="a", attempt=1, generation=1, status=AttemptStatus.SUCCEEDED)
    assert result.transitions == ()
    assert run.status("a") == "scheduled"
