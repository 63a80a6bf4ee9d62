"""Race, and gathers of plain branches: the first success wins, losers stop whatever they do."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.engine.runs import START, Run
from tests.unit.engine.test_scatter import action, edge, revoked, started


def race(*arms: dict[str, Any], args: dict[str, Any] | None = None, kind: str = "race") -> dict[str, Any]:
    """The arms all start with the run and meet in `win`, which `after` follows."""
    return {
        "steps": [*arms, {"ref": "win", "type": kind, "args": args or {}}, action("after", args={})],
        "edges": [*(edge(arm["ref"], "win") for arm in arms), edge("win", "after")],
    }


def arm(ref: str, **fields: Any) -> dict[str, Any]:
    return action(ref, args={}, **fields)


TIMER = {"ref": "timer", "type": "wait", "args": {"duration": "2s"}}


def test_the_first_success_wins_and_the_run_does_not_wait_for_losers() -> None:
    run = Run(race(arm("a"), arm("b")))
    run.succeed("b", {"n": 2})
    assert run.output("win") == {"winner": "b", "output": {"n": 2}}
    assert (run.status("a"), revoked(run), started(run)) == ("cancelled", ["a"], ["after"])
    run.succeed("after")
    assert run.state.status == "completed"


def test_a_late_result_of_a_loser_changes_nothing() -> None:
    run = Run(race(arm("a"), arm("b")))
    run.succeed("b")
    entry = run.entry("a")
    assert entry is not None
    before = run.state.seq
    run.succeed("a")
    assert run.state.seq == before


def test_the_timer_arm_fires() -> None:
    run = Run(race(arm("slow"), TIMER))
    run.wake(START + 2_000)
    assert run.output("win")["winner"] == "timer"
    assert revoked(run) == ["slow"]


def test_a_loser_in_backoff_never_tries_again() -> None:
    run = Run(race(arm("a", retry_max_attempts=5, retry_backoff_ms=30_000), arm("b")))
    run.fail("a")
    run.succeed("b")
    assert run.status("a") == "cancelled"
    run.wake(START + 60_000)
    assert started(run) == []


def test_of_two_instant_branches_the_first_in_definition_order_wins() -> None:
    shape = {"type": "dataflow", "args": {"operation": "project", "project": {"v": "1"}}}
    run = Run(race({"ref": "x", **shape}, {"ref": "y", **shape}))
    assert run.output("win")["winner"] == "x"


def test_a_failed_branch_does_not_fail_the_run_while_another_may_win() -> None:
    run = Run(race(arm("a"), arm("b")))
    run.fail("a", retryable=False)
    assert run.state.status == "running"
    run.succeed("b", {"n": 1})
    assert run.output("win")["winner"] == "b"


def test_when_all_branches_fail_the_race_names_each() -> None:
    run = Run(race(arm("a"), arm("b")))
    run.fail("a", "ONE", retryable=False)
    run.fail("b", "TWO", retryable=False)
    entry = run.entry("win")
    assert entry is not None
    assert entry.error is not None
    assert entry.error.code == "RACE_FAILED"
    assert [found["code"] for found in entry.error.details["branches"]] == ["ONE", "TWO"]
    assert run.state.status == "failed"


def test_a_redrive_runs_the_failed_branches_again() -> None:
    run = Run(race(arm("a"), arm("b")))
    run.fail("a", retryable=False)
    run.fail("b", retryable=False)
    run.operate("redrive")
    assert started(run) == ["a", "b"]
    run.succeed("a")
    assert run.status("win") == "completed"


def test_a_redrive_leaves_losers_alone() -> None:
    run = Run(race(arm("a"), arm("b")))
    run.succeed("a")
    run.fail("after", retryable=False)
    run.operate("redrive")
    assert started(run) == ["after"]
    assert run.status("b") == "cancelled"


def test_a_race_of_skipped_branches_is_skipped() -> None:
    run = Run(race(arm("a", condition="false"), arm("b", condition="false")))
    assert run.status("win") == "skipped"
    assert run.state.status == "completed"


def test_losers_run_on_when_they_are_not_to_be_cancelled() -> None:
    run = Run(race(arm("a"), arm("b"), args={"cancel_losers": False}))
    run.succeed("a")
    assert (revoked(run), run.status("b")) == ([], "scheduled")
    run.succeed("after")
    assert run.state.status == "running"
    run.fail("b", retryable=False)
    assert run.state.status == "completed"


def test_a_whole_branch_loses() -> None:
    document = race(arm("a2"), arm("b"))
    document["steps"].insert(0, arm("a1"))
    document["edges"].append(edge("a1", "a2"))
    run = Run(document)
    run.succeed("b")
    assert (run.status("a1"), run.status("a2")) == ("cancelled", "cancelled")
    assert "after" in started(run)


def test_a_scatter_in_a_losing_branch_is_closed() -> None:
    run = Run(
        {
            "steps": [
                {"ref": "split", "type": "scatter", "args": {"items_expr": "[1, 2]"}},
                action("work"),
                {"ref": "all", "type": "gather", "args": {}},
                arm("b"),
                {"ref": "win", "type": "race", "args": {}},
            ],
            "edges": [edge("split", "work"), edge("work", "all"), edge("all", "win"), edge("b", "win")],
        }
    )
    run.succeed("b")
    assert (run.status("split"), run.status("all")) == ("cancelled", "cancelled")
    assert sorted(revoked(run)) == ["work@0", "work@1"]
    run.revoke("work@0")
    run.revoke("work@1")
    assert run.state.status == "completed"


def test_a_race_in_a_scatter_runs_once_per_item() -> None:
    run = Run(
        {
            "steps": [
                {"ref": "split", "type": "scatter", "args": {"items_expr": "[1, 2]"}},
                arm("a"),
                arm("b"),
                {"ref": "win", "type": "race", "args": {}},
                {"ref": "all", "type": "gather", "args": {"output_expr": "STEPS.win.output.winner"}},
            ],
            "edges": [
                edge("split", "a"),
                edge("split", "b"),
                edge("a", "win"),
                edge("b", "win"),
                edge("win", "all"),
            ],
        }
    )
    run.succeed("a@0")
    run.succeed("b@1")
    assert run.output("all")["results"] == ["a", "b"]
    assert run.status("b@0") == "cancelled"


def test_a_plain_gather_joins_what_arrived() -> None:
    run = Run(race(arm("a"), arm("b", condition="false"), kind="gather"))
    run.succeed("a", {"n": 1})
    assert run.output("win") == {"results": [{"n": 1}, None], "errors": [], "count": 2}


@pytest.mark.parametrize(
    ("policy", "wins"), [({"policy": "any"}, ["b"]), ({"policy": "quorum", "quorum": 2}, ["b", "c"])]
)
def test_a_plain_gather_is_decided_as_soon_as_its_policy_is_met(policy: dict[str, Any], wins: list[str]) -> None:
    run = Run(race(arm("a"), arm("b"), arm("c"), args=policy, kind="gather"))
    run.fail("a", retryable=False)
    for ref in wins:
        assert run.status("win") == "pending"
        run.succeed(ref, {"r": ref})
    assert run.status("win") == "completed"
    assert [error["code"] for error in run.output("win")["errors"]] == ["BOOM"]


def test_a_plain_gather_fails_as_soon_as_its_quorum_is_impossible() -> None:
    run = Run(race(arm("a"), arm("b"), arm("c"), args={"policy": "quorum", "quorum": 2}, kind="gather"))
    run.fail("a", retryable=False)
    run.fail("b", retryable=False)
    assert run.error("win") == "GATHER_FAILED"
    assert run.status("c") == "cancelled"
