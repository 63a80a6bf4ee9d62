"""What a person should know about an expression before it is published. Never evaluates; not needed at run time.

The findings come from the C++ checker that also runs the expression: it reports unknown names and types itself, so
publishing and running cannot disagree.
"""

from __future__ import annotations

import difflib
import re
from functools import lru_cache
from typing import Final

import msgspec

from ductor.expressions.cel import MAX_SOURCE_BYTES, Program, compile_cel
from ductor.expressions.errors import ExpressionSyntaxError, SyntaxCode
from ductor.expressions.reads import NOTHING, ROOTS, Reads
from ductor.expressions.shape import shape_of

_UNDECLARED: Final = re.compile(r"<input>:(\d+):(\d+): undeclared reference to '([^']*)'")
_MAYBE_BOOL: Final = frozenset({"BOOL", "DYN"})


class Problem(msgspec.Struct, frozen=True):
    """One fault; `message` says what is wrong and quotes the expression."""

    code: str
    message: str


class Analysis(msgspec.Struct, frozen=True):
    """All faults of one expression, and what it reads (nothing when it does not compile)."""

    problems: tuple[Problem, ...]
    reads: Reads


@lru_cache(maxsize=8192)
def analyse(source: str, *, expect_bool: bool = False) -> Analysis:
    """Check one expression; cached by its text.

    Codes: `CEL_SYNTAX`, `CEL_UNKNOWN_ROOT` (names the nearest root), `CEL_TOO_COMPLEX`, and with `expect_bool`
    `CEL_TYPE` when the result can never be a boolean. What depends on values at run time is not found here.
    An expression of a shape that was checked without a finding is not compiled again.
    """
    shape = shape_of(source) if len(source) <= MAX_SOURCE_BYTES and source.isascii() else None
    if shape is not None and shape[0] != source:
        text, names = shape
        found = _compiled(text, expect_bool=expect_bool)
        if not found.problems:
            steps = frozenset(names.get(step, step) for step in found.reads.steps)
            return Analysis((), msgspec.structs.replace(found.reads, steps=steps))
    return _compiled(source, expect_bool=expect_bool)


@lru_cache(maxsize=8192)
def _compiled(source: str, *, expect_bool: bool) -> Analysis:
    try:
        program = compile_cel(source)
    except ExpressionSyntaxError as refusal:
        return Analysis(_unknown_roots(refusal, source) or (Problem(refusal.code, refusal.message),), NOTHING)
    return Analysis(_not_boolean(program) if expect_bool else (), program.reads)


def _not_boolean(program: Program) -> tuple[Problem, ...]:
    if program.result_type in _MAYBE_BOOL:
        return ()
    reason = f"a condition must be true or false, this is always {program.result_type}: {program.source}"
    return (Problem(SyntaxCode.CEL_TYPE.value, reason),)


def _unknown_roots(refusal: ExpressionSyntaxError, source: str) -> tuple[Problem, ...]:
    notes = "\n".join(getattr(refusal, "__notes__", ()))
    lines = source.split("\n")
    problems: dict[str, Problem] = {}
    for line, column, name in _UNDECLARED.findall(notes):
        # The checker points at the bracket of a call: such a name is a function, not a root.
        if lines[int(line) - 1][int(column) - 1 : int(column)] == "(":
            continue
        root = name.split(".")[0]
        problems.setdefault(root, Problem(SyntaxCode.CEL_UNKNOWN_ROOT.value, _unknown(root, refusal)))
    return tuple(problems.values())


def _unknown(root: str, refusal: ExpressionSyntaxError) -> str:
    nearest = difflib.get_close_matches(root.upper(), ROOTS, n=1, cutoff=0.0)[0]
    excerpt = refusal.message.partition(" (in expression: ")[2].rstrip(")")
    return f"unknown name {root}; did you mean {nearest}? Known: {', '.join(ROOTS)} (in expression: {excerpt})"
