"""How a node ends: effects, edge conditions, the edges taken, and what a failure does to the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ductor.engine.context import CONTEXT_INLINE_BYTES, NodeContext, TickContext, error_view
from ductor.engine.graph import GraphEdge
from ductor.engine.scopes import Place
from ductor.expressions import ExpressionError, Program
from ductor.model import transition as tr
from ductor.model.enums import EdgeType, NodeStatus, OnError, RunStatus
from ductor.model.errors import StepError, clip
from ductor.model.json import JSON
from ductor.model.payload import NULL, Payload
from ductor.model.transition import Transition

MAX_ATTRIBUTE_CHARS: Final = 256
MAX_ATTRIBUTES: Final = 32

_SUCCESS = frozenset({EdgeType.SUCCESS})
_FAILURE = frozenset({EdgeType.ERROR, EdgeType.DONE})


def complete(
    ctx: NodeContext, output: Payload, edges: frozenset[EdgeType] = _SUCCESS, error: StepError | None = None
) -> Iterable[Transition]:
    """The node ended well (or `on_error: continue` makes its `error` count as well).

    Effects and the conditions of all edges of this outcome are evaluated before any edge is taken; an error in one
    makes the outcome failed with EXPRESSION_ERROR, keeping the output.
    """
    own = _own_view(ctx, "completed", output, error)
    try:
        context, attributes = _effects(ctx, own)
        taken = _taken(ctx, edges | {EdgeType.DONE}, own) or _taken_default(ctx, own)
    except ExpressionError as fault:
        yield from _fail_by(ctx, StepError(fault.code, fault.message, retryable=False), NodeStatus.FAILED, output)
        return
    no_route = bool(ctx.node.out) and not taken
    yield tr.NodeCompleted(ctx.id, output, taken, error, no_route, context, attributes)
    for name in ctx.node.checkpoints:
        if name not in ctx.tick.state.checkpoints:
            yield tr.CheckpointReached(name)


def fail(
    ctx: NodeContext, error: StepError, status: NodeStatus = NodeStatus.FAILED, output: Payload = NULL
) -> Iterable[Transition]:
    """The node failed after its retries. `status` is FAILED or TIMED_OUT; `output` is kept."""
    if ctx.node.step.on_error is OnError.CONTINUE:
        yield from complete(ctx, output, error=error)
        return
    yield from _fail_by(ctx, error, status, output)


def give_up(ctx: NodeContext) -> Iterable[Transition]:
    """A waiting node stops waiting by its own rule (`on_timeout: skip`): skipped, and only DONE edges are taken."""
    try:
        taken = _taken(ctx, frozenset({EdgeType.DONE}), _own_view(ctx, NodeStatus.SKIPPED.value, NULL, None))
    except ExpressionError as fault:
        yield from _fail_by(ctx, StepError(fault.code, fault.message, retryable=False), NodeStatus.FAILED, NULL)
        return
    yield tr.NodeSkipped(ctx.id, taken)


def _fail_by(ctx: NodeContext, error: StepError, status: NodeStatus, output: Payload) -> Iterable[Transition]:
    own = _own_view(ctx, status.value, output, error)
    try:
        taken = _taken_failed(ctx, status, own)
    except ExpressionError as fault:
        error = StepError(fault.code, f"{fault.message} (while handling {error.code})", retryable=False)
        taken = ()
    handled = bool(taken) or ctx.node.contained
    yield tr.NodeFailed(ctx.id, status, error, taken, handled, output)
    if handled or ctx.tick.state.ending or not ctx.place.open:
        return
    blame = StepError(error.code, clip(f"{ctx.id}: {error.message}", 512), error.retryable)
    if ctx.place.above is not None:
        yield from item_failed(ctx.tick, ctx.place, blame)
    else:
        yield from ending(ctx.tick, RunStatus.FAILED, blame, "")


def item_failed(ctx: TickContext, place: Place, error: StepError) -> Iterable[Transition]:
    """The item around `place` has failed: what waits in it is cancelled, what runs is drained, the scatter judges."""
    above, page = place.above, place.page
    if above is None or page is None:
        return
    yield tr.ItemEnded(above.id, place.index, error=error)
    item = page.items[place.index - page.first]
    for ref in [ref for ref, entry in item.nodes.items() if entry.status in PARKED]:
        yield tr.NodeCancelled(f"{ref}@{place.path}")
    yield from above.node.behaviour.item_ended(NodeContext(ctx, above), (place.index, error))


def ending(
    ctx: TickContext, status: RunStatus, error: StepError | None, reason: str, into: str = ""
) -> Iterable[Transition]:
    """Nothing new starts from here; parked nodes are cancelled at once, live attempts drain."""
    yield tr.RunEnding(status, error, reason, into)
    yield from cancel_nodes(ctx, PARKED)


def cancel_nodes(ctx: TickContext, statuses: frozenset[NodeStatus]) -> Iterable[Transition]:
    """Cancel every node in one of `statuses`; the attempt of a scheduled one may still be running."""
    for ref in [ref for ref, entry in ctx.state.root.nodes.items() if entry.status in statuses]:
        yield tr.NodeCancelled(ref, live=ctx.state.root.nodes[ref].status is NodeStatus.SCHEDULED)


PARKED: Final = frozenset({NodeStatus.WAITING, NodeStatus.RETRYING, NodeStatus.PAUSED})


def _taken_failed(ctx: NodeContext, status: NodeStatus, own: Mapping[str, JSON]) -> tuple[int, ...]:
    if status is NodeStatus.TIMED_OUT:
        taken = _taken(ctx, frozenset({EdgeType.TIMEOUT, EdgeType.DONE}), own)
        if any(ctx.node.out[index].type is EdgeType.TIMEOUT for index in taken):
            return taken
    return _taken(ctx, _FAILURE, own)


def _taken(ctx: NodeContext, types: frozenset[EdgeType], own: Mapping[str, JSON]) -> tuple[int, ...]:
    return tuple(edge.index for edge in ctx.node.out if edge.type in types and _holds(ctx, edge, own))


def _taken_default(ctx: NodeContext, own: Mapping[str, JSON]) -> tuple[int, ...]:
    return _taken(ctx, frozenset({EdgeType.DEFAULT}), own)


def _holds(ctx: NodeContext, edge: GraphEdge, own: Mapping[str, JSON]) -> bool:
    return edge.condition is None or ctx.holds(edge.condition, own)


def _own_view(ctx: NodeContext, status: str, output: Payload, error: StepError | None) -> dict[str, JSON]:
    """STEPS overlaid with this node's result, evaluated only when an expression asks for it."""
    if not ctx.node.reads_itself:
        return {}
    view: dict[str, JSON] = {"status": status, "error": error_view(error), "attempt": ctx.entry.attempt}
    if output != NULL:
        view["output"] = ctx.tick.value(output)
    return {ctx.node.ref: view}


