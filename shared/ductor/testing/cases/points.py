"""Where in its history a run is forked, as a test says it: after a step ended, before it began. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ductor.model import transition as tr
from ductor.testing.cases.document import Forked

_ENDS: Final = (tr.NodeCompleted, tr.NodeFailed, tr.NodeSkipped)


def fork_point(given: Forked, history: Sequence[tr.Transition]) -> int | None:
    """The number of the last transition that the fork keeps, 0 for none of them; None: it has not come so far."""
    step = given.after or given.before
    if step is None:
        return 0
    mine = [(number, one) for number, one in enumerate(history, 1) if getattr(one, "node", None) == step]
    if given.before is not None:
        return mine[0][0] - 1 if mine else None
    return next((number for number, one in reversed(mine) if isinstance(one, _ENDS)), None)
