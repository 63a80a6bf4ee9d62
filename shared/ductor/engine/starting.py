"""How a run begins: at once, or with a slot of its definition's concurrency."""

from __future__ import annotations

from collections.abc import Iterable

from ductor.engine.context import TickContext
from ductor.engine.slots import ask_slot, slot_given
from ductor.model import transition as tr
from ductor.model.enums import RunStatus
from ductor.model.intent import Intent
from ductor.model.transition import Transition


def start(ctx: TickContext, _intent: Intent) -> Iterable[Transition]:
    """The first tick; nothing for a run that has started, or waits for a slot already."""
    state = ctx.state
    if state.started_at or state.status.terminal:
        return
    if ctx.graph.concurrency is None:
        yield tr.RunStarted(run_deadline(ctx))
    elif state.slot is None and state.status is not RunStatus.PAUSED:
        yield from ask_slot(ctx)


def start_late(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    """The wake-up of a run that was admitted and never told to start, also when an operator came first."""
    if 0 < ctx.state.wake_at <= ctx.now:
        yield from start(ctx, intent)


def run_deadline(ctx: TickContext) -> int:
    """When a run that starts now times out (epoch ms), 0 = never."""
    limit = ctx.graph.definition.run_timeout_ms
    return ctx.now + limit if limit else 0


def admitted(ctx: TickContext, intent: Intent) -> Iterable[Transition]:
    """The answer to the demand for a slot."""
    return slot_given(ctx, intent, run_deadline(ctx))
