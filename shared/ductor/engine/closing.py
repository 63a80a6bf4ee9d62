"""How a run ends: what undoes it and what is called afterwards is planned here, and who must hear of the end.

Plans are rendered in the run's last tick, so that they see what the run saw. Nothing is started here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from ductor.engine.context import NodeContext, TickContext
from ductor.engine.evolve import ABANDON
from ductor.engine.graph import Graph, GraphNode
from ductor.engine.regions import ROOT
from ductor.engine.scopes import Place, item_path
from ductor.engine.slots import slot_asked
from ductor.expressions import Budget, ExpressionError, Template, compile_template
from ductor.model import transition as tr
from ductor.model.command import CloseChild, Command, LeaveSlot, StartLinked, StartSuccessor, TellParent
from ductor.model.definition import Compensation, CompensationTarget, Retry
from ductor.model.enums import NodeStatus, RunStatus, StepType
from ductor.model.errors import StepError, clip
from ductor.model.json import JSON
from ductor.model.lineage import COMPENSATION, HOOK, PARENT_DUTY, SUCCESSOR_DUTY, WORKFLOW, read_child_key
from ductor.model.payload import NULL, Payload
from ductor.model.run import RunState
from ductor.model.slots import SLOT_DUTY
from ductor.model.transition import Transition

CLOSES_PER_TICK: Final = 200
"""Children that one tick closes; the others follow with the next looks at a run that has ended."""

IGNORE: Final = "ignore_with_audit"
STOP: Final = "fail_compensation"
REPAIR: Final = "manual_repair"
FINALLY: Final = "finally"

_UNDO: Final = {RunStatus.FAILED: "on_failure", RunStatus.TIMED_OUT: "on_failure", RunStatus.CANCELLED: "on_cancel"}
_HOOKS: Final = {
    RunStatus.COMPLETED: "on_completed",
    RunStatus.FAILED: "on_failed",
    RunStatus.TIMED_OUT: "on_failed",
    RunStatus.CANCELLED: "on_cancelled",
}


class Target(msgspec.Struct, frozen=True, omit_defaults=True):
    """One rendered target of a plan. `error` says why it could not be rendered; then it is a failed target."""

    step: str
    group: str
    action: str
    args: JSON = None
    connection_ref: str = ""
    retry: Retry = Retry()
    timeout_ms: int = 0
    policy: str = REPAIR
    error: StepError | None = None


def close(
    ctx: TickContext, status: RunStatus, output: Payload = NULL, error: StepError | None = None, reason: str = ""
) -> Iterator[Transition]:
    """The run ends as `status`. Plans what follows it; its children and its parent are owed the news."""
    origin = ctx.state.origin
    duties: list[str] = []
    if ctx.graph.concurrency is not None:
        yield from _known_slot(ctx)
        duties += [SLOT_DUTY] if ctx.state.slot is not None else []
    if origin.kind == WORKFLOW and status is not RunStatus.CONTINUED_AS_NEW:
        if origin.parent_run_id:
            duties.append(PARENT_DUTY)
        for kind, targets in ((COMPENSATION, _compensation(ctx, status)), (HOOK, _hook(ctx, status))):
            if targets:
                duties.append(kind)
                undoes = any(target.group in _UNDO.values() for target in targets)
                yield tr.LinkedPlanned(kind, ctx.keep(msgspec.to_builtins(targets)), undoes)
    if status is RunStatus.CONTINUED_AS_NEW:
        duties.append(SUCCESSOR_DUTY)
    yield tr.RunEnded(status, output, error, reason, tuple(duties))


def _known_slot(ctx: TickContext) -> Iterator[Transition]:
    """A run that ends before its first tick may hold a slot that only its trigger knows of."""
    try:
        asked = slot_asked(ctx) if ctx.state.slot is None else None
    except ExpressionError:
        return  # then no trigger has found one either
    if asked is not None:
        yield asked


def owed(state: RunState, *, check: bool) -> Iterable[Command]:
    """What a run that has ended still owes to others. Carrying it out twice is harmless."""
    for duty in state.duties:
        if duty == PARENT_DUTY:
            yield TellParent(check)
        elif duty == SUCCESSOR_DUTY:
            yield StartSuccessor()
        elif duty == SLOT_DUTY:
            yield from (LeaveSlot(state.slot.lease),) if state.slot else ()
        else:
            yield StartLinked(duty)
    closing = [key for key, policy in state.children.items() if policy != ABANDON]
    for key in closing[:CLOSES_PER_TICK]:
        yield CloseChild(*read_child_key(key))


def verdict(ctx: TickContext) -> StepError | None:
    """Why a compensation run whose steps have all ended counts as failed: a target failed that may not be ignored."""
    failed = {
        ref: entry.error
        for ref, entry in ctx.state.root.nodes.items()
        if entry.status in (NodeStatus.FAILED, NodeStatus.TIMED_OUT)
    }
    if not failed:
        return None
    steps = ctx.graph.by_ref
    policies = {_policy(steps[ref].step.compensation) for ref in failed}
    code = "MANUAL_REPAIR" if REPAIR in policies else "COMPENSATION_FAILED"
    names = ", ".join(f"{ref} ({error.code if error else 'failed'})" for ref, error in failed.items())
    ending = "; these effects are not undone, repair them by hand" if code == "MANUAL_REPAIR" else ""
    return StepError(code, clip(f"{len(failed)} targets failed: {names}{ending}", 512), retryable=False)


def _policy(compensation: Compensation | None) -> str:
    return compensation.failure_policy if compensation else REPAIR


def _compensation(ctx: TickContext, status: RunStatus) -> tuple[Target, ...]:
    """Inverses of what took effect, the last effect first; then the final targets of every step that started."""
    declared = {step.ref: step.compensation for step in ctx.graph.definition.steps if step.compensation is not None}
    if not declared:
        return ()
    nodes = [ctx.graph.by_ref[ref] for ref in declared]
    fork = ctx.state.fork  # an effect belongs to the run that executed it
    nodes = [node for node in nodes if fork is None or not fork.foreign(node.ref)]
    places = [place for node in nodes for place in places_of(ctx.graph, ctx.state, node) if _own(place)]
    undo = _inverses(ctx, declared, places, _UNDO[status]) if status in _UNDO else ()
    return (*undo, *_finals(ctx, declared, places))


def _own(place: Place) -> bool:
    return place.entry is not None and not place.entry.foreign


def places_of(graph: Graph, state: RunState, node: GraphNode) -> Iterator[Place]:
    """Where a step may have run: in the run itself, or in every item of the scatter around it."""
    if node.region == ROOT:
        yield Place(node, state.root)
        return
    for above in places_of(graph, state, graph.nodes[node.region]):
        scatter = above.entry.scatter if above.entry else None
        for number in range(scatter.opened) if scatter else ():
            page = state.loaded[scatter.base + number] if scatter else None
            for index, item in enumerate(page.items, page.first) if page else ():
                yield Place(node, item, item_path(above.path, index), page, index, above)


def _inverses(
    ctx: TickContext, declared: Mapping[str, Compensation], places: Sequence[Place], group: str
) -> Iterator[Target]:
    effects = [(place.entry.ended_seq, place) for place in places if place.entry and _took_effect(ctx, place)]
    for _, place in sorted(effects, key=lambda effect: effect[0], reverse=True):
        own = declared[place.node.ref]
        for target in own.on_failure if group == "on_failure" else own.on_cancel:
            yield _rendered(_in_node(ctx, place), place.id, group, target, own.failure_policy)


def _finals(ctx: TickContext, declared: Mapping[str, Compensation], places: Sequence[Place]) -> Iterator[Target]:
    started = [(place.entry.entered_at, place.node.index, place) for place in places if place.entry]
    for entered_at, _, place in sorted(started, key=lambda start: start[:2], reverse=True):
        own = declared[place.node.ref]
        for target in own.finally_ if entered_at else ():
            yield _rendered(_in_node(ctx, place), place.id, FINALLY, target, own.failure_policy)


def _took_effect(ctx: TickContext, place: Place) -> bool:
    """Whether the node succeeded, also too late. One that failed on its own expressions keeps its output."""
    entry = place.entry
    if entry is None:
        return False
    if place.id in ctx.state.late:
        return True
    if entry.status is NodeStatus.COMPLETED:
        return entry.error is None
    failed = entry.status in (NodeStatus.FAILED, NodeStatus.TIMED_OUT)
    return failed and entry.output != NULL and place.node.step.type is not StepType.APPROVAL


def undoable(ctx: TickContext, place: Place) -> bool:
    """Whether an effect of this node could have to be undone and is not known yet."""
    entry, declared = place.entry, place.node.step.compensation
    known = place.id in ctx.state.late or (entry is not None and _took_effect(ctx, place))
    return entry is not None and declared is not None and not known


def undo_late(ctx: TickContext, place: Place) -> Iterator[Transition]:
    """The inverses of one effect that came to light after the run had ended, as a compensation run of their own."""
    declared = place.node.step.compensation
    group = _UNDO.get(ctx.state.status)
    if declared is None or group is None:
        return
    targets = tuple(_inverses(ctx, {place.node.ref: declared}, [place], group))
    if targets:
        yield tr.LinkedPlanned(f"{COMPENSATION}:{place.id}", ctx.keep(msgspec.to_builtins(targets)), undoes=True)


Render = Callable[[Template], JSON]


def _in_node(ctx: TickContext, place: Place) -> Render:
    """Rendering as the node itself would: an item of a scatter sees its own steps, an inverse what it is to undo."""
    own = NodeContext(ctx, place)
    late = ctx.state.late.get(place.id)
    if late is None or place.entry is None or place.entry.status is NodeStatus.COMPLETED:
        return own.render
    view = {"status": place.entry.status.value, "error": None, "attempt": place.entry.attempt}
    overlay = {place.node.ref: {**view, "output": ctx.value(late)}}
    return lambda template: template.render(own.bindings(template.reads, overlay), Budget())


def _hook(ctx: TickContext, status: RunStatus) -> tuple[Target, ...]:
    name = _HOOKS.get(status, "")
    hook: dict[str, Any] | None = ctx.graph.definition.hooks.get(name)
    if not hook:
        return ()
    target = CompensationTarget(
        action=hook.get("action", ""), args=hook.get("args"), connection_ref=hook.get("connection_ref") or ""
    )

    def render(template: Template) -> JSON:
        return template.render(ctx.bindings(template.reads), Budget())

    return (_rendered(render, name, HOOK, target, IGNORE),)


def _rendered(render: Render, step: str, group: str, target: CompensationTarget, policy: str) -> Target:
    plain = Target(
        step=step,
        group=group,
        action=target.action,
        retry=target.retry,
        timeout_ms=target.timeout_ms,
        policy=policy,
    )
    try:
        args = render(compile_template({} if target.args is None else target.args))
        connection = render(compile_template(target.connection_ref)) if target.connection_ref else ""
    except ExpressionError as fault:
        error = StepError(fault.code, clip(fault.message, 256), retryable=False)
        return msgspec.structs.replace(plain, error=error)
    return msgspec.structs.replace(plain, args=args, connection_ref=connection if isinstance(connection, str) else "")
