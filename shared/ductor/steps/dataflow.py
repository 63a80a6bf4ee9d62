"""`dataflow`: shapes data inside the coordinator, with CEL. Reads and writes nothing outside the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from ductor.model.definition import Step
from ductor.model.errors import Violation
from ductor.model.json import JSON
from ductor.steps import reading
from ductor.steps.spec import WORK_EDGES, Expression, ExpressionKind, Scope, arg, conditions, fault, read_args, texts

EDGES: Final = WORK_EDGES
CODE: Final = "DATAFLOW_SPEC_INVALID"
ON_INPUT: Final = frozenset({"INPUT"})
"""Extra roots of expressions that see the whole input."""
ON_ITEM: Final = frozenset({"INPUT", "ITEM", "INDEX"})
"""Extra roots of expressions that are evaluated once per element."""
MAX_FLATTEN_DEPTH: Final = 10
GROUP_KEYS: Final = frozenset({"key", "items"})


class Operation(reading.Word):
    """What a dataflow step does; `Args` says how each reads its fields."""

    PROJECT = "project"
    FILTER = "filter"
    MAP = "map"
    MERGE = "merge"
    FLATTEN = "flatten"
    GROUP = "group"
    SORT = "sort"
    AGGREGATE = "aggregate"


class Order(reading.Word):
    """The direction of a sort."""

    ASC = "asc"
    DESC = "desc"


class AggregateOp(reading.Word):
    """How the values of one aggregate become one."""

    SUM = "sum"
    COUNT = "count"
    MIN = "min"
    MAX = "max"
    AVG = "avg"
    FIRST = "first"
    LAST = "last"
    COLLECT = "collect"


class Aggregate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One aggregate over the elements. `expr` is CEL, once per element (ITEM, INDEX, INPUT).

    `sum` `avg`: numbers; over nothing 0 and null. `min` `max`: numbers or strings, not mixed; over nothing null.
    `count`: the elements, or with `expr` (boolean) those for which it is true. `first` `last` `collect`: the values in
    input order, without `expr` the elements; over nothing null, null and []. Nulls are left out by sum, avg, min, max.
    """

    op: AggregateOp
    expr: str | None = None


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One operation on one input; the output is `{"result": …}`.

    `input_expr` (CEL) is evaluated once; INPUT is bound to its value (null without it). ITEM is each element of the
    input list and INDEX its position from 0. Where an operation needs a list and INPUT is none, the step fails.

    - `project`: `project: {name: CEL}` → one object with these names. INPUT may be anything.
    - `filter`: `where` (boolean CEL per element) → the elements for which it is true, in order.
    - `map`: `each` (CEL per element) or `project: {name: CEL}` per element → the list of results.
    - `merge`: the values of `inputs: [CEL]`, or without it the elements of INPUT. All objects: one object, later
      names win, with `deep: true` nested objects are merged too. All lists: one list, joined. Mixed: the step fails.
    - `flatten`: elements of INPUT that are lists are replaced by their elements, `depth` (1 to 10, default 1) levels.
    - `group`: `by` (CEL per element → string, number or boolean) → `[{"key", "items": [..]}]` in the order in which the
      keys first appear; with `aggregate`, its names stand in each entry instead of `items`.
    - `sort`: by `by` (CEL per element, default the element), stable, `order` `asc` (default) or `desc`. Keys are all
      numbers, all strings, all booleans, or lists of such; null sorts last in both orders. Otherwise the step fails.
    - `aggregate`: `aggregate: {name: {op, expr?}}` over the elements of INPUT → one object.

    `redaction_policy` is the step's field of that name, accepted here too.
    """

    operation: Operation
    input_expr: str | None = None
    project: dict[str, str] | None = None
    where: str | None = None
    each: str | None = None
    inputs: tuple[str, ...] | None = None
    deep: bool | None = None
    depth: int | None = None
    by: str | None = None
    order: Order | None = None
    aggregate: dict[str, Aggregate] | None = None
    redaction_policy: str | None = None


Faults = Iterator[tuple[str, str]]

_GENERAL: Final = frozenset({"operation", "input_expr", "redaction_policy"})
_OWN_FIELDS: Final[dict[Operation, frozenset[str]]] = {
    Operation.PROJECT: frozenset({"project"}),
    Operation.FILTER: frozenset({"where"}),
    Operation.MAP: frozenset({"each", "project"}),
    Operation.MERGE: frozenset({"inputs", "deep"}),
    Operation.FLATTEN: frozenset({"depth"}),
    Operation.GROUP: frozenset({"by", "aggregate"}),
    Operation.SORT: frozenset({"by", "order"}),
    Operation.AGGREGATE: frozenset({"aggregate"}),
}


def parse_args(args: JSON) -> Args:
    return reading.parse(Args, args)


def validate(step: Step, scope: Scope) -> Iterator[Violation]:
    """The fields fit the operation: those that it needs are there, none that it would ignore."""
    del scope
    args, violations = read_args(Args, step, CODE)
    yield from violations
    if args is None:
        return
    for path, message in (*_foreign(args), *_blank(args), *_RULES[args.operation](args)):
        yield fault(step, CODE, message, path)


def _foreign(args: Args) -> Faults:
    own = _GENERAL | _OWN_FIELDS[args.operation]
    for name in args.__struct_fields__:
        if name not in own and getattr(args, name) is not None:
            yield name, f"has no meaning for `{args.operation}`; remove it"


def _blank(args: Args) -> Faults:
    for name in ("input_expr", "where", "each", "by"):
        if getattr(args, name) == "":
            yield name, "write a CEL expression"
    if args.input_expr is None and args.operation not in (Operation.PROJECT, Operation.MERGE):
        yield (
            "input_expr",
            f"`{args.operation}` needs a CEL expression that gives a list, for example STEPS.load.output.rows",
        )


def _project(args: Args) -> Faults:
    if not args.project:
        yield "project", "give at least one `name: CEL`"


def _filter(args: Args) -> Faults:
    if args.where is None:
        yield "where", "give the condition that elements must meet, for example ITEM.amount > 0"


def _map(args: Args) -> Faults:
    if (args.each is None) == (not args.project):
        yield "each", "give exactly one of `each` (CEL) and `project` ({name: CEL})"


def _merge(args: Args) -> Faults:
    if args.inputs is None and args.input_expr is None:
        yield "inputs", "give the values to merge as a list of CEL expressions, or an `input_expr` that gives a list"
    elif args.inputs is not None and not args.inputs:
        yield "inputs", "give at least one CEL expression"


def _flatten(args: Args) -> Faults:
    if args.depth is not None and not 1 <= args.depth <= MAX_FLATTEN_DEPTH:
        yield "depth", f"must be between 1 and {MAX_FLATTEN_DEPTH}"


def _group(args: Args) -> Faults:
    if args.by is None:
        yield "by", "give the key of an element, for example ITEM.country"
    for name, aggregate in (args.aggregate or {}).items():
        if name in GROUP_KEYS:
            yield f"aggregate.{name}", f"`{name}` is taken by the group itself; choose another name"
        yield from _aggregate_faults(name, aggregate)


def _sort(args: Args) -> Faults:
    del args
    return iter(())


def _aggregate(args: Args) -> Faults:
    if not args.aggregate:
        yield "aggregate", "give at least one `name: {op, expr}`"
    for name, aggregate in (args.aggregate or {}).items():
        yield from _aggregate_faults(name, aggregate)


def _aggregate_faults(name: str, aggregate: Aggregate) -> Faults:
    needs = aggregate.op in (AggregateOp.SUM, AggregateOp.AVG, AggregateOp.MIN, AggregateOp.MAX)
    if aggregate.expr == "" or (needs and aggregate.expr is None):
        yield f"aggregate.{name}.expr", f"`{aggregate.op}` needs the value of an element, for example ITEM.amount"


_RULES: Final[dict[Operation, Callable[[Args], Faults]]] = {
    Operation.PROJECT: _project,
    Operation.FILTER: _filter,
    Operation.MAP: _map,
    Operation.MERGE: _merge,
    Operation.FLATTEN: _flatten,
    Operation.GROUP: _group,
    Operation.SORT: _sort,
    Operation.AGGREGATE: _aggregate,
}


def expressions(step: Step) -> Iterator[Expression]:
    """Every CEL text of the args, with the roots that it may read."""
    yield from texts(step, frozenset(), "input_expr")
    yield from conditions(step, ON_ITEM, "where")
    yield from texts(step, ON_ITEM, "each", "by")
    per_item = str(arg(step, "operation")).lower() == Operation.MAP
    yield from _named(step, "project", ON_ITEM if per_item else ON_INPUT)
    inputs = arg(step, "inputs")
    for index, source in enumerate(inputs if isinstance(inputs, list) else ()):
        if isinstance(source, str):
            yield Expression(f"args.inputs[{index}]", source, ExpressionKind.VALUE, ON_INPUT)
    yield from _aggregates(step)


def _named(step: Step, field: str, roots: frozenset[str]) -> Iterator[Expression]:
    values = arg(step, field)
    for name, source in values.items() if isinstance(values, dict) else ():
        if isinstance(source, str):
            yield Expression(f"args.{field}.{name}", source, ExpressionKind.VALUE, roots)


def _aggregates(step: Step) -> Iterator[Expression]:
    values = arg(step, "aggregate")
    for name, value in values.items() if isinstance(values, dict) else ():
        if isinstance(value, dict) and isinstance(value.get("expr"), str):
            counts = str(value.get("op")).lower() == AggregateOp.COUNT
            kind = ExpressionKind.CONDITION if counts else ExpressionKind.VALUE
            yield Expression(f"args.aggregate.{name}.expr", value["expr"], kind, ON_ITEM)
