"""Scatter and gather: items, windows, failures, nesting, order; every tick also folds its history."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.engine.runs import Run

from ductor.model.command import RevokeAttempt, StartAttempt


def action(ref: str, **fields: Any) -> dict[str, Any]:
    return {"ref": ref, "type": "action", "action": "core.echo", "args": {"v": "${{ ITEM }}"}, **fields}


def edge(source: str, target: str, kind: str = "success", **fields: Any) -> dict[str, Any]:
    return {"source_ref": source, "target_ref": target, "type": kind, **fields}


def scattered(
    scatter: dict[str, Any] | None = None, gather: dict[str, Any] | None = None, **fields: Any
) -> dict[str, Any]:
    """split -> charge (per item) -> all -> after."""
    return {
        "steps": [
            {"ref": "split", "type": "scatter", "args": {"items_expr": "TRIGGER.payload", **(scatter or {})}, **fields},
            action("charge"),
            {"ref": "all", "type": "gather", "args": gather or {}},
            action("after", args={}),
        ],
        "edges": [edge("split", "charge"), edge("charge", "all"), edge("all", "after")],
    }


def started(run: Run) -> list[str]:
    return [command.node for command in run.commands if isinstance(command, StartAttempt)]


def revoked(run: Run) -> list[str]:
    return [command.node for command in run.commands if isinstance(command, RevokeAttempt)]


def test_one_scope_per_item_and_results_in_item_order() -> None:
    run = Run(scattered(), [10, 20, 30])
    assert started(run) == ["charge@0", "charge@1", "charge@2"]
    run.succeed("charge@2", {"n": 3})
    run.succeed("charge@0", {"n": 1})
    assert run.status("all") == "pending"
    run.succeed("charge@1", {"n": 2})
    assert run.output("split") == {"count": 3}
    assert run.output("all") == {"results": [{"n": 1}, {"n": 2}, {"n": 3}], "errors": [], "count": 3}
    assert started(run) == ["after"]
    run.succeed("after")
    assert run.state.status == "completed"


def test_item_and_index_are_bound_in_the_body_and_in_output_expr() -> None:
    document = scattered(gather={"output_expr": "{'i': INDEX, 'item': ITEM, 'n': STEPS.charge.output.n}"})
    document["steps"][1]["args"] = {"item": "${{ ITEM }}", "index": "${{ INDEX }}"}
    run = Run(document, ["a", "b"])
    assert run.input("charge@1") == {"item": "b", "index": 1}
    run.succeed("charge@0", {"n": 1})
    run.succeed("charge@1", {"n": 2})
    assert run.output("all")["results"] == [{"i": 0, "item": "a", "n": 1}, {"i": 1, "item": "b", "n": 2}]


@pytest.mark.parametrize("items", [None, "text", {"a": 1}, 3, True])
def test_what_is_no_list_fails_the_scatter(items: Any) -> None:
    run = Run(scattered(), items)
    assert (run.status("split"), run.error("split")) == ("failed", "SCATTER_ITEMS_INVALID")
    assert run.state.status == "failed"


def test_an_empty_list_gathers_an_empty_list_at_once() -> None:
    run = Run(scattered(), [])
    assert run.output("all") == {"results": [], "errors": [], "count": 0}
    assert started(run) == ["after"]


def test_a_list_of_one_stays_a_list() -> None:
    run = Run(scattered(), [7])
    run.succeed("charge@0", {"x": [1, [2]]})
    assert run.output("all")["results"] == [{"x": [1, [2]]}]


def test_the_window_slides() -> None:
    run = Run(scattered({"max_concurrency": 2}), [1, 2, 3, 4])
    assert started(run) == ["charge@0", "charge@1"]
    run.succeed("charge@1")
    assert started(run) == ["charge@2"]
    run.succeed("charge@0")
    assert started(run) == ["charge@3"]


def test_fail_fast_starts_no_further_item_and_names_the_item() -> None:
    run = Run(scattered({"max_concurrency": 1}), [1, 2, 3, 4])
    run.succeed("charge@0")
    run.succeed("charge@1")
    run.fail("charge@2", "BOOM", retryable=False)
    assert run.status("charge@3") == "pending"
    assert (run.status("split"), run.error("split")) == ("failed", "ITEMS_FAILED")
    error = run.state.root.nodes["split"].error
    assert error is not None
    assert error.details["index"] == 2
    assert run.state.status == "failed"


def test_fail_fast_drains_live_items_before_the_run_ends() -> None:
    run = Run(scattered(), [1, 2, 3, 4])
    run.fail("charge@2", retryable=False)
    assert sorted(revoked(run)) == ["charge@0", "charge@1", "charge@3"]
    assert run.state.status == "running"
    run.revoke("charge@0")
    run.succeed("charge@1")
    assert run.status("charge@1") == "completed"
    run.revoke("charge@3")
    assert run.state.status == "failed"


def test_an_error_edge_of_the_scatter_takes_the_failure_and_the_gather_is_skipped() -> None:
    document = scattered()
    document["steps"].append(action("rescue", args={}))
    document["edges"].append(edge("split", "rescue", "error"))
    run = Run(document, [1, 2])
    run.fail("charge@0", retryable=False)
    assert "rescue" in started(run)
    assert run.status("all") == "skipped"
    run.succeed("rescue")
    assert run.state.status == "running"
    run.revoke("charge@1")
    assert run.state.status == "completed"


@pytest.mark.parametrize("tolerated", [1, "34%"])
def test_a_tolerated_failure_leaves_null_and_a_typed_error(tolerated: Any) -> None:
    run = Run(scattered({"tolerated_failures": tolerated}), [1, 2, 3])
    run.succeed("charge@0", {"n": 1})
    run.fail("charge@1", "BOOM", retryable=False)
    run.succeed("charge@2", {"n": 3})
    output = run.output("all")
    assert output["results"] == [{"n": 1}, None, {"n": 3}]
    assert [(error["index"], error["code"]) for error in output["errors"]] == [(1, "BOOM")]


def test_one_failure_more_than_tolerated_fails() -> None:
    run = Run(scattered({"tolerated_failures": 1}), [1, 2, 3])
    run.fail("charge@0", retryable=False)
    assert run.status("split") == "waiting"
    run.fail("charge@1", retryable=False)
    assert run.status("split") == "failed"


def test_any_is_met_by_the_first_success() -> None:
    run = Run(scattered(gather={"policy": "any"}), [1, 2, 3])
    run.fail("charge@0", retryable=False)
    run.succeed("charge@1", {"n": 2})
    assert run.output("all")["results"] == [None, {"n": 2}, None]
    assert revoked(run) == ["charge@2"]
    assert [error["code"] for error in run.output("all")["errors"]] == ["BOOM", "ITEM_CANCELLED"]
    assert "after" in started(run)


def test_a_quorum_that_cannot_be_met_fails_at_once() -> None:
    run = Run(scattered(gather={"policy": "quorum", "quorum": 2}), [1, 2, 3])
    run.fail("charge@0", retryable=False)
    run.fail("charge@1", retryable=False)
    assert run.status("split") == "failed"
    assert revoked(run) == ["charge@2"]


def nested() -> dict[str, Any]:
    return {
        "steps": [
            {"ref": "outer", "type": "scatter", "args": {"items_expr": "TRIGGER.payload"}},
            {"ref": "inner", "type": "scatter", "args": {"items_expr": "ITEM"}},
            action(
                "work", args={"v": "${{ ITEM }}", "of": "${{ STEPS.outer.item }}", "at": "${{ STEPS.outer.index }}"}
            ),
            {"ref": "inner_all", "type": "gather", "args": {}},
            {"ref": "outer_all", "type": "gather", "args": {"output_expr": "STEPS.inner_all.output.results"}},
        ],
        "edges": [
            edge("outer", "inner"),
            edge("inner", "work"),
            edge("work", "inner_all"),
            edge("inner_all", "outer_all"),
        ],
    }


def test_nested_scatters() -> None:
    run = Run(nested(), [[1, 2], [], [3]])
    assert started(run) == ["work@0.0", "work@0.1", "work@2.0"]
    assert run.input("work@2.0") == {"v": 3, "of": [3], "at": 2}
    for node, n in (("work@2.0", 3), ("work@0.1", 2), ("work@0.0", 1)):
        run.succeed(node, {"n": n})
    assert run.output("outer_all")["results"] == [[{"n": 1}, {"n": 2}], [], [{"n": 3}]]
    assert run.state.status == "completed"


def test_a_failure_inside_a_nested_scatter_closes_both() -> None:
    run = Run(nested(), [[1, 2], [3]])
    run.fail("work@0.0", retryable=False)
    assert sorted(revoked(run)) == ["work@0.1", "work@1.0"]
    run.revoke("work@0.1")
    run.revoke("work@1.0")
    assert (run.status("outer"), run.state.status.value) == ("failed", "failed")
    assert run.status("inner@1") == "cancelled"


def test_cancel_closes_scopes_and_drains() -> None:
    run = Run(scattered(), [1, 2])
    run.operate("cancel")
    assert sorted(revoked(run)) == ["charge@0", "charge@1"]
    run.revoke("charge@0")
    run.revoke("charge@1")
    assert run.state.status == "cancelled"


def test_terminate_ends_at_once_and_closes_scopes_afterwards() -> None:
    run = Run(scattered(), [1, 2])
    run.operate("terminate")
    assert run.state.status == "terminated"
    assert run.status("charge@1") == "cancelled"
    assert sorted(revoked(run)) == ["charge@0", "charge@1"]


def test_a_redrive_runs_only_what_had_not_succeeded() -> None:
    run = Run(scattered(), [1, 2, 3])
    run.succeed("charge@0", {"n": 1})
    run.fail("charge@1", retryable=False)
    run.revoke("charge@2")
    run.operate("redrive")
    assert started(run) == ["charge@1", "charge@2"]
    run.succeed("charge@1", {"n": 2})
    run.succeed("charge@2", {"n": 3})
    assert run.output("all")["results"] == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_conditions_on_the_edges_into_the_body_choose_per_item() -> None:
    document = scattered()
    document["steps"].insert(2, action("refund"))
    document["edges"] = [
        edge("split", "charge", condition="ITEM > 0"),
        edge("split", "refund", condition="ITEM <= 0"),
        edge("charge", "all"),
        edge("refund", "all"),
        edge("all", "after"),
    ]
    run = Run(document, [5, -5])
    assert started(run) == ["charge@0", "refund@1"]
    run.succeed("charge@0", {"c": 1})
    run.succeed("refund@1", {"r": 1})
    assert run.output("all")["results"] == [{"c": 1}, {"r": 1}]


def drain(run: Run) -> None:
    """Nudge the run until it asks for no more."""
    while run.nudged:
        run.nudge()


def test_a_large_scatter_is_spread_over_ticks() -> None:
    run = Run(scattered(), list(range(250)))
    total = started(run)
    while run.nudged:
        run.nudge()
        total += started(run)
    assert len(total) == 250
    for index in range(250):
        run.succeed(f"charge@{index}", {"n": index})
    drain(run)
    assert [result["n"] for result in run.output("all")["results"]] == list(range(250))


def test_a_steps_failure_that_an_edge_in_the_body_handles_is_no_failed_item() -> None:
    document = scattered()
    document["steps"].insert(2, action("fallback"))
    document["edges"] += [edge("charge", "fallback", "error"), edge("fallback", "all")]
    run = Run(document, [1])
    run.fail("charge@0", retryable=False)
    assert started(run) == ["fallback@0"]
    run.succeed("fallback@0", {"f": 1})
    assert run.output("all")["results"] == [{"f": 1}]
