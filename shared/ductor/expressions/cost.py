"""Refuses evaluations that the CEL runtime would not bound by itself. Never evaluates anything.

The runtime stops after 10,000 loop iterations in all and 32 levels of nesting, but what one iteration copies, compares
or matches is not counted, and `map` and `filter` copy their result for every element. So an upper bound of the work is
estimated from the tree and the sizes of the actual values. Costs are nanoseconds as measured with cel-expr-python 0.1.3
on one 2-core machine, rounded up; a refused evaluation costs microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from ductor.expressions.errors import ExpressionError
from ductor.expressions.reads import static_path
from ductor.expressions.tree import Build, Call, Const, Ident, Loop, Node, Select
from ductor.model.json import JSON

MAX_ITERATIONS: Final = 10_000
"""The runtime's own limit, over all loops of one evaluation together."""

MAX_WORK_NS: Final = 600_000_000
MAX_COPIED: Final = 60_000_000
"""Weight that `+` may copy: about 5 bytes of memory each."""

MAX_BUDGET_BYTES: Final = 16_000_000
"""Results of all expressions of one step together; an output or input above 5 MB is refused anyway."""

EVALUATION_NS: Final = 4_000
"""Fixed cost of entering the runtime."""

BYTE_NS: Final = 25
"""Handing one byte of JSON to the runtime: 8 ms for 10,000 small objects."""

MAX_PATTERN_WEIGHT: Final = 5_000
MAX_NODES: Final = 4_000

_SCALAR: Final = 32
"""What one scalar weighs; a string weighs its characters more."""

_NODE_NS: Final = 60
_COPY_NS: Final = 3.5
_COMPARE_NS: Final = 2.0
_SCAN_NS: Final = 1.0
_MATCH_NS: Final = 20
_APPEND_NS: Final = 100
_LIGHT_CALLS: Final = 8

_SCALAR_CALLS: Final = frozenset(
    {"_&&_", "_||_", "!_", "@not_strictly_false", "_-_", "-_", "_*_", "_/_", "_%_", "_>_", "_<_", "_>=_", "_<=_"}
)
_REPEAT: Final = re.compile(r"\{(\d+)(?:,(\d*))?\}")


def unbounded(tree: Node) -> str | None:
    """Why an expression must be refused whatever its values are, or None."""
    nodes = list(_walk(tree))
    if len(nodes) > MAX_NODES:
        return f"an expression has at most {MAX_NODES} parts after its macros are expanded"
    for node in nodes:
        if isinstance(node, Call) and node.function == "matches":
            pattern = node.args[-1]
            if not isinstance(pattern, Const) or not isinstance(pattern.value, str):
                return "the pattern of matches() must be a string literal"
            if _pattern_weight(pattern.value) > MAX_PATTERN_WEIGHT:
                return "the pattern of matches() repeats too much"
    return None


def is_heavy(tree: Node) -> bool:
    """Whether evaluations need `admit`: loops, patterns, or more than a few operations linear in their operands."""
    linear = 0
    for node in _walk(tree):
        if isinstance(node, Loop):
            return True
        if isinstance(node, Call) and node.function not in _SCALAR_CALLS and node.function != "_[_]":
            if node.function in ("matches", "contains"):
                return True
            linear += not any(isinstance(arg, Const) and arg.size == 1 for arg in node.args)
    return linear > _LIGHT_CALLS


def admit(tree: Node, data: dict[str, JSON], source: str) -> float:
    """The estimated work in ns. Raises ExpressionError when that could be over about a second or too much memory."""
    meter = _Meter(data)
    meter.estimate(tree, {}, 1.0)
    if meter.work > MAX_WORK_NS or meter.copied > MAX_COPIED:
        raise ExpressionError("the evaluation is too expensive for these values", source)
    return meter.work


class Budget:
    """What several evaluations may cost together: estimated work in ns, and bytes of JSON in their results.

    Each evaluation alone is bounded; a step that has thousands of them is bounded by sharing one budget.
    """

    __slots__ = ("bytes_left", "work_left")

    def __init__(self, work_ns: float = MAX_WORK_NS, result_bytes: int = MAX_BUDGET_BYTES) -> None:
        self.work_left = work_ns
        self.bytes_left = result_bytes

    def charge(self, work_ns: float, result_bytes: int, source: str) -> None:
        """Raise ExpressionError when the budget is used up."""
        self.work_left -= work_ns
        self.bytes_left -= result_bytes
        if self.work_left < 0:
            raise ExpressionError("the expressions of this step are too expensive together for these values", source)
        if self.bytes_left < 0:
            raise ExpressionError("the results of this step's expressions are too large together", source)


class _Size(msgspec.Struct, frozen=True):
    """Upper bounds of one value: the weight it can have, its mean weight over the executions here, its elements."""

    most: float
    mean: float
    length: float
    is_map: bool = False


_ONE: Final = _Size(_SCALAR, _SCALAR, 0)
_Scope = dict[str, _Size]


