"""Finds the line of a violation in the YAML or JSON text it came from. Where it cannot, there is no line, no error."""

from __future__ import annotations

import re
from typing import Final

import yaml

_PART: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_REF_KEYS: Final = ("ref", "id")


class Lines:
    """The node tree of one text."""

    def __init__(self, text: str) -> None:
        self._root = _composed(text)

    def of(self, field: str) -> int | None:
        """The 1-based line of a path such as `review.args.audience`, `edges[3]` or `title`.

        For a part that is missing, the line of what should hold it. None when nothing of the path is found.
        """
        body = _child(self._root, "definition") or self._root
        parts = [index or name for index, name in _PART.findall(field)]
        if not parts:
            return None
        start = _child(body, parts[0]) or _step(body, parts[0])
        if start is None:
            return None
        return _deepest(start, parts[1:]).start_mark.line + 1


def _composed(text: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _deepest(node: yaml.Node, parts: list[str]) -> yaml.Node:
    for part in parts:
        below = _child(node, part)
        if below is None:
            break
        node = below
    return node


def _child(node: yaml.Node | None, name: str) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode):
        items: list[yaml.Node] = node.value
        return items[int(name)] if name.isdecimal() and int(name) < len(items) else None
    if isinstance(node, yaml.MappingNode):
        fields: list[tuple[yaml.Node, yaml.Node]] = node.value
        return next((value for key, value in fields if key.value == name), None)
    return None


def _step(body: yaml.Node | None, ref: str) -> yaml.Node | None:
    steps = _child(body, "steps")
    if not isinstance(steps, yaml.SequenceNode):
        return None
    items: list[yaml.Node] = steps.value
    for step in items:
        named = next((found for key in _REF_KEYS if (found := _child(step, key)) is not None), None)
        if named is not None and named.value == ref:
            return step
    return None
