"""Templates: JSON values whose strings may hold `${{ expression }}`. What came out of one is never read again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from ductor.expressions.cel import Program, compile_cel
from ductor.expressions.cost import Budget
from ductor.expressions.errors import ExpressionError, ExpressionSyntaxError, SyntaxCode
from ductor.expressions.reads import NOTHING, Reads
from ductor.expressions.results import MAX_RESULT_BYTES
from ductor.expressions.scanner import end_of_expression
from ductor.model.json import JSON, encode

MAX_TEMPLATE_DEPTH: Final = 100
"""How deeply a template's objects and arrays may nest."""

_OPEN: Final = "${{"
_ESCAPED: Final = "$${{"


class _Mixed(msgspec.Struct, frozen=True):
    """Text and programs, to be concatenated."""

    parts: tuple[str | Program, ...]


class _Object(msgspec.Struct, frozen=True):
    items: tuple[tuple[str, _Part], ...]


class _Array(msgspec.Struct, frozen=True):
    items: tuple[_Part, ...]


class _Fixed(msgspec.Struct, frozen=True):
    value: JSON


_Part = Program | _Mixed | _Object | _Array | _Fixed


class Template:
    """A compiled template: immutable, safe to share between threads."""

    __slots__ = ("_expressions", "_root", "constant", "reads")

    def __init__(self, root: _Part, expressions: tuple[tuple[str, Program], ...]) -> None:
        self._root = root
        self._expressions = expressions
        self.constant: Final = isinstance(root, _Fixed)
        reads = NOTHING
        for _, program in expressions:
            reads = reads.union(program.reads)
        self.reads: Final[Reads] = reads

    def render(self, bindings: Mapping[str, JSON], budget: Budget | None = None) -> JSON:
        """The value with every expression replaced by its result; may share structure with the template and bindings.

        Raises ExpressionError as `Program.evaluate` does, and when one mixed text grows over the result limit.
        """
        return _render(self._root, bindings, budget)

    def paths(self) -> Iterator[tuple[str, str]]:
        """(JSON path, expression source) of every expression, in document order; the path of the root is empty."""
        for path, program in self._expressions:
            yield path, program.source


def compile_template(value: JSON) -> Template:
    """Compile a JSON value. Keys of objects are not templated.

    A string that is exactly one `${{ expr }}` (spaces around it allowed inside only) keeps the type of its result; in
    mixed text strings go in as they are, everything else as compact JSON. `$${{` stands for a literal `${{`.
    Raises ExpressionSyntaxError: `TEMPLATE_SYNTAX` for an unclosed or empty expression, and the codes of `compile_cel`;
    its message starts with the path.
    """
    found: list[tuple[str, Program]] = []
    root = _compile(value, "", found, 0)
    return Template(root, tuple(found))


def _compile(value: JSON, path: str, found: list[tuple[str, Program]], depth: int) -> _Part:
    if depth > MAX_TEMPLATE_DEPTH:
        raise ExpressionSyntaxError(SyntaxCode.CEL_TOO_COMPLEX, f"{path}: nested too deeply", "")
    if isinstance(value, str):
        return _compile_text(value, path, found)
    if isinstance(value, dict):
        prefix = f"{path}." if path else ""
        items = tuple((key, _compile(item, f"{prefix}{key}", found, depth + 1)) for key, item in value.items())
        return _Fixed(value) if _unchanged(value.values(), items) else _Object(items)
    if isinstance(value, list):
        parts = tuple(_compile(item, f"{path}[{index}]", found, depth + 1) for index, item in enumerate(value))
        return _Fixed(value) if _unchanged(value, [("", part) for part in parts]) else _Array(parts)
    return _Fixed(value)


def _unchanged(values: object, parts: object) -> bool:
    pairs = zip(values, parts, strict=True)  # type: ignore[call-overload]
    return all(isinstance(part, _Fixed) and part.value is value for value, (_, part) in pairs)


def _compile_text(text: str, path: str, found: list[tuple[str, Program]]) -> _Part:
    if _OPEN not in text:
        return _Fixed(text)
    parts = tuple(_split(text, path))
    found.extend((path, part) for part in parts if isinstance(part, Program))
    if all(isinstance(part, str) for part in parts):
        return _Fixed("".join(part for part in parts if isinstance(part, str)))
    if len(parts) == 1 and isinstance(parts[0], Program):
        return parts[0]
    return _Mixed(parts)


def _split(text: str, path: str) -> Iterator[str | Program]:
    pos = 0
    while True:
        start = text.find(_OPEN, pos)
        if start < 0:
            break
        if start > pos and text[start - 1] == "$":
            yield text[pos : start - 1] + _OPEN
            pos = start + len(_OPEN)
            continue
        if start > pos:
            yield text[pos:start]
        end = end_of_expression(text, start + len(_OPEN))
        yield _program(text, start + len(_OPEN), end, path)
        pos = end + 2
    if pos < len(text):
        yield text[pos:]


def _program(text: str, start: int, end: int, path: str) -> Program:
    prefix = f"{path}: " if path else ""
    if end < 0:
        raise ExpressionSyntaxError(SyntaxCode.TEMPLATE_SYNTAX, f"{prefix}a ${{{{ is not closed by }}}}", text)
    source = text[start:end].strip()
    if not source:
        raise ExpressionSyntaxError(SyntaxCode.TEMPLATE_SYNTAX, f"{prefix}an empty ${{{{ }}}}", text)
    try:
        return compile_cel(source)
    except ExpressionSyntaxError as refusal:
        raise ExpressionSyntaxError(SyntaxCode(refusal.code), prefix + refusal.reason, source) from None


def _render(part: _Part, bindings: Mapping[str, JSON], budget: Budget | None) -> JSON:
    if isinstance(part, _Fixed):
        return part.value
    if isinstance(part, Program):
        return part.evaluate(bindings, budget)
    if isinstance(part, _Mixed):
        return _concatenate(part, bindings, budget)
    if isinstance(part, _Array):
        return [_render(item, bindings, budget) for item in part.items]
    return {key: _render(item, bindings, budget) for key, item in part.items}


def _concatenate(mixed: _Mixed, bindings: Mapping[str, JSON], budget: Budget | None) -> str:
    texts: list[str] = []
    size = 0
    for part in mixed.parts:
        text = part if isinstance(part, str) else _text(part.evaluate(bindings, budget))
        size += len(text)
        if size > MAX_RESULT_BYTES:
            source = part.source if isinstance(part, Program) else ""
            raise ExpressionError(f"the text is over {MAX_RESULT_BYTES} characters", source)
        texts.append(text)
    return "".join(texts)


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else encode(value).decode()
