"""Checks args against an action's pydantic model, before a run (templates unrendered) and when the action runs.

No fault ever repeats a value: args may hold what nobody should read in a log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from pydantic import AliasChoices, AliasPath, BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ductor.model.json import JSON, encode

Fault = tuple[str, str]
"""Path below the args (`items[0].amount`, empty for the args themselves) and what is wrong."""

Model = TypeVar("Model", bound=BaseModel)

_OPEN: Final = "${{"
_LITERAL: Final = "$${{"
# These are about the object around the field, whatever stands in the field itself.
_SHAPE_FAULTS: Final = frozenset({"missing", "extra_forbidden"})


def parse(model: type[Model], args: dict[str, JSON]) -> Model | list[Fault]:
    """The model, or every fault. A field that the model does not know is a fault unless the model says otherwise."""
    faults = _unknown_fields(model, args)
    try:
        parsed = model.model_validate_json(encode(args))
    except ValidationError as refused:
        return [*faults, *((_path(error), _message(error)) for error in _errors(refused) if _new(error, faults))]
    return faults or parsed


def check(model: type[BaseModel], args: Mapping[str, JSON]) -> list[Fault]:
    """Faults of args that may hold templates: what a template will become is unknown, so it is never a fault."""
    faults = _unknown_fields(model, args)
    try:
        model.model_validate_json(encode(dict(args)))
    except ValidationError as refused:
        known = (error for error in _errors(refused) if not _depends_on_template(error, args))
        return [*faults, *((_path(error), _message(error)) for error in known if _new(error, faults))]
    except Exception as fault:  # noqa: BLE001 - a model's own validators may raise anything; it becomes a fault
        return faults if has_template(args) else [*faults, ("", f"cannot be checked: {type(fault).__name__}")]
    return faults


def described(refused: ValidationError) -> str:
    """The faults of a validation in one line, without the values that pydantic's own text would show."""
    return "; ".join(f"{_path(error)}: {_message(error)}".removeprefix(": ") for error in _errors(refused))


def has_template(value: object) -> bool:
    """Whether an expression stands anywhere in `value`."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if _OPEN in item.replace(_LITERAL, ""):
                return True
        elif isinstance(item, Mapping):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return False


def _unknown_fields(model: type[BaseModel], args: Mapping[str, JSON]) -> list[Fault]:
    """What pydantic ignores by default would be a misspelt field that nobody notices."""
    if model.model_config.get("extra") is not None or model.__pydantic_root_model__:
        return []
    accepted = _accepted(model)
    shown = ", ".join(sorted(accepted)) or "none"
    return [(str(name), f"is not a field of this action; its fields: {shown}") for name in args if name not in accepted]


def _accepted(model: type[BaseModel]) -> set[str]:
    """The names under which the model takes its fields."""
    config = model.model_config
    by_name = config.get("populate_by_name") or config.get("validate_by_name")
    accepted: set[str] = set()
    for name, field in model.model_fields.items():
        aliases = _aliases(field.validation_alias)
        accepted.update(aliases, [name] if by_name or not aliases else [])
    return accepted


def _aliases(alias: str | AliasPath | AliasChoices | None) -> list[str]:
    if alias is None:
        return []
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return [one if isinstance(one, str) else str(one.path[0]) for one in choices]


def _errors(refused: ValidationError) -> list[ErrorDetails]:
    return refused.errors(include_url=False, include_context=False, include_input=False)


def _new(error: ErrorDetails, faults: list[Fault]) -> bool:
    return all(path != _path(error) for path, _ in faults)


def _message(error: ErrorDetails) -> str:
    if error["type"] == "missing":
        return "is required"
    if error["type"] == "extra_forbidden":
        return "is not a field of this action"
    text = error["msg"].removeprefix("Value error, ")
    return text[:1].lower() + text[1:]


def _path(error: ErrorDetails) -> str:
    path = ""
    for part in error["loc"]:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{part}" if path else part
    return path


def _depends_on_template(error: ErrorDetails, args: Mapping[str, JSON]) -> bool:
    """Whether another value of a template could remove the fault."""
    shape = error["type"] in _SHAPE_FAULTS
    loc = error["loc"][:-1] if shape else error["loc"]
    found: object = args
    exact = True
    for part in loc:
        inside = isinstance(found, Mapping) and part in found
        if inside or (isinstance(found, list) and isinstance(part, int) and part < len(found)):
            found = found[part]  # type: ignore[index]
        else:
            # The name of a union's member, or of a validator: no place in the args.
            exact = False
    if shape and exact and isinstance(found, Mapping):
        return False
    return has_template(found)
