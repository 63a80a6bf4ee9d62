"""The branches that a race, or a gather that need not wait for all, decides among: who failed, and who has lost."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from ductor.engine.context import NodeContext
from ductor.model import transition as tr
from ductor.model.enums import NodeStatus
from ductor.model.errors import StepError, clip
from ductor.model.json import JSON
from ductor.model.run import NodeState
from ductor.model.transition import Transition

MAX_LISTED: Final = 20
_FAILED: Final = frozenset({NodeStatus.FAILED, NodeStatus.TIMED_OUT})


def arrived(ctx: NodeContext) -> list[int]:
    """The indexes of the steps from which an edge to this node was taken, in the order in which they ended."""
    return list(ctx.place.scope.arrived.get(ctx.node.index, ()))


def entry_at(ctx: NodeContext, index: int) -> NodeState | None:
    """The entry of a step in the same scope."""
    return ctx.place.scope.nodes.get(ctx.tick.graph.nodes[index].ref)


def failures(ctx: NodeContext) -> list[tuple[int, str, StepError]]:
    """Per branch that has a failed step: the index of its last step, the failed step's ref, and the error."""
    found: list[tuple[int, str, StepError]] = []
    for source, steps in ctx.node.branches:
        for index in sorted(steps):
            entry = entry_at(ctx, index)
            if entry is not None and entry.status in _FAILED and entry.error is not None:
                found.append((source, ctx.tick.graph.nodes[index].ref, entry.error))
                break
    return found


def all_failed(code: str, what: str, found: list[tuple[int, str, StepError]]) -> StepError:
    """One error that lists the branches."""
    listed = found[:MAX_LISTED]
    details: list[JSON] = [
        {"step": ref, "code": error.code, "message": clip(error.message, 128)} for _, ref, error in listed
    ]
    reasons = "; ".join(f"{ref}: {error.code} {clip(error.message, 64)}" for _, ref, error in listed)
    return StepError(code, clip(f"{what}: {reasons}", 512), retryable=False, details={"branches": details})


def cancel_losers(ctx: NodeContext, winners: Collection[int]) -> Iterable[Transition]:
    """Stop every step of the branches that did not win, whatever it is doing. Their late results change nothing."""
    path = f"@{ctx.place.path}" if ctx.place.path else ""
    for source, steps in ctx.node.branches:
        if source in winners:
            continue
        for index in sorted(steps):
            entry = entry_at(ctx, index)
            if entry is None or not entry.status.ended:
                live = entry is not None and entry.status is NodeStatus.SCHEDULED
                yield tr.NodeCancelled(f"{ctx.tick.graph.nodes[index].ref}{path}", live=live, final=True)
