"""One action: a Python function, the model of its args, and how a worker treats it."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from pydantic import BaseModel

from ductor.actions import arguments
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError, ActionLoadError
from ductor.model.json import JSON, decode, encode

ActionFunction = Callable[[Any, ActionContext], Any]

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*", re.ASCII)
_MAX_NAME: Final = 128
_MAX_SHOWN_FAULTS: Final = 20


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """A registered action.

    `function` takes the parsed args and an ActionContext and returns a JSON object or a pydantic model. `args_model`
    None: the args are a plain dict, anything in it is accepted. `blocking` False promises that the function never
    waits, so a worker may run it without a thread of its own. `timeout_ms` 0: the worker's default.
    `per_attempt_key` True: each retry has an idempotency key of its own. `connection_type`: the type of connection that
    it cannot run without, empty for none. `default_args`: templates for args that a definition leaves out.
    """

    name: str
    function: ActionFunction
    args_model: type[BaseModel] | None = None
    blocking: bool = True
    timeout_ms: int = 0
    per_attempt_key: bool = False
    description: str = ""
    connection_type: str = ""
    default_args: Mapping[str, JSON] = msgspec.field(default_factory=dict)

    def parse(self, args: JSON) -> BaseModel | dict[str, JSON]:
        """The args as the function wants them, sharing nothing with `args`.

        Raises ActionError `ACTION_ARGS_INVALID` (not retryable) with a `{path, message}` for each fault.
        """
        if not isinstance(args, dict):
            raise _refused(self.name, [("", "must be an object")])
        if self.args_model is None:
            copy: dict[str, JSON] = decode(encode(args))
            return copy
        parsed = arguments.parse(self.args_model, args)
        if isinstance(parsed, list):
            raise _refused(self.name, parsed)
        return parsed


def define(
    name: str,
    function: ActionFunction,
    *,
    blocking: bool = True,
    timeout_ms: int = 0,
    per_attempt_key: bool = False,
    description: str = "",
    connection_type: str = "",
) -> Action:
    """An action from a function `(args, ctx)`; the annotation of `args` is its pydantic model, or a plain dict.

    The description defaults to the first line of the docstring. Raises ActionLoadError for a function that no worker
    could call.
    """
    if len(name) > _MAX_NAME or _NAME.fullmatch(name) is None:
        raise ActionLoadError(f"{name!r} is no action name; use letters, digits, _ and -, in parts joined by dots")
    if timeout_ms < 0:
        raise ActionLoadError(f"action {name!r}: timeout_ms is {timeout_ms}; use 0 for the default, or milliseconds")
    return Action(
        name=name,
        function=function,
        args_model=_args_model(name, function),
        blocking=blocking,
        timeout_ms=timeout_ms,
        per_attempt_key=per_attempt_key,
        description=description or (inspect.getdoc(function) or "").partition("\n")[0],
        connection_type=connection_type,
    )


def origin(function: ActionFunction) -> str:
    """Where a function was written, for messages."""
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', repr(function))}"


def _args_model(name: str, function: ActionFunction) -> type[BaseModel] | None:
    where = f"action {name!r} ({origin(function)})"
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise ActionLoadError(f"{where} is async; an action is a plain function that a worker thread calls")
    parameters = list(inspect.signature(function).parameters.values())
    if len([one for one in parameters if one.default is one.empty]) > 2 or not _takes_two(parameters):
        raise ActionLoadError(f"{where} must take two arguments: (args, ctx)")
    try:
        annotation = typing.get_type_hints(function).get(parameters[0].name, dict)
    except (NameError, TypeError) as fault:
        raise ActionLoadError(f"{where}: its annotations cannot be resolved: {fault}") from fault
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if annotation is Any or annotation is dict or typing.get_origin(annotation) is dict:
        return None
    raise ActionLoadError(f"{where}: annotate its first argument with a pydantic model or dict, not {annotation!r}")


def _takes_two(parameters: list[inspect.Parameter]) -> bool:
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return len(parameters) >= 2 and all(one.kind in positional for one in parameters[:2])


def _refused(name: str, faults: list[tuple[str, str]]) -> ActionError:
    shown = faults[:_MAX_SHOWN_FAULTS]
    text = "; ".join(f"{path}: {message}" if path else message for path, message in shown)
    details = [{"path": path, "message": message} for path, message in shown]
    return ActionError("ACTION_ARGS_INVALID", f"{name} refuses its args: {text}", retryable=False, details=details)
