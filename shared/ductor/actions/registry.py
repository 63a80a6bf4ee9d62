"""The actions of this installation by name: the built-in ones, those of installed packages, those of named modules."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Final, TypeVar

from ductor.actions import arguments, core, own
from ductor.actions import http as http_request
from ductor.actions.action import Action, ActionFunction, define, origin
from ductor.actions.aws import catalog as aws_catalog
from ductor.actions.aws.access import AwsAccess, AwsSettings
from ductor.actions.connectors.catalog import Connectors, load_connectors
from ductor.actions.connectors.signed import SignedHttpRequest
from ductor.actions.errors import ActionLoadError
from ductor.actions.http import HttpRequest, HttpSettings
from ductor.model.json import JSON

__all__ = ["Action", "ActionRegistry", "HttpSettings", "action", "default_registry", "define"]

ENTRY_POINTS: Final = "ductor.actions"
"""The entry point group: each entry names a module (or something in one) whose import declares actions."""

Function = TypeVar("Function", bound=ActionFunction)

# Declared by decorators anywhere in the process; importing a module again finds nothing new, so this is kept.
_declared: Final[dict[tuple[str, str], Action]] = {}


class ActionRegistry:
    """Actions by name. Filled while a process starts, only read afterwards."""

    def __init__(self, actions: Iterable[Action] = (), connectors: Connectors | None = None) -> None:
        self.connectors = connectors or Connectors((), HttpRequest(HttpSettings()))
        self._actions: dict[str, Action] = {}
        for one in actions:
            self.register(one)

    def register(self, action: Action) -> None:
        """Raises ActionLoadError when the name is taken by another function."""
        taken = self._actions.get(action.name)
        if taken is not None and taken is not action:
            raise ActionLoadError(
                f"two actions are named {action.name!r}: {origin(taken.function)} and {origin(action.function)}; "
                "rename one of them"
            )
        self._actions[action.name] = action

    def provide(self, actions: Iterable[Action]) -> ActionRegistry:
        """Itself, with what does the work in the place of known actions. Raises ActionLoadError for an unknown name."""
        for one in actions:
            if one.name not in self._actions:
                raise ActionLoadError(f"no action {one.name!r} is there to be provided")
            self._actions[one.name] = one
        return self

    def get(self, name: str) -> Action | None:
        return self._actions.get(name)

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self._actions))

    def __contains__(self, name: str, /) -> bool:
        return name in self._actions

    def nearest(self, name: str) -> str | None:
        """The known name that is closest to an unknown one, None when nothing is similar."""
        near = difflib.get_close_matches(name[:200], self._actions, n=1)
        return near[0] if near else None

    def needs_connection(self, name: str) -> bool:
        """Whether the action cannot run without a connection."""
        return bool(self.connection_type(name))

    def connection_type(self, name: str) -> str:
        """The type of connection that a known action needs, empty when it needs none."""
        return self._actions[name].connection_type

    def default_args(self, name: str) -> dict[str, JSON]:
        """Templates for args of a known action that its author left out; empty for most actions."""
        return dict(self._actions[name].default_args)

    def validate_args(self, name: str, args: Mapping[str, JSON]) -> list[tuple[str, str]]:
        """(path, what is wrong) for each fault of the args of a definition, templates unrendered.

        What a template gives is unknown and never a fault; missing and unknown fields are found all the same. Raises
        KeyError for an unknown action.
        """
        model = self._actions[name].args_model
        return [] if model is None else arguments.check(model, args)


def action(
    name: str,
    *,
    blocking: bool = True,
    timeout_ms: int = 0,
    per_attempt_key: bool = False,
    description: str = "",
    connection_type: str = "",
) -> Callable[[Function], Function]:
    """Declare a function as the action `name`; see `Action` for the options. The function itself stays as it is.

    Every registry made afterwards by `default_registry` has it. Raises ActionLoadError for an unusable function.
    """

    def declare(function: Function) -> Function:
        made = define(
            name,
            function,
            blocking=blocking,
            timeout_ms=timeout_ms,
            per_attempt_key=per_attempt_key,
            description=description,
            connection_type=connection_type,
        )
        # A reloaded module replaces what it declared before; anything else with the same name is a duplicate.
        _declared[name, origin(function)] = made
        return function

    return declare


def default_registry(
    modules: Sequence[str] = (),
    *,
    http: HttpSettings = HttpSettings(),  # noqa: B008 - frozen
    parse_duration: Callable[[str], int | None] | None = None,
    connector_folders: Sequence[Path] = (),
    aws: AwsSettings = AwsSettings(),  # noqa: B008 - frozen
) -> ActionRegistry:
    """The built-in actions, those of installed packages (entry points) and of `modules`, which are imported.

    `parse_duration` (text to ms, None for no duration) gives core.sleep its text form; without it only milliseconds
    are accepted. `connector_folders` hold further connector files. Raises ActionLoadError naming the module that cannot
    be imported, the file that cannot be used or the name taken twice.
    """
    sender = HttpRequest(http)
    connectors = load_connectors(connector_folders, sender)
    built_in = (
        *core.actions(parse_duration),
        http_request.action(SignedHttpRequest(sender, connectors)),
        *aws_catalog.actions(AwsAccess(aws)),
        *own.actions(own.Nobody()),
    )
    registry = ActionRegistry((*built_in, *connectors.actions()), connectors)
    for entry in metadata.entry_points(group=ENTRY_POINTS):
        _load(f"entry point {entry.name!r} ({entry.value})", entry.load)
    for module in modules:
        _load(f"module {module!r}", lambda module=module: importlib.import_module(module))  # type: ignore[misc]
    for made in tuple(_declared.values()):
        registry.register(made)
    return registry


def _load(what: str, load: Callable[[], object]) -> None:
    try:
        load()
    except Exception as fault:
        raise ActionLoadError(f"the actions of {what} cannot be loaded: {type(fault).__name__}: {fault}") from fault
