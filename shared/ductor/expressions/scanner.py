"""Finds where a `${{ … }}` ends: `}}` inside strings, comments and map literals is not the end. Evaluates nothing."""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(
    r"""
      (?P<string>
        [bB]?[rR][bB]?(?:'{3}.*?'{3}|"{3}.*?"{3}|'[^'\n]*'|"[^"\n]*")
      | [bB]?(?:'{3}(?:\\.|[^\\])*?'{3}|"{3}(?:\\.|[^\\])*?"{3}|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")
      )
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<comment>//[^\n]*)
    | (?P<brace>[{}])
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


def end_of_expression(text: str, start: int) -> int:
    """The index of the `}}` that closes the expression which starts at `start`, or -1. Linear in the text."""
    depth = 0
    pos = start
    while pos < len(text):
        if depth == 0 and text.startswith("}}", pos):
            return pos
        match = _TOKEN.match(text, pos)
        if match is None:
            return -1
        brace = match.group("brace")
        if brace is not None:
            depth += 1 if brace == "{" else -1
        pos = match.end()
    return -1
