"""A committer that says whose run it works on, for the logs. Changes nothing of what it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ductor.app.commit import Committer
from ductor.engine.graph import Graph
from ductor.model.run import RunState


class TellingCommitter(Committer):
    """Tells the tenant at the beginning of each tick, which always asks for the run's graph first."""

    def __init__(self, *, tell: Callable[[str], None], **doors: Any) -> None:
        super().__init__(**doors)
        self._tell = tell

    def graph(self, state: RunState) -> Graph:
        self._tell(state.origin.tenant)
        return super().graph(state)
