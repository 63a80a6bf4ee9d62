"""Payload templates (`Parameters`, `Arguments`, `ItemSelector`, `Output`) as our templates and as CEL."""

from __future__ import annotations

import json
from typing import Any

from ductor.cli.asl import jsonata
from ductor.cli.asl.values import Data, json_path, literal, plain, template


def as_template(value: Any, data: Data, *, by_path: bool, result: str | None = None) -> Any:
    """The value as args of a step. `by_path`: keys that end in `.$` hold paths; else strings may be JSONata."""
    if not by_path:
        return jsonata.payload(value, data, result)
    if isinstance(value, dict):
        return {
            key.removesuffix(".$"): template(json_path(str(item), data))
            if key.endswith(".$")
            else as_template(item, data, by_path=True)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [as_template(item, data, by_path=True) for item in value]
    return plain(value)


def as_cel(value: Any, data: Data, *, by_path: bool, result: str | None = None) -> str:
    """The value as one CEL expression."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(key)}: {cel}' for key, cel in fields(value, data, by_path, result))}}}"
    if isinstance(value, list):
        return f"[{', '.join(as_cel(item, data, by_path=by_path, result=result) for item in value)}]"
    if not by_path and jsonata.is_expression(value):
        return jsonata.expression(value, data, result)
    return literal(value)


def fields(value: dict[str, Any], data: Data, by_path: bool, result: str | None = None) -> list[tuple[str, str]]:
    """The fields of an object with their CEL."""
    return [
        (key.removesuffix(".$"), json_path(str(item), data))
        if by_path and key.endswith(".$")
        else (key, as_cel(item, data, by_path=by_path, result=result))
        for key, item in value.items()
    ]


def literal_payload(value: Any) -> Any:
    """A fixed value whose keys mean nothing, even one that ends in `.$`."""
    if isinstance(value, dict):
        return {key.replace(".$", ""): literal_payload(item) for key, item in value.items()}
    return [literal_payload(item) for item in value] if isinstance(value, list) else value
