"""What a worker hands to an action, and how each way to end becomes a result."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.worker.desk import RUN, Desk, does, raises, returns

from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.app.claims import Finished
from ductor.model.errors import StepError
from ductor.model.payload import MAX_OUTPUT_BYTES, BlobRef, RowRef


def executed(desk: Desk, **task: Any) -> Finished:
    desk.send(**task)
    worker = desk.worker()
    return worker.execute(desk.claim_one(worker))


def error_of(desk: Desk, **task: Any) -> StepError:
    error = executed(desk, **task).error
    assert error is not None
    return error


def test_an_unknown_action_is_not_retried() -> None:
    error = error_of(Desk(), action="no.such")
    assert (error.code, error.retryable) == ("ACTION_UNKNOWN", False)
    assert "no.such" in error.message


def test_an_error_of_the_action_is_recorded_as_it_says() -> None:
    error = error_of(Desk(raises(ActionError("CARD_DECLINED", "no money", False, {"bank": "x"}))))
    assert error == StepError("CARD_DECLINED", "no money", False, {"bank": "x"})


def test_any_other_exception_is_a_retryable_failure_that_names_it() -> None:
    error = error_of(Desk(raises(ValueError("odd"))))
    assert (error.code, error.message, error.retryable) == ("ACTION_FAILED", "ValueError: odd", True)


def test_an_action_that_exits_fails_its_attempt_and_not_the_worker() -> None:
    error = error_of(Desk(raises(SystemExit(3))))
    assert (error.code, error.retryable) == ("ACTION_FAILED", True)
    assert "SystemExit" in error.message


def test_a_long_error_text_is_cut_on_a_character_boundary() -> None:
    error = error_of(Desk(raises(ValueError("€" * 200_000))))
    assert 8_180 < len(error.message.encode()) <= 8_192


@pytest.mark.parametrize(
    "output",
    [
        [],
        "text",
        None,
        {"n": float("nan")},
        {"n": float("-inf")},
        {1: "number for a key"},
        {"n": 2**64},
        {"n": -(2**63) - 1},
        {"t": "\ud800"},
        {"o": object()},
        {"o": {1, 2}},
    ],
)
def test_an_output_that_is_no_exact_json_object_fails_the_attempt_for_good(output: Any) -> None:
    error = error_of(Desk(returns(output)))
    assert (error.code, error.retryable) == ("OUTPUT_INVALID", False)


def test_an_output_that_holds_itself_fails_the_attempt_for_good() -> None:
    circle: dict[str, Any] = {}
    circle["self"] = circle
    assert error_of(Desk(returns(circle))).code == "OUTPUT_INVALID"


def test_an_output_over_five_megabytes_fails_the_attempt_for_good() -> None:
    error = error_of(Desk(returns({"x": "y" * MAX_OUTPUT_BYTES})))
    assert (error.code, error.retryable) == ("OUTPUT_TOO_LARGE", False)


@pytest.mark.parametrize("size", [100, 5_000, 100_000])
def test_the_input_is_read_wherever_it_is_kept(size: int) -> None:
    desk = Desk(does(lambda args, ctx: {"length": len(args["x"])}))
    kept = desk.payloads.keep(RUN, {"x": "y" * size})
    assert executed(desk, args=kept).output == {"length": size}


@pytest.mark.parametrize("lost", [RowRef("P#gone", 300), BlobRef("run-1/gone", 9_000)])
def test_an_input_that_is_gone_fails_the_attempt_for_good(lost: RowRef | BlobRef) -> None:
    error = error_of(Desk(returns({})), args=lost)
    assert (error.code, error.retryable) == ("INPUT_MISSING", False)


def test_the_action_learns_which_attempt_it_is() -> None:
    seen: list[ActionContext] = []

    def run(args: dict[str, Any], ctx: ActionContext) -> dict[str, Any]:
        seen.append(ctx)
        return {}

    desk = Desk(does(run))
    executed(desk, attempt=4, timeout_ms=5_000)
    (ctx,) = seen
    assert (ctx.run_id, ctx.tenant, ctx.node, ctx.attempt, ctx.deliveries) == (RUN, "t", "n", 4, 1)
    assert (ctx.idempotency_key, ctx.deadline) == (f"{RUN}/n", desk.clock.now + 5_000)


def keys_over_attempts(**options: Any) -> list[str]:
    keys: list[str] = []

    def run(args: dict[str, Any], ctx: ActionContext) -> dict[str, Any]:
        keys.append(ctx.idempotency_key)
        return {}

    desk = Desk(does(run, **options))
    for attempt in (1, 2):
        executed(desk, attempt=attempt)
    desk.lose_lease()
    worker = desk.worker("b")
    for claimed in desk.claim(worker):
        worker.execute(claimed)
    return keys


def test_the_idempotency_key_is_the_same_for_every_attempt_and_delivery() -> None:
    assert set(keys_over_attempts()) == {f"{RUN}/n"}


def test_an_action_may_ask_for_a_key_per_attempt() -> None:
    first, second, *redelivered = keys_over_attempts(per_attempt_key=True)
    assert first != second
    assert sorted(redelivered) == sorted([first, second])


def test_the_timeout_of_the_step_wins_over_that_of_the_action() -> None:
    deadlines: list[int] = []

    def run(args: dict[str, Any], ctx: ActionContext) -> dict[str, Any]:
        deadlines.append(ctx.deadline - desk.clock.now)
        return {}

    desk = Desk(does(run, timeout_ms=3_000))
    executed(desk, attempt=1)
    executed(desk, attempt=2, timeout_ms=1_000)
    assert deadlines == [3_000, 1_000]


def test_a_takeover_hands_the_last_heartbeat_to_the_action() -> None:
    seen: list[Any] = []

    def run(args: dict[str, Any], ctx: ActionContext) -> dict[str, Any]:
        seen.append(ctx.last_heartbeat)
        desk.clock.advance(1_000)
        ctx.heartbeat({"page": ctx.deliveries})
        return {}

    desk = Desk(does(run))
    executed(desk)
    desk.lose_lease()
    worker = desk.worker("b")
    worker.execute(desk.claim_one(worker))
    assert seen == [None, {"page": 1}]
