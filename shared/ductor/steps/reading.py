"""Reads a step's args into its model and names every fault, not only the first. Evaluates no expression."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cache
from itertools import islice
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Self, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from ductor.model.json import JSON

Model = TypeVar("Model", bound=msgspec.Struct)

MAX_SHOWN: Final = 60
MAX_PROBLEMS: Final = 50
"""Faults named per args."""
_KINDS: Final = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


class Problem(msgspec.Struct, frozen=True):
    """One fault. `path` is below the value that was read (`audience.roles[0]`, empty: the value itself)."""

    path: str
    message: str
    code: str = "FIELD_INVALID"


class ArgsInvalidError(ValueError):
    """Args that do not fit their model; raised only for a document that was never validated."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{problem.path}: {problem.message}" for problem in self.problems))


class Word(StrEnum):
    """An enum of args that reads any case, as the document's own enums do."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return cls.__members__.get(value.upper()) if isinstance(value, str) else None


def parse(model: type[Model], args: JSON) -> Model:
    """The args as their model. Raises ArgsInvalidError with every problem."""
    try:
        return msgspec.convert(args, model)
    except msgspec.ValidationError:
        raise ArgsInvalidError(islice(problems(model, args), MAX_PROBLEMS)) from None


def read(model: type[Model], args: JSON) -> tuple[Model | None, list[Problem]]:
    """The args as their model, or None and every problem found."""
    try:
        return msgspec.convert(args, model), []
    except msgspec.ValidationError:
        return None, list(islice(problems(model, args), MAX_PROBLEMS))


def problems(model: Any, value: JSON, path: str = "") -> Iterator[Problem]:
    """Every place where `value` does not fit `model` (a Struct, a container of such, or a leaf type)."""
    inner = _described(model)
    origin = get_origin(inner) or inner
    if isinstance(origin, type) and issubclass(origin, msgspec.Struct) and isinstance(value, dict):
        yield from _struct_problems(origin, value, path)
    elif origin in (tuple, list) and isinstance(value, list):
        for index, item in enumerate(value):
            yield from problems(get_args(inner)[0], item, f"{path}[{index}]")
        yield from _leaf_problems(model, value, path, container=True)
    elif origin is dict and isinstance(value, dict):
        for key, item in value.items():
            yield from problems(get_args(inner)[1], item, joined(path, str(key)))
        yield from _leaf_problems(model, value, path, container=True)
    else:
        yield from _leaf_problems(model, value, path)


def _described(model: Any) -> Any:
    """The one type that a value other than null must fit, without its limits; a real union stays as it is."""
    if get_origin(model) is Annotated:
        return _described(get_args(model)[0])
    if get_origin(model) in (Union, UnionType):
        members = [member for member in get_args(model) if member is not NoneType]
        return _described(members[0]) if len(members) == 1 else model
    return model


def _struct_problems(model: type[msgspec.Struct], value: dict[str, JSON], path: str) -> Iterator[Problem]:
    known = {field.encode_name: field for field in msgspec.structs.fields(model)}
    for name in value:
        if name not in known:
            yield Problem(joined(path, clipped(name)), f"unknown field; {suggestion(name, known)}", "FIELD_UNKNOWN")
    hints = _hints(model)
    for name, field in known.items():
        if name in value:
            yield from problems(hints[field.name], value[name], joined(path, name))
        elif field.required:
            yield Problem(joined(path, name), "is required; add it", "FIELD_REQUIRED")


def _leaf_problems(model: Any, value: JSON, path: str, *, container: bool = False) -> Iterator[Problem]:
    try:
        msgspec.convert(value, model)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at ")
        if not container or place in ("", "`$`"):
            yield Problem(path, _sentence(reason, model))


def _sentence(reason: str, model: Any) -> str:
    """msgspec's reason in the words of JSON."""
    inner = _described(model)
    if reason.startswith("Invalid enum value") and isinstance(inner, type) and issubclass(inner, StrEnum):
        return "must be one of " + ", ".join(member.value for member in inner)
    for name, words in _KINDS.items():
        reason = reason.replace(f"`{name}`", words)
    reason = reason.replace(" | ", " or ").replace("Expected ", "must be ").replace(", got ", ", not ")
    return reason[0].lower() + reason[1:]


@cache
def _hints(model: type[msgspec.Struct]) -> dict[str, Any]:
    return get_type_hints(model, include_extras=True)


def joined(path: str, name: str) -> str:
    """`path.name`, or `name` at the top."""
    return f"{path}.{name}" if path else name


def clipped(name: JSON) -> str:
    """A name as messages and paths quote it: what a person wrote may be a megabyte long, or no text at all."""
    if not isinstance(name, str):
        return "?"
    text = name if len(name) <= MAX_SHOWN else name[:MAX_SHOWN] + "…"
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def nearest(name: JSON, known: Iterable[str]) -> str | None:
    """The known name that somebody probably meant, if any is close."""
    if not isinstance(name, str) or len(name) > 2 * MAX_SHOWN:
        return None
    by_folded = {candidate.lower(): candidate for candidate in known}
    found = difflib.get_close_matches(name.lower(), by_folded, n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None


def suggestion(name: JSON, known: Iterable[str]) -> str:
    """What to do about an unknown name, as a clause."""
    names = list(known)
    near = nearest(name, names)
    if near is not None:
        return f"did you mean '{near}'?"
    return f"remove it, or use one of {', '.join(sorted(names)[:20])}" if names else "remove it"
