"""Compiles and evaluates CEL with Google's C++ runtime. In the coordinator's cold path: imports nothing heavy.

Nothing here blocks for long: the source is capped here, nesting and loop iterations by the runtime, and what the
runtime does not bound (copies, comparisons, patterns) by `cost` before an evaluation starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from cel_expr_python import cel

from ductor.expressions import cost, results
from ductor.expressions.cost import Budget
from ductor.expressions.errors import ExpressionError, ExpressionSyntaxError, SyntaxCode
from ductor.expressions.reads import ROOTS, Collector, Path, Reads, prune, static_path
from ductor.expressions.tree import Node, Select, decode
from ductor.model.json import JSON, encode

MAX_SOURCE_BYTES: Final = 8192
"""The longest expression, in bytes of UTF-8. The runtime's own nesting limit is 32 levels."""

_NUL_ESCAPE: Final = b"\\u0000"
_MISSING: Final = object()
_NO_SCOPE: Final[frozenset[str]] = frozenset()
_env = cel.NewEnv(variables=dict.fromkeys(ROOTS, cel.Type.DYN))


class Program:
    """A compiled expression: immutable, safe to share between threads, the same result for the same bindings."""

    __slots__ = ("_expression", "_heavy", "_path", "_paths", "_tree", "reads", "source")

    def __init__(self, source: str, expression: cel.Expression, tree: Node) -> None:
        collector = Collector()
        collector.walk(tree, _NO_SCOPE)
        self.source: Final = source
        self.reads: Final[Reads] = collector.reads()
        self._expression = expression
        self._tree = tree
        self._paths = collector.paths
        tests = isinstance(tree, Select) and tree.test  # has(…) asks whether a path is there, not what is
        self._path: Path | None = None if tests else static_path(tree, _NO_SCOPE)
        self._heavy = cost.is_heavy(tree)

    @property
    def result_type(self) -> str:
        """What the checker knows of the result: `BOOL`, `INT`, …, or `DYN`."""
        return str(self._expression.return_type().name())

    def evaluate(self, bindings: Mapping[str, JSON], budget: Budget | None = None) -> JSON:
        """The value as plain JSON; it may share structure with `bindings`, so treat both as frozen.

        Raises ExpressionError: a root that is read but not bound, a missing key, overflow, a type that does not fit,
        a budget exceeded (this evaluation's own, or the shared one), or a result that JSON cannot hold. Takes well
        under a second whatever the expression is.
        """
        if self._path is not None:
            found = _follow(self._path, bindings)
            if found is not _MISSING:
                value = results.checked(found, self.source)
                if budget is not None:
                    budget.charge(0, _size(value), self.source)
                return value
        value = results.json_of(self._run(bindings, budget), self.source)
        if budget is not None:
            budget.charge(0, _size(value), self.source)
        return value

    def evaluate_bool(self, bindings: Mapping[str, JSON], budget: Budget | None = None) -> bool:
        """As `evaluate`, for conditions: anything but true or false raises ExpressionError."""
        value = self.evaluate(bindings, budget)
        if isinstance(value, bool):
            return value
        raise ExpressionError(f"a condition must be true or false, not {_kind(value)}", self.source)

    def _run(self, bindings: Mapping[str, JSON], budget: Budget | None) -> cel.Value:
        data: dict[str, JSON] = {}
        for root, paths in self._paths.items():
            value = bindings.get(root, _MISSING)
            if value is _MISSING:
                raise ExpressionError(f"{root} is not available here", self.source)
            data[root] = prune(value, paths) if paths else value
        try:
            encoded = encode(data)
            if _NUL_ESCAPE in encoded and _has_nul(data):
                raise ExpressionError("a text that it reads contains the character U+0000", self.source)
            work = cost.admit(self._tree, data, self.source) if self._heavy else 0.0
            if budget is not None:
                budget.charge(work + cost.EVALUATION_NS + cost.BYTE_NS * len(encoded), 0, self.source)
            return self._expression.eval(data=data)
        except RecursionError:
            raise ExpressionError("a value is nested too deeply", self.source) from None
        except (RuntimeError, TypeError, ValueError, OverflowError, UnicodeError) as failure:
            raise ExpressionError(_first_line(str(failure)), self.source) from None

    def __repr__(self) -> str:
        return f"Program({self.source!r})"


def _follow(path: Path, bindings: Mapping[str, JSON]) -> JSON:
    """The value at a constant path, or `_MISSING` when only the runtime can say what is wrong with it."""
    value: JSON = bindings.get(str(path[0]), _MISSING)
    for key in path[1:]:
        if isinstance(key, str):
            if not isinstance(value, dict) or key not in value:
                return _MISSING
        elif not isinstance(value, list) or not 0 <= key < len(value):
            return _MISSING
        value = value[key]
    return value


def _size(value: JSON) -> int:
    """Bytes of a result; scalars are not worth counting."""
    return len(encode(value)) if isinstance(value, str | list | dict) and value else 8


def _has_nul(value: JSON) -> bool:
    """The runtime cuts texts at U+0000 without a word, so such values are refused instead."""
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any("\0" in key or _has_nul(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_has_nul, value))


def _kind(value: JSON) -> str:
    if value is None:
        return "null"
    names = {str: "a string", int: "a number", float: "a number", list: "a list", dict: "a map"}
    return names.get(type(value), type(value).__name__)


@lru_cache(maxsize=8192)
def compile_cel(source: str) -> Program:
    """The program of one expression; cached by its text.

    Raises ExpressionSyntaxError: `CEL_SYNTAX` (also for unknown names and operators that cannot fit their operands),
    `CEL_TOO_COMPLEX` (over `MAX_SOURCE_BYTES`, nested more than 32 deep, or not boundable in time).
    """
    if len(source) > MAX_SOURCE_BYTES or len(source.encode("utf-8", "replace")) > MAX_SOURCE_BYTES:
        raise ExpressionSyntaxError(
            SyntaxCode.CEL_TOO_COMPLEX, f"an expression has at most {MAX_SOURCE_BYTES} bytes", source
        )
    try:
        expression = _env.compile(source)
    except (RuntimeError, TypeError, ValueError) as failure:
        raise _refusal(str(failure), source) from None
    tree = decode(expression.serialize())
    reason = cost.unbounded(tree)
    if reason is not None:
        raise ExpressionSyntaxError(SyntaxCode.CEL_TOO_COMPLEX, reason, source)
    return Program(source, expression, tree)


def _refusal(text: str, source: str) -> ExpressionSyntaxError:
    if "recursion" in text:
        reason = "too many nested parts or chained operators (at most about 30)"
        return ExpressionSyntaxError(SyntaxCode.CEL_TOO_COMPLEX, reason, source)
    refusal = ExpressionSyntaxError(SyntaxCode.CEL_SYNTAX, _first_line(text), source)
    refusal.add_note(text)
    return refusal


def _first_line(text: str) -> str:
    """The runtime's reason without its status name and its drawing of the source."""
    line = text.split("\n", 1)[0].split(" [", 1)[0]
    status, separator, rest = line.partition(": ")
    if separator and status.isupper():
        line = rest
    return line.removeprefix("ERROR: <input>:")
