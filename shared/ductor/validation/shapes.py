"""Shapes of JSON values: one description reads a document, names its faults and gives its JSON Schema."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, Protocol

from ductor.model.enums import WireEnum
from ductor.model.json import JSON
from ductor.steps.reading import clipped, joined, nearest
from ductor.validation.found import Found

MISSING: Final = object()
"""What reading gives for a value of a wrong type, so that nothing later trips over it."""


class Shape(Protocol):
    """`read` gives the value in canonical form, or MISSING when its JSON type is wrong (and says so in `found`)."""

    def read(self, value: JSON, path: str, found: Found) -> Any: ...

    def schema(self) -> dict[str, JSON]: ...


class Anything:
    """Any JSON value."""

    def read(self, value: JSON, path: str, found: Found) -> Any:
        del path, found
        return value

    def schema(self) -> dict[str, JSON]:
        return {}


class Mapped:
    """Any JSON object."""

    def __init__(self, code: str = "FIELD_INVALID") -> None:
        self.code = code

    def read(self, value: JSON, path: str, found: Found) -> Any:
        if isinstance(value, dict):
            return value
        return wrong(value, path, found, self.code, "an object")

    def schema(self) -> dict[str, JSON]:
        return {"type": "object"}


class Text:
    """A string within limits; a pattern must match the whole of it."""

    def __init__(
        self, *, at_most: int = 0, pattern: str = "", says: str = "", code: str = "FIELD_INVALID", at_least: int = 0
    ) -> None:
        self.at_most, self.at_least, self.says, self.code = at_most, at_least, says, code
        self.pattern = re.compile(pattern, re.ASCII) if pattern else None

    def read(self, value: JSON, path: str, found: Found) -> Any:
        if not isinstance(value, str):
            return wrong(value, path, found, self.code, "a string")
        if self.pattern is not None and self.pattern.fullmatch(value) is None:
            found.fault(path, self.code, self.says)
        elif self.at_most and len(value) > self.at_most:
            found.fault(path, self.code, f"must be at most {self.at_most} characters, not {len(value)}")
        elif len(value) < self.at_least:
            short = "must not be empty" if self.at_least == 1 else f"must be at least {self.at_least} characters"
            found.fault(path, self.code, short)
        return value

    def schema(self) -> dict[str, JSON]:
        out: dict[str, JSON] = {"type": "string"}
        if self.at_most:
            out["maxLength"] = self.at_most
        if self.at_least:
            out["minLength"] = self.at_least
        if self.pattern is not None:
            out["pattern"] = f"^(?:{self.pattern.pattern})$"
        return out


class Flag:
    """True or false."""

    def read(self, value: JSON, path: str, found: Found) -> Any:
        if isinstance(value, bool):
            return value
        return wrong(value, path, found, "FIELD_INVALID", "true or false")

    def schema(self) -> dict[str, JSON]:
        return {"type": "boolean"}


class Integer:
    """An integer within bounds. A number with a fraction, even `3.0`, is not one."""

    def __init__(self, low: int, high: int, code: str = "FIELD_INVALID") -> None:
        self.low, self.high, self.code = low, high, code

    def read(self, value: JSON, path: str, found: Found) -> Any:
        if isinstance(value, bool) or not isinstance(value, int):
            return wrong(value, path, found, self.code, f"an integer from {self.low} to {self.high}")
        if not self.low <= value <= self.high:
            found.fault(path, self.code, f"must be an integer from {self.low} to {self.high}")
        return value

    def schema(self) -> dict[str, JSON]:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


class Number:
    """A finite number within bounds."""

    def __init__(self, low: float, high: float, code: str = "FIELD_INVALID") -> None:
        self.low, self.high, self.code = low, high, code

    def read(self, value: JSON, path: str, found: Found) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return wrong(value, path, found, self.code, f"a number from {self.low:g} to {self.high:g}")
        if not self.low <= value <= self.high:
            found.fault(path, self.code, f"must be a number from {self.low:g} to {self.high:g}")
        return value

    def schema(self) -> dict[str, JSON]:
        return {"type": "number", "minimum": self.low, "maximum": self.high}


class Choice:
    """One word of an enum: short or with the prefix of its long spelling, in any case. Canonical: the short one."""

    def __init__(
        self, enum: type[StrEnum], prefix: str, code: str = "FIELD_INVALID", *, also: tuple[Any, ...] = ()
    ) -> None:
        self.enum, self.prefix, self.code, self.also = enum, f"{prefix}_", code, also
        self.long = issubclass(enum, WireEnum)
        self._known = {member.value: member.value for member in enum}

    def read(self, value: JSON, path: str, found: Found) -> Any:
        if not isinstance(value, str):
            return wrong(value, path, found, self.code, "a string")
        known = self._known.get(value)
        if known is not None:
            return known
        known = self._known.get(value[:80].upper().removeprefix(self.prefix).lower())
        if known is not None:
            return known
        near = nearest(value, self._known) if found.may_suggest() else None
        hint = f"; did you mean '{near}'?" if near else ""
        found.fault(path, self.code, f"'{clipped(value)}' is not one of {', '.join(self._known)}{hint}")
        return value

    def schema(self) -> dict[str, JSON]:
        short = [member.value for member in self.enum]
        long = [f"{self.prefix}{member.name}" for member in self.enum] if self.long else []
        return {"enum": [*short, *long, *self.also]}


class Many:
    """A list of one shape, at most `at_most` long. `label` names an item by its content instead of its place."""

    def __init__(self, item: Shape, at_most: int, label: Callable[[JSON, int], str] | None = None) -> None:
        self.item, self.at_most, self.label = item, at_most, label

    def read(self, value: JSON, path: str, found: Found) -> Any:
        if not isinstance(value, list):
            return wrong(value, path, found, "FIELD_INVALID", "a list")
        if len(value) > self.at_most:
            found.fault(path, "FIELD_INVALID", f"must be at most {self.at_most} items, not {len(value)}")
            return value
        label = self.label or (lambda _, index: f"{path}[{index}]")
        read = self.item.read
        return [
            out for index, item in enumerate(value) if (out := read(item, label(item, index), found)) is not MISSING
        ]

    def schema(self) -> dict[str, JSON]:
        return {"type": "array", "maxItems": self.at_most, "items": self.item.schema()}


class Table:
    """An object whose names are free and whose values have one shape."""

    def __init__(self, value: Shape, at_most: int = 1_000) -> None:
        self.value, self.at_most = value, at_most

    def read(self, value: JSON, path: str, found: Found) -> Any:
        if not isinstance(value, dict):
            return wrong(value, path, found, "FIELD_INVALID", "an object")
        if len(value) > self.at_most:
            found.fault(path, "FIELD_INVALID", f"must be at most {self.at_most} names, not {len(value)}")
            return value
        read = self.value.read
        items = ((name, read(item, joined(path, clipped(name)), found)) for name, item in value.items())
        return {name: item for name, item in items if item is not MISSING}

    def schema(self) -> dict[str, JSON]:
        return {"type": "object", "additionalProperties": self.value.schema()}


class Record:
    """An object with known fields. A field that is null counts as absent; an unknown one breaks the document.

    `server_owned` names fields that answers hold and requests must not.
    """

    def __init__(
        self,
        fields: Mapping[str, Shape],
        *,
        required: Iterable[str] = (),
        aliases: Mapping[str, str] | None = None,
        server_owned: frozenset[str] = frozenset(),
        code: str = "FIELD_INVALID",
    ) -> None:
        self.fields, self.required, self.aliases = fields, tuple(required), dict(aliases or {})
        self.server_owned, self.code = server_owned, code

    def read(self, value: JSON, path: str, found: Found) -> Any:
        if not isinstance(value, dict):
            return wrong(value, path, found, self.code, "an object")
        out: dict[str, JSON] = {}
        for name, item in value.items():
            shape = self.fields.get(name)
            if shape is None:
                self._other(value, name, path, found, out)
            elif item is not None or isinstance(shape, Anything):
                got = shape.read(item, f"{path}.{name}" if path else name, found)
                if got is not MISSING:
                    out[name] = got
            if found.full:
                break
        for name in self.required:
            if name not in out and self._given(value, name) is None:
                found.fault(joined(path, name), "FIELD_REQUIRED", "is required; add it")
        return out

    def _given(self, value: dict[str, JSON], name: str) -> JSON:
        names = (name, *(alias for alias, real in self.aliases.items() if real == name))
        return next((value[key] for key in names if value.get(key) is not None), None)

    def _other(self, value: dict[str, JSON], name: str, path: str, found: Found, out: dict[str, JSON]) -> None:
        at = joined(path, clipped(name))
        real = self.aliases.get(name)
        if real is None:
            self._unknown(name, at, found)
            return
        if value[name] is None:
            return
        got = self.fields[real].read(value[name], at, found)
        if value.get(real, got) not in (got, None):
            found.breaks(at, "FIELD_INVALID", f"is another name of `{real}` and differs from it; give only `{real}`")
        elif got is not MISSING:
            out[real] = got

    def _unknown(self, name: str, at: str, found: Found) -> None:
        if name in self.server_owned:
            found.breaks(at, "FIELD_UNKNOWN", "is set by the server and no part of a definition; remove it")
            return
        near = nearest(name, self._names) if found.may_suggest() else None
        found.breaks(
            at, "FIELD_UNKNOWN", f"unknown field; did you mean '{near}'?" if near else "unknown field; remove it"
        )

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return (*self.fields, *self.aliases)

    def schema(self) -> dict[str, JSON]:
        properties: dict[str, JSON] = {name: shape.schema() for name, shape in self.fields.items()}
        properties |= {alias: self.fields[real].schema() for alias, real in self.aliases.items()}
        out: dict[str, JSON] = {"type": "object", "properties": properties, "additionalProperties": False}
        plain = [name for name in self.required if name not in self.aliases.values()]
        if plain:
            out["required"] = plain
        either = [{"anyOf": [{"required": [real]}, {"required": [alias]}]} for alias, real in self.aliases.items()]
        if either:
            out["allOf"] = either
        return out


def wrong(value: JSON, path: str, found: Found, code: str, wanted: str) -> Any:
    """Report a wrong JSON type; gives MISSING."""
    found.breaks(path, code, f"must be {wanted}, not {kind(value)}")
    return MISSING


def kind(value: JSON) -> str:
    """What JSON calls the value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, float):
        return "a number with a fraction" if math.isfinite(value) else "NaN or Infinity"
    if isinstance(value, int):
        return "an integer"
    return "a list" if isinstance(value, list) else "an object"
