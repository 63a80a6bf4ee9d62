"""`scatter`: opens one child scope per item, over the steps up to its gather."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

import msgspec

from ductor.engine.behaviour import Plain
from ductor.engine.context import NodeContext
from ductor.engine.outcome import complete, fail
from ductor.expressions import ExpressionError, Program, compile_cel
from ductor.model import transition as tr
from ductor.model.definition import Step
from ductor.model.enums import NodeStatus
from ductor.model.errors import StepError, Violation, clip
from ductor.model.json import JSON, encode
from ductor.model.payload import MAX_OUTPUT_BYTES, Inline
from ductor.model.run import ScatterState
from ductor.model.transition import Transition
from ductor.steps import reading
from ductor.steps.spec import PLAIN_EDGES, Expression, Scope, fault, read_args, texts

EDGES: Final = PLAIN_EDGES
CODE: Final = "SCATTER_SPEC_INVALID"
MAX_ITEMS: Final = 100_000
ON_ITEM: Final = frozenset({"ITEM", "INDEX"})

_PERCENT: Final = re.compile(r"(?:100|[0-9]{1,2})%", re.ASCII)


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`items_expr`: CEL that gives a list. `max_concurrency` 0 = all at once, else a sliding window.

    `tolerated_failures`: how many items may fail, a count or a share like `"10%"`. `item_key_expr`: CEL per item
    (ITEM, INDEX).
    """

    items_expr: Annotated[str, msgspec.Meta(min_length=1)]
    max_concurrency: Annotated[int, msgspec.Meta(ge=0, le=MAX_ITEMS)] = 0
    tolerated_failures: int | str = 0
    item_key_expr: str = ""


def parse_args(args: JSON) -> Args:
    return reading.parse(Args, args)


def validate(step: Step, scope: Scope) -> Iterator[Violation]:
    """The tolerance is a count or a share."""
    del scope
    args, violations = read_args(Args, step, CODE)
    yield from violations
    if args is not None and not _tolerance(args.tolerated_failures):
        message = f'must be a count from 0 to {MAX_ITEMS} or a share from "0%" to "100%"'
        yield fault(step, CODE, message, "tolerated_failures")


def _tolerance(value: int | str) -> bool:
    if isinstance(value, str):
        return _PERCENT.fullmatch(value) is not None
    return 0 <= value <= MAX_ITEMS


def expressions(step: Step) -> Iterator[Expression]:
    yield from texts(step, frozenset(), "items_expr")
    yield from texts(step, ON_ITEM, "item_key_expr")


ITEMS_INVALID: Final = "SCATTER_ITEMS_INVALID"
ITEMS_PER_PAGE: Final = 100
NODES_PER_PAGE: Final = 200
"""Steps of all items of a page; a page must stay far below what one row can hold."""


class Plan(msgspec.Struct, frozen=True):
    """A scatter, compiled. `tolerated` items may fail, or `tolerated_percent` of them."""

    items: Program
    window: int
    tolerated: int
    tolerated_percent: int
    key: Program | None

    def may_fail(self, count: int) -> int:
        return self.tolerated + count * self.tolerated_percent // 100


class ScatterBehaviour(Plain):
    """Opens the items and waits until its gather's policy is met, or cannot be met any more."""

    def compile(self, step: Step) -> Plan:
        args = parse_args(step.args)
        share = args.tolerated_failures
        return Plan(
            items=compile_cel(args.items_expr),
            window=args.max_concurrency,
            tolerated=share if isinstance(share, int) else 0,
            tolerated_percent=int(share.removesuffix("%")) if isinstance(share, str) else 0,
            key=compile_cel(args.item_key_expr) if args.item_key_expr else None,
        )

    def start(self, ctx: NodeContext) -> Iterable[Transition]:
        if ctx.entry.scatter is not None:
            return self._again(ctx)
        plan: Plan = ctx.args
        fork = ctx.tick.state.fork
        kept = fork.items.get(ctx.id) if fork else None
        if kept is not None:  # it goes on with the items of the run that it comes from
            return self._open(ctx, ctx.tick.value(kept.items))
        try:
            items = ctx.evaluate(plan.items)
        except ExpressionError as fault:
            return fail(ctx, StepError(fault.code, fault.message, retryable=False))
        problem = _problem(items)
        if problem:
            return fail(ctx, StepError(ITEMS_INVALID, problem, retryable=False))
        return self._open(ctx, items)

    def _again(self, ctx: NodeContext) -> Iterator[Transition]:
        yield tr.ScatterReopened(ctx.id, ctx.entry.generation + 1)
        yield from self.item_ended(ctx, None)

    def _open(self, ctx: NodeContext, items: list[JSON]) -> Iterator[Transition]:
        plan: Plan = ctx.args
        tree = ctx.tick.state.tree
        body = len(ctx.tick.graph.bodies[ctx.node.index])
        yield tr.ScatterOpened(
            ctx.id,
            ctx.entry.generation + 1,
            len(items),
            ctx.tick.keep(items),
            tree.pages if tree else 0,
            max(1, min(ITEMS_PER_PAGE, NODES_PER_PAGE // body)),
            plan.window,
        )
        yield from self.item_ended(ctx, None)

    def item_ended(self, ctx: NodeContext, failed: tuple[int, StepError] | None) -> Iterable[Transition]:
        entry = ctx.place.entry
        if entry is None or entry.scatter is None or entry.status is not NodeStatus.WAITING:
            return ()
        scatter = entry.scatter
        wanted: int = ctx.tick.graph.nodes[ctx.node.gather].args.wanted
        plan: Plan = ctx.args
        if _lost(scatter, wanted, plan):
            return fail(ctx, _failure(scatter, wanted, failed))
        return complete(ctx, Inline({"count": scatter.count})) if _met(scatter, wanted) else ()


def _lost(scatter: ScatterState, wanted: int, plan: Plan) -> bool:
    """Too many have failed, the last one to end among them; of no items none can fail."""
    if wanted:
        return 0 < scatter.count < wanted + scatter.failed and scatter.succeeded < wanted
    return scatter.failed > plan.may_fail(scatter.count)


def _met(scatter: ScatterState, wanted: int) -> bool:
    if wanted and scatter.count:
        return scatter.succeeded >= wanted
    return scatter.decided


def _problem(items: Any) -> str | None:
    """What is wrong with the value that `items_expr` gave."""
    if not isinstance(items, list):
        return f"items_expr must give a list, not {_KINDS.get(type(items), 'a number')}"
    if len(items) > MAX_ITEMS:
        return f"items_expr gives {len(items)} items; at most {MAX_ITEMS} are allowed"
    size = len(encode(items))
    if size > MAX_OUTPUT_BYTES:
        return f"the items have {size} bytes; at most {MAX_OUTPUT_BYTES} are allowed"
    return None


_KINDS: Final = {type(None): "null", bool: "a boolean", str: "a string", dict: "an object"}


def _failure(scatter: ScatterState, wanted: int, failed: tuple[int, StepError] | None) -> StepError:
    """Why the scatter cannot succeed any more; names the item that decided it."""
    if wanted:
        why = f"{scatter.failed} of {scatter.count} items have failed, so {wanted} cannot succeed"
    else:
        why = f"{scatter.failed} of {scatter.count} items have failed"
    if failed is None:
        return StepError("ITEMS_FAILED", why, retryable=False)
    index, error = failed
    details: JSON = {"index": index, "code": error.code, "message": clip(error.message, 128)}
    return StepError("ITEMS_FAILED", clip(f"{why}; item {index}: {error.message}", 512), False, details)
