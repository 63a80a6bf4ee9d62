"""`gather`: closes the nearest scatter, or joins plain branches, by a policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

import msgspec

from ductor.engine.behaviour import Plain
from ductor.engine.context import NodeContext
from ductor.engine.due import PAGES_PER_TICK
from ductor.engine.outcome import complete, fail
from ductor.engine.regions import ROOT
from ductor.engine.scopes import Place, in_item
from ductor.expressions import ExpressionError, Program, compile_cel
from ductor.model import transition as tr
from ductor.model.definition import Step
from ductor.model.errors import StepError, Violation
from ductor.model.json import JSON, encode
from ductor.model.payload import MAX_OUTPUT_BYTES, NULL, Payload
from ductor.model.run import ItemStatus, PageState, ScatterState
from ductor.model.transition import Transition
from ductor.steps import reading
from ductor.steps.branches import all_failed, arrived, cancel_losers, entry_at, failures
from ductor.steps.spec import PLAIN_EDGES, Expression, Scope, fault, read_args, texts

EDGES: Final = PLAIN_EDGES
CODE: Final = "GATHER_SPEC_INVALID"
ON_ITEM: Final = frozenset({"ITEM", "INDEX"})


class Policy(reading.Word):
    """How many branches must succeed."""

    ALL = "all"
    ANY = "any"
    QUORUM = "quorum"


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`quorum` is the number of successes for `policy: quorum`. `output_expr`: CEL per item (ITEM, INDEX)."""

    policy: Policy = Policy.ALL
    quorum: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None
    output_expr: str = ""


def parse_args(args: JSON) -> Args:
    return reading.parse(Args, args)


def validate(step: Step, scope: Scope) -> Iterator[Violation]:
    """A quorum is given exactly for the policy that needs it."""
    del scope
    args, violations = read_args(Args, step, CODE)
    yield from violations
    if args is None:
        return
    if args.policy is Policy.QUORUM and args.quorum is None:
        yield fault(step, CODE, "policy `quorum` needs the number of branches that must succeed", "quorum")
    if args.policy is not Policy.QUORUM and args.quorum is not None:
        yield fault(step, CODE, "only has a meaning with policy `quorum`; remove it or set the policy", "quorum")


def expressions(step: Step) -> Iterator[Expression]:
    return texts(step, ON_ITEM, "output_expr")


class Plan(msgspec.Struct, frozen=True):
    """A gather, compiled. `wanted` is how many successes decide it, 0 = it waits for all."""

    wanted: int
    output: Program | None


class GatherBehaviour(Plain):
    """Collects the items of its scatter page by page, or what plain branches bring."""

    def compile(self, step: Step) -> Plan:
        args = parse_args(step.args)
        wanted = {Policy.ALL: 0, Policy.ANY: 1, Policy.QUORUM: args.quorum or 1}[args.policy]
        return Plan(wanted, compile_cel(args.output_expr) if args.output_expr else None)

    def needs(self, args: Any) -> int:
        plan: Plan = args
        return plan.wanted

    def start(self, ctx: NodeContext) -> Iterable[Transition]:
        if ctx.node.scatter != ROOT:
            return _collect(ctx)
        plan: Plan = ctx.args
        if not plan.wanted or len(arrived(ctx)) >= plan.wanted:
            return _join(ctx, plan)
        failed = failures(ctx)
        if not failed and not arrived(ctx):
            return (tr.NodeSkipped(ctx.id),)
        return _impossible(ctx, plan, failed)

    def item_output(self, args: Any, inside: NodeContext, arrived: list[int]) -> Payload:
        plan: Plan = args
        if plan.output is not None:
            return inside.tick.keep(inside.evaluate(plan.output))
        refs = [inside.tick.graph.nodes[index].ref for index in sorted(arrived)]
        nodes = inside.place.scope.nodes
        if len(refs) == 1:
            return nodes[refs[0]].output
        if not refs:
            return NULL
        return inside.tick.keep({ref: inside.tick.value(nodes[ref].output) for ref in refs})