def _effects(ctx: NodeContext, own: Mapping[str, JSON]) -> tuple[Payload | None, dict[str, JSON]]:
    context: Payload | None = None
    if ctx.node.context_effects:
        merged = {**(ctx.tick.value(ctx.tick.state.context) or {}), **_evaluate(ctx, ctx.node.context_effects, own)}
        context = ctx.tick.keep(merged, CONTEXT_INLINE_BYTES)
    attributes = _evaluate(ctx, ctx.node.visibility_effects, own)
    for name, program in ctx.node.visibility_effects:
        _check_attribute(ctx, name, attributes[name], program)
    return context, attributes


def _evaluate(ctx: NodeContext, programs: tuple[tuple[str, Program], ...], own: Mapping[str, JSON]) -> dict[str, JSON]:
    return {key: ctx.evaluate(program, own) for key, program in programs}


def _check_attribute(ctx: NodeContext, name: str, value: JSON, program: Program) -> None:
    known = ctx.tick.state.attributes
    if isinstance(value, dict | list) or (isinstance(value, str) and len(value) > MAX_ATTRIBUTE_CHARS):
        limit = f"visibility attribute {name} must be a scalar of at most {MAX_ATTRIBUTE_CHARS} characters"
        raise ExpressionError(limit, program.source)
    if name not in known and len(known) >= MAX_ATTRIBUTES:
        raise ExpressionError(f"a run holds at most {MAX_ATTRIBUTES} visibility attributes", program.source)
