"""The slot of a run whose definition limits concurrency: asked for before it starts, left at its end. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ductor.engine.context import TickContext, rfc3339
from ductor.engine.outcome import ending
from ductor.expressions import Budget, ExpressionError
from ductor.model import transition as tr
from ductor.model.enums import RunStatus
from ductor.model.errors import StepError
from ductor.model.intent import Intent
from ductor.model.json import JSON, encode
from ductor.model.slots import SLOT_CHECK_MS
from ductor.model.transition import Transition

MAX_KEY_CHARS: Final = 1_024


def slot_key(ctx: TickContext) -> str | None:
    """The value of the definition's concurrency key for this run, None when it has no such rule.

    It is the same whenever it is evaluated: to it, RUN.now is the time of admission. Raises ExpressionError.
    """
    program, origin = ctx.graph.concurrency, ctx.state.origin
    if program is None:
        return None
    run: JSON = {
        "id": origin.run_id,
        "root_id": origin.root_run_id or origin.run_id,
        "started_at": rfc3339(origin.created_at),
        "definition_version": origin.definition_version,
        "now": rfc3339(origin.created_at),
    }
    value = program.evaluate(ctx.bindings(program.reads, RUN=run), Budget())
    text = value if isinstance(value, str) else encode(value).decode()
    if len(text) > MAX_KEY_CHARS:
        raise ExpressionError(f"a concurrency key has at most {MAX_KEY_CHARS} characters", program.source)
    return text


def ask_slot(ctx: TickContext, place: int = 0) -> Iterator[Transition]:
    """The run waits for a slot: the first time, or anew. `place` is its place in the line, 0 = the one that it had."""
    try:
        asked = slot_asked(ctx, place)
    except ExpressionError as fault:
        error = StepError(fault.code, f"concurrency.key: {fault.message}", retryable=False)
        yield from ending(ctx, RunStatus.FAILED, error, "")
        return
    if asked is not None:
        yield asked


def slot_asked(ctx: TickContext, place: int = 0) -> tr.SlotAsked | None:
    """The next demand for a slot, None without a rule. Raises ExpressionError."""
    known = ctx.state.slot
    if known is not None:
        place = place or known.place
        return tr.SlotAsked(known.key, known.lease + 1, place, ctx.now + SLOT_CHECK_MS, SLOT_CHECK_MS)
    key = slot_key(ctx)
    if key is None:
        return None
    return tr.SlotAsked(key, 1, place or ctx.state.origin.created_at, ctx.now + SLOT_CHECK_MS, SLOT_CHECK_MS)


def leave_slot(ctx: TickContext) -> Iterator[Transition]:
    """A run that is paused while it waits steps out of the line, so that nobody waits behind it for nothing."""
    slot = ctx.state.slot
    if slot is not None and slot.awaited:
        yield tr.SlotLeft(slot.lease)


def slot_given(ctx: TickContext, intent: Intent, deadline: int) -> Iterator[Transition]:
    """The run has the slot that it waited for, or hears that it gets none. What answers an older demand is too late."""
    state = ctx.state
    slot = state.slot
    if slot is None or not slot.awaited or slot.lease != intent.attempt or state.ending or state.status.terminal:
        return
    if intent.error is not None:
        yield from ending(ctx, RunStatus.FAILED, intent.error, "")
        return
    yield tr.SlotGranted(slot.lease, deadline if state.started_at else 0)
    if not state.started_at:
        yield tr.RunStarted(deadline)


def slot_due(ctx: TickContext, most: int) -> Iterator[Transition]:
    """It is time to look whether the slot was given and the news got lost."""
    slot = ctx.state.slot
    if slot is not None and slot.awaited and not ctx.state.ending and slot.check_at <= ctx.now:
        every = min(slot.check_every * 2, most)
        yield tr.SlotChecked(ctx.now + every, every)
