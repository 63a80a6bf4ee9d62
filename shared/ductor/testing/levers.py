"""Operators of a simulated world who pull the levers of single steps."""

from __future__ import annotations

from typing import Final

from ductor.app.history import read_history
from ductor.model.run import RunState
from ductor.model.transition import NodeCompleted
from ductor.testing.invariants import nodes_of
from ductor.testing.world import World

_LEVERS: Final = ("pause", "pause", "pause", "resume", "resume", "reset", "reset", "updateRetryPolicy", "updateTimeout")

MAX_FORKS: Final = 4
"""Forks of one world; each is one more run to bring to its end."""


class Levers:
    """Node controls at random, repeats of the last one among them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._requests = 0
        self._forks = 0
        self._last: tuple[str, str, str, str] | None = None

    def pull(self) -> None:
        """Operate one step of one run."""
        rng, runs = self._world.rng, self._world.run_ids()
        if not runs:
            return
        if self._last is None or rng.random() < 0.8:
            run_id = rng.choice(runs)
            if self._world.damaged(run_id):
                return
            self._requests += 1
            known = [node for node, _ in nodes_of(self._world.state(run_id))]
            node = rng.choice([*self._world.graph(run_id).by_ref, *known, *known])
            self._last = (run_id, node, rng.choice(_LEVERS), f"n{self._requests}")
        self._world.ledger.say(f"        {' '.join(self._last)}")
        run_id, node, operation, request_id = self._last
        self._world.control_node(run_id, node, operation, request_id)

    def fork(self) -> None:
        """Fork a run at a point of its history, sometimes with another input or a result taken over."""
        rng, runs = self._world.rng, self._world.run_ids()
        if not runs or self._forks >= MAX_FORKS:
            return
        run_id = rng.choice(self._with_items(runs) or runs)
        if self._world.damaged(run_id):
            return
        self._forks += 1
        state = self._world.state(run_id)
        # Also nodes of single items: `charge@3` has a result, and an input, of its own.
        refs = [*self._world.graph(run_id).by_ref, *(node for node, _ in nodes_of(state) if "@" in node)]
        preserve = (rng.choice(refs),) if rng.random() < 0.3 else ()
        inputs = {rng.choice(refs): {"v": "given"}} if rng.random() < 0.3 else {}
        seq = rng.choice(self._done_in_items(state) or [rng.randint(0, state.seq)])
        self._world.reset(run_id, seq, f"fork{rng.randint(0, 2)}", preserve, **inputs)

    def _done_in_items(self, state: RunState) -> list[int]:
        """Points at which a step of an item had just completed: something in a scatter is kept there."""
        if state.tree is None:
            return []
        told = read_history(self._world.table, state)
        return [one.seq for one in told if isinstance(one.transition, NodeCompleted) and "@" in one.transition.node]

    def _with_items(self, runs: list[str]) -> list[str]:
        """In half of the cases runs with scatters, if there are any: their forks are the difficult ones."""
        if self._world.rng.random() < 0.5:
            return []
        return [run for run in runs if not self._world.damaged(run) and self._world.state(run).tree is not None]

    def release(self) -> None:
        """Let everything go on that was held."""
        for run_id in self._world.run_ids():
            state = self._world.state(run_id)
            for node, entry in nodes_of(state):
                if entry.held and not state.status.terminal:
                    self._requests += 1
                    self._world.control_node(run_id, node, "resume", f"n{self._requests}")
