"""What a state sees as its data: CEL for `$`, its parts, the context and the variables. Pure; evaluates nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

Path = tuple[str | int, ...]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_STEP: Final = re.compile(r"""\.([A-Za-z_][\w-]*)|\[(\d+)\]|\[(?:'([^'\\]*)'|"([^"\\]*)")\]""", re.ASCII)
_RESERVED: Final = frozenset(
    (
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop"),
        *("namespace", "null", "package", "return", "true", "var", "void", "while"),
    )
)
_MAX_FUNCTIONS: Final = 50
_CONTEXT: Final = {
    ("Execution", "Id"): "RUN.id",
    ("Execution", "Name"): "RUN.id",
    ("Execution", "StartTime"): "RUN.started_at",
    ("Execution", "Input"): "TRIGGER.payload",
    ("Map", "Item", "Value"): "ITEM",
    ("Map", "Item", "Index"): "INDEX",
}


class NotCarriedError(Exception):
    """This text has no counterpart here; the message says why."""


@dataclass(frozen=True)
class Data:
    """The value of `$` as CEL: a base, and what results laid over it by path (`ResultPath`).

    `whole`: the base holds all of `over` already, which then only says it shorter.
    """

    base: str
    over: Mapping[Path, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    whole: bool = False

    def at(self, path: Path) -> str:
        """CEL for a part. Raises NotCarriedError for a whole that was assembled from several steps' results."""
        for length in range(len(path), 0, -1):
            found = self.over.get(path[:length])
            if found is not None:
                return select(found, path[length:])
        if not self.whole and any(laid[: len(path)] == path for laid in self.over):
            raise NotCarriedError("the whole of data into which ResultPath put results; name the parts that are needed")
        return select(self.base, path)

    def laid(self, path: Path, value: str, parts: Mapping[str, str] | None = None) -> Data:
        """The data after a result was put at `path`; the empty path replaces everything.

        `parts` are fields of the result, said shorter.
        """
        inner = {(*path, part): cel for part, cel in (parts or {}).items()}
        if not path:
            return replace(self, base=value, over=inner, whole=bool(inner))
        kept = {laid: cel for laid, cel in self.over.items() if laid[: len(path)] != path}
        return replace(self, over={**kept, path: value, **inner}, whole=False)

    def assigned(self, values: Mapping[str, str]) -> Data:
        return replace(self, variables={**self.variables, **values})


def select(base: str, path: Path) -> str:
    """CEL for `base` and a path of keys and indices below it."""
    if path and not re.fullmatch(r"[\w.\"\[\]-]+", base):
        base = f"({base})"
    for key in path:
        plain = isinstance(key, str) and _NAME.fullmatch(key) is not None and key not in _RESERVED
        base += f".{key}" if plain else f"[{json.dumps(key)}]"
    return base


def step_output(ref: str, *path: str) -> str:
    """CEL for the output of a step, or a part of it."""
    return select("STEPS", (ref, "output", *path))


def parse_path(text: str) -> Path:
    """The keys of a reference path after its `$`. Raises NotCarriedError for filters, wildcards and slices."""
    keys: list[str | int] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            raise NotCarriedError(f"the path ends at {text[position:][:20]!r}: only names and indices are carried over")
        name, index, single, double = match.groups()
        keys.append(int(index) if index is not None else name or single or double or "")
        position = match.end()
    return tuple(keys)


def json_path(text: str, data: Data) -> str:
    """CEL for a JSONPath text: `$.a`, `$$.Execution.Id`, `$variable.a`, or a simple intrinsic function."""
    text = text.strip()
    if text.startswith("$$"):
        return context(parse_path(text[2:]))
    if re.match(r"\$[A-Za-z_]", text):
        return variable(text[1:], data)
    if text.startswith("$"):
        return data.at(parse_path(text[1:]))
    return _intrinsic(text, data)


def variable(text: str, data: Data) -> str:
    """CEL for a workflow variable (`name.part`)."""
    name = re.match(r"\w+", text)
    if name is None or name[0] not in data.variables:
        raise NotCarriedError(f"the variable ${text[:40]} is not assigned by a state before this one")
    return select(data.variables[name[0]], parse_path(text[name.end() :]))


def context(path: Path) -> str:
    """CEL for a path of the context object."""
    for length in range(len(path), 0, -1):
        found = _CONTEXT.get(tuple(map(str, path[:length])))
        if found is not None:
            return select(found, path[length:])
    raise NotCarriedError(f"the context object has no counterpart of {'.'.join(map(str, path)) or 'the whole'}")


def literal(value: Any) -> str:
    """CEL for a JSON value."""
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(key)}: {literal(item)}' for key, item in value.items())}}}"
    if isinstance(value, str):
        return json.dumps(value)
    return json.dumps(value)


def template(cel: str) -> str:
    """The template text that gives the value of an expression."""
    return f"${{{{ {cel} }}}}"


def plain(value: Any) -> Any:
    """A JSON value as template text: nothing in it is evaluated."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.replace("${{", "$${{") if isinstance(value, str) else value


def _intrinsic(text: str, data: Data) -> str:
    match = re.fullmatch(r"States\.(\w+)\((.*)\)", text, re.DOTALL)
    if match is None:
        raise NotCarriedError(f"{text[:40]!r} is neither a path nor a known function")
    if text.count("States.") > _MAX_FUNCTIONS:
        raise NotCarriedError(f"calls more than {_MAX_FUNCTIONS} functions; compute it in dataflow steps")
    name, arguments = match[1], _arguments(match[2])
    values = [_argument(argument, data) for argument in arguments]
    if name == "Array":
        return f"[{', '.join(values)}]"
    if name == "ArrayLength" and len(values) == 1:
        return f"size({values[0]})"
    if name == "ArrayContains" and len(values) == 2:
        return f"({values[1]} in {values[0]})"
    if name == "MathAdd" and len(values) == 2:
        return f"({values[0]} + {values[1]})"
    if name == "Format" and arguments and arguments[0].startswith("'"):
        return _format(arguments[0][1:-1], values[1:])
    raise NotCarriedError(f"States.{name} has no counterpart; compute it in a dataflow step")


def _format(text: str, values: list[str]) -> str:
    pieces = text.split("{}")
    if len(pieces) - 1 != len(values):
        raise NotCarriedError("States.Format has another number of {} than of values")
    parts = [json.dumps(pieces[0])] if pieces[0] else []
    for value, piece in zip(values, pieces[1:], strict=True):
        parts.append(f"string({value})")
        parts += [json.dumps(piece)] if piece else []
    return f"({' + '.join(parts)})" if parts else '""'


def _arguments(text: str) -> list[str]:
    """Arguments of a function, split at commas outside of quotes and parentheses."""
    found, depth, quoted, start = [], 0, False, 0
    for place, char in enumerate(text):
        if char == "'":
            quoted = not quoted
        elif not quoted and char in "()":
            depth += 1 if char == "(" else -1
        elif not quoted and depth == 0 and char == ",":
            found.append(text[start:place].strip())
            start = place + 1
    last = text[start:].strip()
    return [*found, last] if last else found


def _argument(text: str, data: Data) -> str:
    if text.startswith("'") and text.endswith("'") and "\\" not in text:
        return json.dumps(text[1:-1])
    if re.fullmatch(r"-?\d+(\.\d+)?|true|false|null", text):
        return text
    return json_path(text, data)
