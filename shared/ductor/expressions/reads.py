"""Which roots, steps and paths an expression reads, from its checked tree. Decides nothing about their values."""

from __future__ import annotations

from typing import Final

import msgspec

from ductor.expressions.tree import Build, Call, Const, Ident, Loop, Node, Select
from ductor.model.json import JSON

ROOTS: Final = ("TRIGGER", "VARS", "CONTEXT", "STEPS", "RUN", "INPUT", "ITEM", "INDEX", "EVENT")
"""Every root an expression may name (definitions: Expressions)."""

_ROOT_SET: Final = frozenset(ROOTS)
_STEPS: Final = "STEPS"
_WHOLE: Final[dict[str, JSON]] = {}
"""The paths node for 'all of it'."""

Path = tuple[str | int, ...]


class Reads(msgspec.Struct, frozen=True):
    """What an expression may read. A superset of what one evaluation touches, never less.

    `steps` are the refs named by `STEPS.ref`, `STEPS["ref"]` or `"ref" in STEPS`; `all_steps` is set when any other
    use of `STEPS` (a computed key, the whole map) makes every step a possible read.
    """

    roots: frozenset[str] = frozenset()
    steps: frozenset[str] = frozenset()
    all_steps: bool = False

    def union(self, other: Reads) -> Reads:
        return Reads(self.roots | other.roots, self.steps | other.steps, self.all_steps or other.all_steps)


NOTHING: Final = Reads()


class Collector:
    """One walk over a tree: the roots and steps it reads and the tree of key paths it needs of them."""

    def __init__(self) -> None:
        self.paths: dict[str, dict[str, JSON]] = {}
        self._steps: set[str] = set()
        self._all_steps = False

    def reads(self) -> Reads:
        return Reads(frozenset(self.paths), frozenset(self._steps), self._all_steps)

    def walk(self, node: Node, scope: frozenset[str]) -> None:
        """Add what `node` reads; `scope` holds the macro variables that shadow roots here."""
        path = static_path(node, scope)
        if path is not None:
            self._add(path)
        elif isinstance(node, Select):
            self.walk(node.operand, scope)
        elif isinstance(node, Call):
            self._call(node, scope)
        elif isinstance(node, Build):
            for part in node.parts:
                self.walk(part, scope)
        elif isinstance(node, Loop):
            self._loop(node, scope)

    def _call(self, node: Call, scope: frozenset[str]) -> None:
        if node.function == "@in" and len(node.args) == 2 and isinstance(node.args[0], Const):
            path = static_path(node.args[1], scope)
            key = node.args[0].value
            if path == (_STEPS,) and isinstance(key, str):
                self._add((_STEPS, key))
                return
        for arg in node.args:
            self.walk(arg, scope)

    def _loop(self, node: Loop, scope: frozenset[str]) -> None:
        self.walk(node.source, scope)
        self.walk(node.initial, scope)
        inner = scope.union(node.variables)
        for part in (node.condition, node.step, node.result):
            self.walk(part, inner)

    def _add(self, path: Path) -> None:
        root = str(path[0])
        if root == _STEPS:
            if len(path) > 1 and isinstance(path[1], str):
                self._steps.add(path[1])
            else:
                self._all_steps = True
        keys = _leading_names(path[1:])
        level = self.paths.get(root)
        if level is None:
            self.paths[root] = _chain(keys)
        elif level is not _WHOLE:
            self.paths[root] = _merge(level, _chain(keys))


def _leading_names(path: Path) -> list[str]:
    names: list[str] = []
    for key in path:
        if not isinstance(key, str):
            break
        names.append(key)
    return names


def _chain(keys: list[str]) -> dict[str, JSON]:
    level: dict[str, JSON] = _WHOLE
    for key in reversed(keys):
        level = {key: level}
    return level


def _merge(a: dict[str, JSON], b: dict[str, JSON]) -> dict[str, JSON]:
    if not a or not b:
        return _WHOLE
    merged = dict(a)
    for key, level in b.items():
        merged[key] = _merge(a[key], level) if key in a else level
    return merged


def static_path(node: Node, scope: frozenset[str]) -> Path | None:
    """`("TRIGGER", "payload", "amount")` for a chain of constant keys on a root that no macro variable shadows."""
    keys: list[str | int] = []
    while True:
        if isinstance(node, Select):
            keys.append(node.field)
            node = node.operand
        elif isinstance(node, Call) and node.function == "_[_]" and isinstance(node.args[1], Const):
            key = node.args[1].value
            if not isinstance(key, str | int):
                return None
            keys.append(key)
            node = node.args[0]
        else:
            break
    if not isinstance(node, Ident):
        return None
    name = node.name
    if name.startswith("."):
        name = name[1:]
    elif name in scope:
        return None
    if name not in _ROOT_SET:
        return None
    keys.append(name)
    keys.reverse()
    return tuple(keys)


def prune(value: JSON, paths: dict[str, JSON]) -> JSON:
    """The part of `value` that lies on `paths` (empty: all of it). Keys that are missing stay missing."""
    if not paths or not isinstance(value, dict):
        return value
    return {key: prune(value[key], level) for key, level in paths.items() if key in value}
