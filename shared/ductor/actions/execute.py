"""The border around an action: args in, exactly representable output out, every exception turned into a step error."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ValidationError

from ductor.actions import arguments
from ductor.actions.action import Action
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError, AttemptCancelledError
from ductor.actions.exact import NotExactError, exact, holds_non_finite
from ductor.model.errors import StepError, clip, message_of, raised
from ductor.model.json import JSON

MAX_ERROR_DETAILS_BYTES: Final = 8_192
"""Largest details of an error, encoded; larger ones are left out."""

_MAX_CODE_BYTES: Final = 128


def execute(action: Action, raw_args: JSON, ctx: ActionContext) -> tuple[JSON, bytes]:
    """Run `action`: its output, sharing nothing with what the action may still hold, and the output's encoding.

    Raises ActionError `ACTION_ARGS_INVALID` or `OUTPUT_INVALID` (both not retryable), and whatever the action raises.
    The size of the output is the caller's to judge.
    """
    output = action.function(action.parse(raw_args), ctx)
    try:
        if type(output) is not dict:
            output = _object(output)
        return exact(output, "output")
    except NotExactError as fault:
        raise ActionError("OUTPUT_INVALID", f"{action.name}: {fault}", retryable=False) from None


def failure(exc: Exception) -> StepError:
    """What an attempt records for an exception. Texts are cut at 8 KB on a character boundary; never raises."""
    if isinstance(exc, ActionError):
        code = clip(str(exc.code), _MAX_CODE_BYTES) or "ACTION_FAILED"
        return StepError(code, message_of(str(exc.message)), bool(exc.retryable), _details(exc.details))
    if isinstance(exc, AttemptCancelledError):
        return StepError("CANCELLED", message_of(_text(exc)), retryable=False)
    return StepError("ACTION_FAILED", raised(exc, _text(exc)))


def _object(output: object) -> JSON:
    if isinstance(output, BaseModel):
        output = _dumped(output)
    if not isinstance(output, dict):
        raise NotExactError(f"output: the action returned {type(output).__name__}; it must return a JSON object")
    return output


def _dumped(output: BaseModel) -> JSON:
    try:
        dumped = output.model_dump(mode="json")
        if holds_non_finite(output.model_dump()):
            # In a field without a type pydantic writes NaN as null.
            raise NotExactError("output: NaN and Infinity have no JSON form")
    except (TypeError, ValueError, RecursionError) as refused:
        if isinstance(refused, NotExactError):
            raise
        raise NotExactError(f"output: {type(output).__name__} has no JSON form: {clip(str(refused), 500)}") from None
    return dumped


def _details(details: object) -> JSON:
    if details is None:
        return None
    try:
        plain, data = exact(details, "details")
    except NotExactError:
        return {"omitted": "the details have no JSON form"}
    return plain if len(data) <= MAX_ERROR_DETAILS_BYTES else {"omitted": f"the details have {len(data)} bytes"}


def _text(exc: Exception) -> str:
    if isinstance(exc, MemoryError):
        return "the action ran out of memory"
    if isinstance(exc, ValidationError):
        return arguments.described(exc)
    try:
        return str(exc)
    except Exception:  # noqa: BLE001 - an exception of the action's own making may fail to show itself
        return "an exception without a text"
