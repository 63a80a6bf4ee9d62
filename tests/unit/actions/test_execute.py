"""The border around an action: what comes out, and what an exception becomes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, RootModel

from ductor.actions.action import Action
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError, AttemptCancelledError
from ductor.actions.execute import execute, failure
from ductor.model.errors import MAX_ERROR_TEXT_BYTES


class Invoice(BaseModel):
    number: str = "A-1"
    total: float = 1.5
    note: Any = None


class Positive(BaseModel):
    n: int


def returning(value: Any) -> Action:
    return Action(name="team.run", function=lambda args, ctx: value)


def refusal(call: Callable[[], object]) -> ActionError:
    with pytest.raises(ActionError) as refused:
        call()
    return refused.value


def test_the_output_comes_with_its_encoding() -> None:
    action = Action(name="team.run", function=lambda args, ctx: {**args, "attempt": ctx.attempt})

    assert execute(action, {"a": 1}, ActionContext(attempt=2)) == ({"a": 1, "attempt": 2}, b'{"a":1,"attempt":2}')


def test_a_model_is_written_in_json_mode() -> None:
    value, data = execute(returning(Invoice()), {}, ActionContext())

    assert value == {"number": "A-1", "total": 1.5, "note": None}
    assert data == b'{"number":"A-1","total":1.5,"note":null}'


@pytest.mark.parametrize(
    "output",
    [
        None,
        "text",
        [1],
        3,
        {"a": math.nan},
        {"a": b"x"},
        Invoice(total=math.nan),
        Invoice(note=math.inf),
        Invoice(note=[{"deep": math.nan}]),
        Invoice(note=object()),
        Invoice(note=2**70),
        Invoice(note="\ud800"),
        RootModel[list[int]]([1]),
    ],
)
def test_an_output_that_is_no_exact_json_object_is_invalid(output: Any) -> None:
    refused = refusal(lambda: execute(returning(output), {}, ActionContext()))

    assert (refused.code, refused.retryable) == ("OUTPUT_INVALID", False)
    assert refused.message.startswith("team.run: output")


def test_refused_args_never_reach_the_function() -> None:
    action = Action(name="team.run", function=lambda args, ctx: 1 / 0, args_model=Positive)

    assert refusal(lambda: execute(action, {"n": "x"}, ActionContext())).code == "ACTION_ARGS_INVALID"


def test_an_action_error_is_recorded_as_it_says() -> None:
    error = failure(ActionError("CARD_DECLINED", "no funds", retryable=False, details={"bank": "x"}))

    assert (error.code, error.message, error.retryable, error.details) == (
        "CARD_DECLINED",
        "no funds",
        False,
        {"bank": "x"},
    )


def test_a_cancelled_attempt_is_not_retried() -> None:
    error = failure(AttemptCancelledError("stop"))

    assert (error.code, error.message, error.retryable) == ("CANCELLED", "stop", False)


@pytest.mark.parametrize(
    ("exc", "text"),
    [
        (ValueError("bad"), "ValueError: bad"),
        (KeyError("k"), "KeyError: 'k'"),
        (MemoryError(), "MemoryError: the action ran out of memory"),
        (RecursionError("maximum recursion depth exceeded"), "RecursionError: maximum recursion depth exceeded"),
    ],
)
def test_any_other_exception_is_a_retryable_failure_with_its_type(exc: Exception, text: str) -> None:
    error = failure(exc)

    assert (error.code, error.message, error.retryable) == ("ACTION_FAILED", text, True)


def test_a_long_text_is_cut_on_a_character_boundary() -> None:
    error = failure(ValueError("é" * 300_000))

    assert len(error.message.encode()) in (MAX_ERROR_TEXT_BYTES, MAX_ERROR_TEXT_BYTES - 1)
    assert error.message.endswith("é")


def test_lone_surrogates_in_a_text_can_be_stored() -> None:
    assert failure(ValueError("\ud800")).message.encode() == b"ValueError: ?"
    assert failure(ActionError("\ud800", "\ud800")).code == "?"


@pytest.mark.parametrize("details", [object(), {"a": math.nan}, {"a": "x" * 9_000}])
def test_details_that_cannot_be_stored_are_left_out(details: Any) -> None:
    assert set(failure(ActionError("X", "x", details=details)).details) == {"omitted"}


def test_an_exception_that_cannot_show_itself_is_recorded() -> None:
    class Shy(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert failure(Shy()).message == "Shy: an exception without a text"


def test_a_validation_inside_the_action_shows_no_values() -> None:
    with pytest.raises(ValueError, match="validation error") as refused:
        Positive.model_validate({"n": "secret-token"})

    message = failure(refused.value).message

    assert message.startswith("ValidationError: n: ")
    assert "secret-token" not in message


@pytest.mark.parametrize(
    ("exc", "message"),
    [
        (ActionError("BUSY", ""), "no message was given"),
        (AttemptCancelledError(), "no message was given"),
        (ValueError(), "ValueError"),
        (ValueError(" "), "ValueError"),
    ],
)
def test_what_says_nothing_gets_a_text(exc: Exception, message: str) -> None:
    assert failure(exc).message == message