class _Meter:
    """One estimate. `times` is how often a node runs at most; the runtime's iteration limit caps it."""

    def __init__(self, data: dict[str, JSON]) -> None:
        self._data = data
        self.work = 0.0
        self.copied = 0.0

    def estimate(self, node: Node, scope: _Scope, times: float) -> _Size:
        self.work += _NODE_NS * times
        if isinstance(node, Const):
            return _Size(_SCALAR + node.size, _SCALAR + node.size, 0)
        path = static_path(node, frozenset(scope))
        if path is not None:
            return self._measure(path)
        if isinstance(node, Ident):
            return scope.get(node.name, _ONE)
        if isinstance(node, Select):
            inner = self.estimate(node.operand, scope, times)
            return _ONE if node.test else _part_of(inner)
        if isinstance(node, Build):
            return _together([self.estimate(part, scope, times) for part in node.parts])
        if isinstance(node, Loop):
            return self._loop(node, scope, times)
        return self._call(node, [self.estimate(arg, scope, times) for arg in node.args], times)

    def _measure(self, path: tuple[str | int, ...]) -> _Size:
        value: JSON = self._data
        for key in path:
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError):
                return _ONE
        weight = weigh(value)
        length = len(value) if isinstance(value, list | dict) else 0
        return _Size(weight, weight, length, isinstance(value, dict))

    def _loop(self, node: Loop, scope: _Scope, times: float) -> _Size:
        source = self.estimate(node.source, scope, times)
        count = min(max(source.length, 1), MAX_ITERATIONS)
        inner_times = min(times * count, MAX_ITERATIONS)
        # Over its own loop an element weighs its share; inside a further loop one heavy element may repeat.
        inner = {name: _Size(size.most, size.most, size.length, size.is_map) for name, size in scope.items()}
        for name in node.variables:
            inner[name] = _Size(source.most, source.most / count, source.most / _SCALAR)
        builds = isinstance(node.initial, Build)
        inner[node.variables[1]] = _ONE
        for part in (node.condition, node.step):
            body = self.estimate(part, inner, inner_times)
        if not builds:
            return _ONE
        self.work += _APPEND_NS * min(times * count, MAX_ITERATIONS) * count / 2
        total = count * (body.mean + _SCALAR)
        return _Size(total, total, count)

    def _call(self, node: Call, args: list[_Size], times: float) -> _Size:
        rule = _RULES.get(node.function)
        if rule is not None:
            return rule(self, node, args, times)
        if node.function not in _SCALAR_CALLS:
            self.work += sum(arg.mean for arg in args) * _SCAN_NS * times
            if node.function in ("string", "bytes"):
                return args[0]
        return _ONE

    def _add(self, node: Call, args: list[_Size], times: float) -> _Size:
        if any(isinstance(arg, Const) and arg.size == 1 for arg in node.args):
            return _ONE
        total = _Size(sum(arg.most for arg in args), sum(arg.mean for arg in args), sum(arg.length for arg in args))
        self.copied += total.mean * times
        self.work += total.mean * _COPY_NS * times
        return total

    def _compare(self, node: Call, args: list[_Size], times: float) -> _Size:
        self.work += min(arg.mean for arg in args) * _COMPARE_NS * times
        return _ONE

    def _member(self, node: Call, args: list[_Size], times: float) -> _Size:
        if not args[1].is_map:
            self.work += args[1].mean * _COMPARE_NS * times
        return _ONE

    def _contains(self, node: Call, args: list[_Size], times: float) -> _Size:
        self.work += args[0].mean * (_SCAN_NS + args[1].most / 10) * times
        return _ONE

    def _matches(self, node: Call, args: list[_Size], times: float) -> _Size:
        pattern = node.args[-1]
        weight = _pattern_weight(str(pattern.value)) if isinstance(pattern, Const) else MAX_PATTERN_WEIGHT
        self.work += weight * (args[0].mean * _MATCH_NS + 1000) * times
        return _ONE

    def _choose(self, node: Call, args: list[_Size], times: float) -> _Size:
        a, b = args[1:]
        return _Size(max(a.most, b.most), max(a.mean, b.mean), max(a.length, b.length))

    def _index(self, node: Call, args: list[_Size], times: float) -> _Size:
        return _part_of(args[0])

    def _same(self, node: Call, args: list[_Size], times: float) -> _Size:
        return args[0]


_Rule = Callable[[_Meter, Call, list[_Size], float], _Size]
_RULES: Final[dict[str, _Rule]] = {
    "_+_": _Meter._add,
    "_==_": _Meter._compare,
    "_!=_": _Meter._compare,
    "@in": _Meter._member,
    "contains": _Meter._contains,
    "matches": _Meter._matches,
    "_?_:_": _Meter._choose,
    "_[_]": _Meter._index,
    "dyn": _Meter._same,
}


def weigh(value: JSON) -> float:
    """The weight of a JSON value: 32 a scalar or key, and the characters of its strings."""
    if isinstance(value, str):
        return _SCALAR + len(value)
    if isinstance(value, dict):
        return _SCALAR + sum(_SCALAR + len(key) + weigh(item) for key, item in value.items())
    if isinstance(value, list):
        return _SCALAR + sum(map(weigh, value))
    return _SCALAR


def _part_of(whole: _Size) -> _Size:
    return _Size(whole.most, whole.mean, whole.most / _SCALAR)


def _together(parts: list[_Size]) -> _Size:
    most = sum(part.most for part in parts) + _SCALAR
    return _Size(most, sum(part.mean for part in parts) + _SCALAR, len(parts))


def _pattern_weight(pattern: str) -> float:
    """An upper bound of the states of a pattern: its length times all of its counted repetitions."""
    weight = float(len(pattern) + 1)
    for low, high in _REPEAT.findall(pattern):
        weight *= max(int(low or 1), int(high or 1), 1)
    return weight


def _walk(node: Node) -> Iterator[Node]:
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, Select):
            pending.append(node.operand)
        elif isinstance(node, Call):
            pending.extend(node.args)
        elif isinstance(node, Build):
            pending.extend(node.parts)
        elif isinstance(node, Loop):
            pending.extend((node.source, node.initial, node.condition, node.step, node.result))
