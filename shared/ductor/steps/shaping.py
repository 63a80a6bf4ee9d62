"""How a dataflow step runs: each operation over its input, element by element, within the step's expression budget.

`dataflow` holds what the operations mean and how they are validated; this module only carries them out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from ductor.engine.behaviour import Plain
from ductor.engine.context import NodeContext
from ductor.engine.outcome import complete, fail
from ductor.expressions import ExpressionError, Program, compile_cel
from ductor.model.definition import Step
from ductor.model.errors import StepError
from ductor.model.json import JSON, encode
from ductor.model.payload import MAX_OUTPUT_BYTES
from ductor.model.transition import Transition
from ductor.steps.dataflow import Aggregate, AggregateOp, Args, Operation, Order, parse_args

FAILED: Final = "DATAFLOW_FAILED"

MAX_ELEMENTS: Final = 100_000
"""Elements of one input; flatten and merge hold their results to it too."""


class ShapeError(Exception):
    """The input does not fit the operation. The message says what was found and what is wanted."""


class Plan(msgspec.Struct, frozen=True):
    """A dataflow step with its expressions compiled."""

    args: Args
    input: Program | None
    project: dict[str, Program]
    inputs: tuple[Program, ...]
    one: Program | None
    aggregate: dict[str, tuple[Aggregate, Program | None]]


class DataflowBehaviour(Plain):
    """Shapes data inside the tick; never waits."""

    def compile(self, step: Step) -> Plan:
        args = parse_args(step.args)
        single = args.where or args.each or args.by
        return Plan(
            args=args,
            input=_program(args.input_expr),
            project={name: compile_cel(source) for name, source in (args.project or {}).items()},
            inputs=tuple(compile_cel(source) for source in args.inputs or ()),
            one=_program(single),
            aggregate={name: (entry, _program(entry.expr)) for name, entry in (args.aggregate or {}).items()},
        )

    def start(self, ctx: NodeContext) -> Iterable[Transition]:
        plan: Plan = ctx.args
        try:
            value = ctx.evaluate(plan.input) if plan.input else None
            output = {"result": _OPERATIONS[plan.args.operation](_Work(ctx, plan, value))}
        except ExpressionError as fault:
            return fail(ctx, StepError(fault.code, fault.message, retryable=False))
        except ShapeError as fault:
            return fail(ctx, StepError(FAILED, str(fault), retryable=False))
        data = encode(output)
        if len(data) > MAX_OUTPUT_BYTES:
            message = f"the result has {len(data)} bytes; at most {MAX_OUTPUT_BYTES} are allowed"
            return fail(ctx, StepError("OUTPUT_TOO_LARGE", message, retryable=False))
        return complete(ctx, ctx.tick.keep(output, data=data))


def _program(source: str | None) -> Program | None:
    return compile_cel(source) if source else None


class _Work:
    """One evaluation of a step: its input, and its expressions over elements."""

    def __init__(self, ctx: NodeContext, plan: Plan, value: JSON) -> None:
        self.ctx = ctx
        self.plan = plan
        self.input = value

    def elements(self) -> list[JSON]:
        """The input as a list. Raises ShapeError when it is none or too long."""
        if not isinstance(self.input, list):
            raise ShapeError(f"`{self.plan.args.operation}` needs a list as input, not {_kind(self.input)}")
        return _limited(self.input)

    def whole(self, program: Program) -> JSON:
        """An expression over the whole input."""
        return self.ctx.evaluate(program, INPUT=self.input)

    def each(self, program: Program, elements: list[JSON]) -> Iterator[JSON]:
        """An expression once per element."""
        for index, item in enumerate(elements):
            yield self.ctx.evaluate(program, INPUT=self.input, ITEM=item, INDEX=index)

    def true_for(self, program: Program, elements: list[JSON]) -> list[JSON]:
        """The elements for which a condition holds."""
        return [
            item
            for index, item in enumerate(elements)
            if self.ctx.holds(program, INPUT=self.input, ITEM=item, INDEX=index)
        ]


def _project(work: _Work) -> JSON:
    return {name: work.whole(program) for name, program in work.plan.project.items()}


def _filter(work: _Work) -> JSON:
    return work.true_for(_given(work.plan.one), work.elements())


def _map(work: _Work) -> JSON:
    elements = work.elements()
    if work.plan.one is not None:
        return list(work.each(work.plan.one, elements))
    columns = {name: list(work.each(program, elements)) for name, program in work.plan.project.items()}
    return [{name: values[index] for name, values in columns.items()} for index in range(len(elements))]


def _merge(work: _Work) -> JSON:
    values = [work.whole(program) for program in work.plan.inputs] if work.plan.inputs else work.elements()
    if all(isinstance(value, dict) for value in values):
        merged: dict[str, JSON] = {}
        for value in values:
            merged = _deep(merged, value) if work.plan.args.deep else {**merged, **value}
        return merged
    if all(isinstance(value, list) for value in values):
        return _limited([item for value in values for item in value])
    raise ShapeError("`merge` needs only objects or only lists; found " + ", ".join(sorted({_kind(v) for v in values})))


def _deep(base: dict[str, JSON], over: dict[str, JSON]) -> dict[str, JSON]:
    merged = dict(base)
    for name, value in over.items():
        old = merged.get(name)
        merged[name] = _deep(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _flatten(work: _Work) -> JSON:
    values = work.elements()
    for _ in range(work.plan.args.depth or 1):
        if not any(isinstance(value, list) for value in values):
            break
        flat: list[JSON] = []
        for value in values:
            flat.extend(value if isinstance(value, list) else [value])
        values = _limited(flat)
    return values


def _group(work: _Work) -> JSON:
    elements = work.elements()
    groups: dict[tuple[type, JSON], list[JSON]] = {}
    for key, item in zip(work.each(_given(work.plan.one), elements), elements, strict=True):
        if not isinstance(key, str | int | float | bool):
            raise ShapeError(f"`by` must give a string, number or boolean, not {_kind(key)}")
        groups.setdefault(_identity(key), []).append(item)
    if not work.plan.aggregate:
        return [{"key": key, "items": items} for (_, key), items in groups.items()]
    return [{"key": key, **_aggregates(work, items)} for (_, key), items in groups.items()]


def _identity(key: JSON) -> tuple[type, JSON]:
    """1 and 1.0 are one key, 1 and true are two."""
    return (bool, key) if isinstance(key, bool) else (str, key) if isinstance(key, str) else (float, key)


def _sort(work: _Work) -> JSON:
    elements = work.elements()
    keys = list(work.each(work.plan.one, elements)) if work.plan.one else elements
    known = [index for index, key in enumerate(keys) if key is not None]
    reverse = work.plan.args.order is Order.DESC
    try:
        kinds = {_sort_kind(keys[index]) for index in known}
        if len(kinds) > 1:
            raise TypeError
        known.sort(key=lambda index: keys[index], reverse=reverse)
    except TypeError:
        raise ShapeError("sort keys must be all numbers, all strings, all booleans, or lists of such") from None
    missing = [index for index, key in enumerate(keys) if key is None]
    return [elements[index] for index in (*known, *missing)]


def _sort_kind(key: JSON) -> object:
    if isinstance(key, list):
        return tuple(_sort_kind(part) for part in key)
    if isinstance(key, dict) or key is None:
        raise TypeError
    return bool if isinstance(key, bool) else str if isinstance(key, str) else float


def _aggregate(work: _Work) -> JSON:
    return _aggregates(work, work.elements())


def _aggregates(work: _Work, elements: list[JSON]) -> dict[str, JSON]:
    return {name: _reduce(work, entry, program, elements) for name, (entry, program) in work.plan.aggregate.items()}


def _reduce(work: _Work, entry: Aggregate, program: Program | None, elements: list[JSON]) -> JSON:
    if entry.op is AggregateOp.COUNT:
        return len(work.true_for(program, elements)) if program else len(elements)
    values = list(work.each(program, elements)) if program else elements
    if entry.op is AggregateOp.COLLECT:
        return values
    if entry.op in (AggregateOp.FIRST, AggregateOp.LAST):
        return (values[0] if entry.op is AggregateOp.FIRST else values[-1]) if values else None
    return _numbers(entry.op, [value for value in values if value is not None])


def _numbers(op: AggregateOp, values: list[Any]) -> JSON:
    texts = bool(values) and all(isinstance(value, str) for value in values)
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    if op in (AggregateOp.MIN, AggregateOp.MAX) and (texts or numbers):
        return (min(values) if op is AggregateOp.MIN else max(values)) if values else None
    if not numbers:
        raise ShapeError(f"`{op}` needs numbers; found " + ", ".join(sorted({_kind(value) for value in values})))
    total = sum(values)
    if not -(2**63) <= total < 2**64 and isinstance(total, int):
        raise ShapeError(f"the {op} is an integer beyond 64 bits")
    if op is AggregateOp.SUM:
        return _finite(total)
    return _finite(total / len(values)) if values else None


def _finite(number: float) -> float:
    if number != number or number in (float("inf"), float("-inf")):
        raise ShapeError("the result is beyond what a number can hold")
    return number


def _limited(values: list[JSON]) -> list[JSON]:
    if len(values) > MAX_ELEMENTS:
        raise ShapeError(f"{len(values)} elements; at most {MAX_ELEMENTS} are allowed")
    return values


def _given(program: Program | None) -> Program:
    if program is None:
        raise ShapeError("the operation's expression is missing")
    return program


def _kind(value: JSON) -> str:
    names: Mapping[type, str] = {
        type(None): "null",
        bool: "a boolean",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "an object",
    }
    return names[type(value)]


_OPERATIONS: Final[Mapping[Operation, Callable[[_Work], JSON]]] = {
    Operation.PROJECT: _project,
    Operation.FILTER: _filter,
    Operation.MAP: _map,
    Operation.MERGE: _merge,
    Operation.FLATTEN: _flatten,
    Operation.GROUP: _group,
    Operation.SORT: _sort,
    Operation.AGGREGATE: _aggregate,
}
