"""The checked syntax tree of an expression, read from what the CEL runtime serializes. Never parses source text itself.

The runtime's own tree is the only one that cannot disagree with the evaluation: macros are expanded and names resolved.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec


class Const(msgspec.Struct, frozen=True):
    """A literal. `size` is what it weighs: 1, or for texts (empty ones too) more."""

    value: str | int | None
    size: int = 1


class Ident(msgspec.Struct, frozen=True):
    name: str


class Select(msgspec.Struct, frozen=True):
    """`operand.field`, or `has(operand.field)` when `test` is set."""

    operand: Node
    field: str
    test: bool = False


class Call(msgspec.Struct, frozen=True):
    """A function or operator; a method's receiver is the first of `args`."""

    function: str
    args: tuple[Node, ...]


class Build(msgspec.Struct, frozen=True):
    """A list, map or message literal; `parts` are its elements, keys and values."""

    parts: tuple[Node, ...]


class Loop(msgspec.Struct, frozen=True):
    """An expanded macro (`all`, `exists`, `map`, `filter`, …). `variables` shadow outer names in its body."""

    variables: tuple[str, ...]
    source: Node
    initial: Node
    condition: Node
    step: Node
    result: Node


Node = Const | Ident | Select | Call | Build | Loop

_ANY_VALUE: Final = 2
_CHECKED_EXPR: Final = 4
_UINT64: Final = 1 << 64


def decode(serialized: bytes) -> Node:
    """The tree of one serialized checked expression (`google.protobuf.Any` of `cel.expr.CheckedExpr`)."""
    any_value = _one(serialized, 0, len(serialized), _ANY_VALUE)
    start, end = _one(serialized, *any_value, _CHECKED_EXPR)
    return _node(serialized, start, end)


Span = tuple[int, int]


def _fields(data: bytes, pos: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(field, a, b): a span for length-delimited fields, (value, wire type marker) otherwise."""
    while pos < end:
        # One-byte numbers are nearly all there are; a call for each would double the time of a decode.
        key = data[pos]
        pos += 1
        if key > 127:
            key, pos = _varint(data, pos - 1)
        wire = key & 7
        if wire == 2:
            size = data[pos]
            pos += 1
            if size > 127:
                size, pos = _varint(data, pos - 1)
            yield key >> 3, pos, pos + size
            pos += size
        elif wire == 0:
            value, pos = _varint(data, pos)
            yield key >> 3, value, 0
        else:
            pos += 8 if wire == 1 else 4
            yield key >> 3, 0, 0


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    byte = data[pos]
    if byte < 128:
        return byte, pos + 1
    value, shift = byte & 127, 7
    while True:
        pos += 1
        byte = data[pos]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, pos + 1
        shift += 7


def _one(data: bytes, start: int, end: int, wanted: int) -> Span:
    for field, a, b in _fields(data, start, end):
        if field == wanted:
            return a, b
    raise ValueError("not a serialized checked expression")


def _node(data: bytes, start: int, end: int) -> Node:
    for field, a, b in _fields(data, start, end):
        reader = _READERS.get(field)
        if reader is not None:
            return reader(data, a, b)
    return Const(None)


def _text(data: bytes, start: int, end: int) -> str:
    return data[start:end].decode("utf-8", "replace")


def _const(data: bytes, start: int, end: int) -> Node:
    for field, a, b in _fields(data, start, end):
        if field == 6:
            return Const(_text(data, a, b), b - a + 2)
        if field == 7:
            return Const(None, b - a + 2)
        if field == 3:
            return Const(a if a < _UINT64 >> 1 else a - _UINT64)
    return Const(None)


def _ident(data: bytes, start: int, end: int) -> Node:
    return Ident(_text(data, *_one(data, start, end, 1)))


def _select(data: bytes, start: int, end: int) -> Node:
    operand: Node = Const(None)
    name, test = "", False
    for field, a, b in _fields(data, start, end):
        if field == 1:
            operand = _node(data, a, b)
        elif field == 2:
            name = _text(data, a, b)
        else:
            test = bool(a)
    return Select(operand, name, test)


def _call(data: bytes, start: int, end: int) -> Node:
    function = ""
    args: list[Node] = []
    for field, a, b in _fields(data, start, end):
        if field == 2:
            function = _text(data, a, b)
        else:
            args.append(_node(data, a, b))
    return Call(function, tuple(args))


def _list(data: bytes, start: int, end: int) -> Node:
    return Build(tuple(_node(data, a, b) for field, a, b in _fields(data, start, end) if field == 1))


def _struct(data: bytes, start: int, end: int) -> Node:
    parts: list[Node] = []
    for field, a, b in _fields(data, start, end):
        if field == 2:
            parts.extend(_node(data, c, d) for entry, c, d in _fields(data, a, b) if entry in (3, 4))
    return Build(tuple(parts))


def _loop(data: bytes, start: int, end: int) -> Node:
    nodes: dict[int, Node] = {}
    names: list[str] = []
    for field, a, b in _fields(data, start, end):
        if field in (1, 3, 8):
            names.append(_text(data, a, b))
        else:
            nodes[field] = _node(data, a, b)
    none = Const(None)
    return Loop(tuple(names), *(nodes.get(field, none) for field in (2, 4, 5, 6, 7)))


_READERS: Final = {3: _const, 4: _ident, 5: _select, 6: _call, 7: _list, 8: _struct, 9: _loop}