def _collect(ctx: NodeContext) -> Iterator[Transition]:
    """Some pages more, then the output once all of them are read."""
    tick = ctx.tick
    place = tick.place(ctx.id.replace(ctx.node.ref, tick.graph.nodes[ctx.node.scatter].ref, 1))
    entry = place.entry if place else None
    if place is None or entry is None or entry.scatter is None:
        raise LookupError(f"the scatter of {ctx.id} has opened no items")
    scatter, number = entry.scatter, ctx.entry.cursor
    so_far: Any = tick.value(ctx.entry.input) if number else {"results": [], "errors": []}
    results, errors = list(so_far["results"]), list(so_far["errors"])
    try:
        while number < scatter.opened:
            if number > ctx.entry.cursor and len(tick.pages) >= PAGES_PER_TICK:
                yield tr.GatherCollected(ctx.id, number, tick.keep({"results": results, "errors": errors}))
                return
            page = tick.state.loaded[scatter.base + number]
            tick.pages.add(page.number)
            _read(ctx, place, page, results, errors)
            number += 1
    except ExpressionError as fault:
        yield from fail(ctx, StepError(fault.code, fault.message, retryable=False))
        return
    yield from _done(ctx, results, errors, scatter)


def _read(ctx: NodeContext, scatter: Place, page: PageState, results: list[JSON], errors: list[JSON]) -> None:
    key: Program | None = scatter.node.args.key
    for index, item in enumerate(page.items, page.first):
        if item.status is ItemStatus.SUCCEEDED:
            results.append(ctx.tick.value(item.output))
            continue
        error = item.error or _NOT_NEEDED
        shown: dict[str, JSON] = {"index": index, "code": error.code, "message": error.message}
        if key is not None:
            shown["key"] = NodeContext(ctx.tick, in_item(ctx.tick.graph, scatter, index, page)).evaluate(key)
        results.append(None)
        errors.append(shown)


_NOT_NEEDED: Final = StepError("ITEM_CANCELLED", "the item was not needed any more", retryable=False)


def _done(ctx: NodeContext, results: list[JSON], errors: list[JSON], scatter: ScatterState) -> Iterable[Transition]:
    for index in range(len(results), scatter.count):
        results.append(None)
        errors.append({"index": index, "code": _NOT_NEEDED.code, "message": _NOT_NEEDED.message})
    return _complete(ctx, results, errors)


def _complete(ctx: NodeContext, results: list[JSON], errors: list[JSON]) -> Iterable[Transition]:
    output = {"results": results, "errors": errors, "count": len(results)}
    data = encode(output)
    if len(data) > MAX_OUTPUT_BYTES:
        message = f"the results have {len(data)} bytes; at most {MAX_OUTPUT_BYTES} are allowed"
        return fail(ctx, StepError("OUTPUT_TOO_LARGE", message, retryable=False))
    return complete(ctx, ctx.tick.keep(output, data=data))


def _join(ctx: NodeContext, plan: Plan) -> Iterator[Transition]:
    """Plain branches: their outputs in definition order, null for one that did not arrive."""
    came = arrived(ctx)
    results: list[JSON] = []
    errors: list[JSON] = []
    failed = {source: error for source, _, error in failures(ctx)}
    try:
        for index, source in enumerate(ctx.node.sources):
            entry = entry_at(ctx, source)
            value = ctx.tick.value(entry.output) if entry is not None and source in came else None
            if plan.output is not None and source in came:
                value = ctx.evaluate(plan.output, ITEM=value, INDEX=index)
            error = failed.get(source) or (entry.error if entry is not None and source not in came else None)
            results.append(value)
            if error is not None:
                errors.append({"index": index, "code": error.code, "message": error.message})
    except ExpressionError as fault:
        yield from fail(ctx, StepError(fault.code, fault.message, retryable=False))
        return
    yield from _complete(ctx, results, errors)
    if plan.wanted:
        yield from cancel_losers(ctx, came)


def _impossible(ctx: NodeContext, plan: Plan, failed: list[tuple[int, str, StepError]]) -> Iterator[Transition]:
    what = f"{len(arrived(ctx))} of {plan.wanted} branches succeeded, and no more can"
    yield from fail(ctx, all_failed("GATHER_FAILED", what, failed))
    yield from cancel_losers(ctx, arrived(ctx))
