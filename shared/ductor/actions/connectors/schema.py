"""Pydantic models from the fields that connector files declare, so that their args are checked like everybody's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from ductor.actions.connectors.spec import Field as Declared
from ductor.model.json import JSON

_TYPES: Final[dict[str, Any]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": dict[str, Any],
    "array": list[Any],
    "any": Any,
}


def model_of(name: str, fields: Mapping[str, Declared]) -> type[BaseModel]:
    """A model with exactly these fields. Values come back with `given`."""
    made: dict[str, Any] = {f"field_{place}": _field(key, one) for place, (key, one) in enumerate(fields.items())}
    model: type[BaseModel] = create_model(name, __config__=ConfigDict(extra="forbid", strict=False), **made)
    return model


def given(model: BaseModel) -> dict[str, JSON]:
    """The values under their own names; absent optional ones are left out."""
    return model.model_dump(by_alias=True, exclude_none=True)


def _field(name: str, declared: Declared) -> tuple[Any, Any]:
    """Field names of a model may not be those of its methods; as aliases they may be anything."""
    kind: Any = Literal[declared.enum] if declared.enum else _TYPES[declared.type]
    limits: dict[str, Any] = {"alias": name, "description": declared.description or None}
    if declared.type == "string" and not declared.enum:
        limits |= {"max_length": declared.max_length, "pattern": declared.pattern or None}
    if declared.type in ("integer", "number"):
        limits |= {"ge": declared.minimum, "le": declared.maximum}
    if declared.required:
        return kind, Field(**limits)
    return kind | None, Field(declared.default, **limits)
