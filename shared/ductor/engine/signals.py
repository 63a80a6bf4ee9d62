"""Signals: messages to one run, taken by the first wait for their name, kept until there is one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ductor.engine.context import NodeContext, TickContext
from ductor.model import transition as tr
from ductor.model.enums import NodeStatus
from ductor.model.intent import Intent, IntentKind
from ductor.model.run import Signal
from ductor.model.transition import Transition

MAX_SIGNALS: Final = 100
"""Kept signals of a run; one more is rejected."""


def refuses_signal(ctx: TickContext) -> tuple[str, str] | None:
    """Why no further signal is taken: code and sentence."""
    if len(ctx.state.signals) < MAX_SIGNALS:
        return None
    return "SIGNALS_FULL", f"the run keeps {MAX_SIGNALS} signals that no step has waited for; it takes no more"


def keep_signal(ctx: TickContext, signal: Signal) -> Iterable[Transition]:
    """Keep the signal, and offer it to the steps that wait, in definition order, until one takes it.

    Steps in the items of a scatter are not asked: they find it when their wait begins.
    """
    yield tr.SignalKept(signal.id, signal.name, signal.payload, signal.at)
    offer = Intent(id=signal.id, run_id=ctx.state.run_id, kind=IntentKind.SIGNAL)
    for node in ctx.graph.nodes:
        if not node.behaviour.takes_signals or ctx.state.ending is not None:
            continue
        place = ctx.place(node.ref)
        if place is None or place.entry is None or place.entry.status is not NodeStatus.WAITING:
            continue
        taken = tuple(node.behaviour.told(NodeContext(ctx, place), offer))
        if taken:
            yield from taken
            return
