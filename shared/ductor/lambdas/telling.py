"""A committer that says whose run it works on, for the logs, and takes back wake-ups that no run waits for any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ductor.app.commit import Committed, Committer, Outcome
from ductor.engine.graph import Graph
from ductor.model.intent import Intent
from ductor.model.run import RunState
from ductor.ports import Op


class TellingCommitter(Committer):
    """Tells the tenant at the beginning of each tick, which always asks for the run's graph first.

    `disarm` hears of each wake-up that a commit has replaced or given up. Nothing depends on what it does with it.
    """

    def __init__(self, *, tell: Callable[[str], None], disarm: Callable[[str, int], object], **doors: Any) -> None:
        super().__init__(**doors)
        self._tell = tell
        self._disarm = disarm

    def graph(self, state: RunState) -> Graph:
        self._tell(state.origin.tenant)
        return super().graph(state)

    def commit(
        self,
        graph: Graph,
        state: RunState,
        intents: Sequence[Intent],
        applied: tuple[str, ...],
        also: Sequence[Op] = (),
    ) -> Committed:
        run_id, armed = state.run_id, state.wake_at
        done = super().commit(graph, state, intents, applied, also)
        if done.outcome is Outcome.COMMITTED and armed and done.state is not None and done.state.wake_at != armed:
            self._disarm(run_id, armed)
        return done
