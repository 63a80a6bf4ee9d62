"""The shape of an expression: its text with such literals and step names taken out as no check looks into.

Expressions of one shape have the same faults (none) and the same reads up to the names of steps, so that thousands of
conditions that differ in a number are compiled once. Only decides what is certainly alike; anything else has no shape.
"""

from __future__ import annotations

import re
from typing import Final

_PLACE: Final = "_ductor_"
_ODD: Final = ("\\", '"""', "'''", "//", "`", _PLACE)
"""Escapes, long strings, comments: a text with one of them is left to the compiler."""

_RESERVED: Final = (
    "as|break|const|continue|else|false|for|function|if|import|in|let|loop|namespace|null|package|return|true|var|void"
    "|while"
)
_TOKEN: Final = re.compile(
    # A text that is compared, not searched or used as a key; any other text stays as it is.
    r"(?P<compared>[=!]=\s*(?:\"[^\"\r\n]*\"|'[^'\r\n]*'))"
    r"|\"[^\"\r\n]*\"|'[^'\r\n]*'"
    # A step, and a field of open data, named by a selector. `STEPS.name(` would be a call, `STEPS.name{` a message.
    rf"|(?<![\w.])STEPS\.(?!(?:{_RESERVED})\b)(?P<step>[A-Za-z_]\w*)(?!\w|\s*[({{])"
    rf"|(?<![\w.])(?P<root>TRIGGER\.payload|VARS|CONTEXT)\.(?!(?:{_RESERVED})\b)(?P<field>[A-Za-z_]\w*)(?!\w|\s*[({{])"
    r"|(?<![\w.])(?P<number>[0-9]{1,18})(?![\w.])",
    re.ASCII,
)


class _Cut:
    """Replaces tokens; remembers the steps in the order of their first mention."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def __call__(self, token: re.Match[str]) -> str:
        kind = token.lastgroup
        if kind == "number":
            return "0"
        if kind == "field":
            return f"{token['root']}.{_PLACE}"
        if kind == "compared":
            return f'{token[0][:2]} ""'
        if kind == "step":
            return f"STEPS.{self.names.setdefault(token['step'], f'{_PLACE}{len(self.names)}')}"
        return token[0]


def shape_of(source: str) -> tuple[str, dict[str, str]] | None:
    """The shape, and the step behind each of its placeholders; None for a text that only the compiler understands."""
    if any(odd in source for odd in _ODD):
        return None
    cut = _Cut()
    text = _TOKEN.sub(cut, source)
    return text, {place: name for name, place in cut.names.items()}
