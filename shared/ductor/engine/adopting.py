"""Results that a fork has from its source: taken over when the turn of their steps comes, without running anything."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ductor.engine.context import NodeContext
from ductor.engine.outcome import complete
from ductor.model import transition as tr
from ductor.model.payload import Inline
from ductor.model.transition import Kept, Transition


def preserved_of(ctx: NodeContext) -> Kept | None:
    """The result that the node has from the run's source, if any."""
    fork, above = ctx.tick.state.fork, ctx.place.above
    if fork is None:
        return None
    if above is None:
        return fork.preserved.get(ctx.id)
    scatter = fork.items.get(above.id)
    page = scatter.pages.get(ctx.place.index // scatter.size) if scatter else None
    results: Any = ctx.tick.value(page) if page is not None else {}
    found = results.get(ctx.id)
    return msgspec.convert(found, Kept) if found is not None else None


def adopt(ctx: NodeContext, kept: Kept) -> Iterable[Transition]:
    """The node ends with that result; its effects and the conditions of its edges are evaluated anew."""
    output = kept.output
    if ctx.place.above is not None:
        yield tr.NodeAdopted(ctx.id)
        # Whole pages of results are stored together, so values of any size stand inline there.
        output = ctx.tick.keep(output.value) if isinstance(output, Inline) else output
    yield from complete(ctx, output, frozenset(kept.edges))
