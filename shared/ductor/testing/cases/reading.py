"""Reads test files: from text to the typed document, or every fault at once with its line. Opens nothing itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ductor.model.json import JSON
from ductor.testing.cases.document import FILE_TYPE, CaseFile
from ductor.validation.source import read_source

Path = tuple[str | int, ...]
"""Where something stands in a file: field names and places in lists."""

MAX_FAULTS: Final = 50
_LINE: Final = re.compile(r"line (\d+), column")


class Fault(msgspec.Struct, frozen=True):
    """Something wrong with a file. `line` is 1-based, None where there is none; `field` is the path as text."""

    line: int | None
    field: str
    message: str


class UnreadableError(Exception):
    """The text is no test file."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(fault.message for fault in faults))
        self.faults = tuple(faults)


class Marks:
    """The lines of a YAML text."""

    def __init__(self, text: str) -> None:
        try:
            self._root = yaml.compose(text, Loader=yaml.SafeLoader)
        except (yaml.YAMLError, ValueError, RecursionError):
            self._root = None

    def line(self, path: Path) -> int | None:
        """The 1-based line of a path, or of the deepest part of it that is written. None for an empty text."""
        if self._root is None:
            return None
        mark, node = self._root.start_mark, self._root
        for part in path:
            found = _below(node, part)
            if found is None:
                continue
            mark, node = found
        return int(mark.line) + 1


def _below(node: yaml.Node, part: str | int) -> tuple[yaml.Mark, yaml.Node] | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        item: yaml.Node = node.value[part]
        return item.start_mark, item
    if isinstance(node, yaml.MappingNode):
        fields: list[tuple[yaml.Node, yaml.Node]] = node.value
        return next(((key.start_mark, value) for key, value in fields if key.value == str(part)), None)
    return None


def read_cases(text: str) -> CaseFile:
    """The test file of a YAML text. Raises UnreadableError with every fault."""
    raw, violations = read_source(text)
    if isinstance(raw, dict) and ("steps" in raw or raw.get("type", FILE_TYPE) != FILE_TYPE):
        raise UnreadableError([Fault(1, "type", f"must be {FILE_TYPE}: this is no test file")])
    if violations or not isinstance(raw, dict):
        found = [Fault(_line_in(fault.message), fault.field, fault.message) for fault in violations]
        raise UnreadableError(found or [Fault(None, "", "must hold an object with type, workflow and cases")])
    try:
        return CaseFile.model_validate(raw)
    except ValidationError as refused:
        marks = Marks(text)
        raise UnreadableError(list(_faults(refused, raw, marks))[:MAX_FAULTS]) from None


def _line_in(message: str) -> int | None:
    """The line that a YAML error names last: where it noticed."""
    lines = _LINE.findall(message)
    return int(lines[-1]) if lines else None


def _faults(refused: ValidationError, raw: JSON, marks: Marks) -> Iterator[Fault]:
    seen: set[tuple[str, str]] = set()
    for error in refused.errors(include_url=False, include_context=False):
        path = _written(error["loc"], raw)
        field, message = shown(path), _message(error)
        if (field, message) not in seen:
            seen.add((field, message))
            yield Fault(marks.line(path), field, message)


def _written(loc: Sequence[str | int], raw: JSON) -> Path:
    """The path without what pydantic puts in between: names of alternatives, and of what a short form stands for."""
    path: list[str | int] = []
    value: Any = raw
    for place, part in enumerate(loc):
        last = place == len(loc) - 1
        if isinstance(value, dict) and isinstance(part, str) and (part in value or last):
            path.append(part)
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            path.append(part)
            value = value[part]
    return tuple(path)


def _message(error: ErrorDetails) -> str:
    if error["type"] == "extra_forbidden":
        return "is no field of a test file here; correct its name or remove it"
    if error["type"] == "missing":
        return "is required"
    return error["msg"].removeprefix("Value error, ").removeprefix("Input ").strip()


def shown(path: Path) -> str:
    """A path as text: `cases[0].then.path`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def case_schema() -> dict[str, JSON]:
    """The JSON Schema of test files, for editors."""
    schema: dict[str, JSON] = CaseFile.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
