"""What a test sees of a run: what the API shows of it, with values as they are. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ductor.model import transition as tr
from ductor.model.enums import NodeStatus, RunStatus, StepType
from ductor.model.errors import StepError
from ductor.model.json import JSON
from ductor.model.lineage import COMPENSATION, child_run_id
from ductor.model.run import NodeState
from ductor.testing.cases.stage import Stage
from ductor.testing.invariants import nodes_of

_STORY: Final = 30
_BEGINNINGS: Final = (tr.NodeScheduled, tr.NodeParked, tr.NodeCompleted, tr.NodeFailed, tr.ScatterOpened)


class Call(msgspec.Struct, frozen=True):
    """One attempt of an action, with the rendered arguments."""

    action: str
    node: str
    args: JSON


class Observed:
    """One run at one moment."""

    def __init__(self, stage: Stage, run_id: str) -> None:
        self._stage = stage
        self.run_id = run_id
        self._state = stage.state(run_id)
        self._snapshot = stage.runs.snapshot(stage.caller, run_id)
        self._nodes = dict(nodes_of(self._state))
        self.status = RunStatus(self._snapshot.status)

    @property
    def error(self) -> StepError | None:
        """Why the run failed."""
        return self._state.error

    @property
    def output(self) -> JSON:
        """Of a run that has ended; null before."""
        ended = self._state.status.terminal
        return self._stage.runs.output(self._stage.caller, self.run_id) if ended else None

    @property
    def context(self) -> JSON:
        return self._stage.value(self.run_id, self._state.context)

    @property
    def refs(self) -> tuple[str, ...]:
        """The steps of the definition, in its order."""
        return tuple(self._stage.graph(self.run_id).by_ref)

    def knows(self, node: str) -> bool:
        """Whether the definition has the step, and the scatter so many items."""
        return node in self._nodes or node in self._snapshot.nodes

    def node_status(self, node: str) -> str:
        shown = self._snapshot.nodes.get(node)
        return shown.status if shown is not None else self._nodes[node].status.value

    def attempts_of(self, node: str) -> int:
        return self._entry(node).attempt

    def error_of(self, node: str) -> StepError | None:
        return self._entry(node).error

    def output_of(self, node: str) -> JSON:
        return self._stage.value(self.run_id, self._entry(node).output)

    def is_open(self, node: str) -> bool:
        """Whether the step waits for somebody from outside, or has done so and ended."""
        if not self.knows(node):
            return False
        step, entry = self._stage.graph(self.run_id).by_ref[node.partition("@")[0]].step, self._entry(node)
        handed_out = step.type is StepType.BRIDGE and entry.status is NodeStatus.SCHEDULED
        return handed_out or entry.status.ended or self.node_status(node) == NodeStatus.WAITING.value

    def _entry(self, node: str) -> NodeState:
        return self._nodes.get(node) or NodeState()

    def path(self) -> list[str]:
        """The steps that began, in that order; of a step in a scatter the first item counts."""
        began: dict[str, None] = {}
        for transition in self._stage.history(self.run_id):
            if isinstance(transition, _BEGINNINGS):
                began.setdefault(transition.node.partition("@")[0])
        return list(began)

    def calls(self) -> Iterator[Call]:
        """The attempts that workers took, of this run and those that it led to, in the order of their start."""
        found: list[tuple[int, Call]] = []
        for run_id in self._family():
            for row in self._stage.attempts(run_id):
                task = row.task
                if row.deliveries:
                    args = self._stage.value(run_id, task.input)
                    found.append((row.started_at, Call(task.action, task.node, args)))
        return (call for _, call in sorted(found, key=lambda pair: pair[0]))

    def _family(self) -> Iterator[str]:
        """This run, its children and whatever else came from them."""
        mine = {self.run_id}
        for run_id in self._stage.run_ids():
            if run_id in mine or self._stage.state(run_id).origin.parent_run_id in mine:
                mine.add(run_id)
                yield run_id

    def child(self, node: str) -> Observed | None:
        """The run of a subworkflow step; None when it has started none."""
        step, entry = self._stage.graph(self.run_id).by_ref.get(node.partition("@")[0]), self._entry(node)
        if step is None or step.step.type is not StepType.SUBWORKFLOW or not entry.attempt:
            return None
        return self._known(child_run_id(self.run_id, node, entry.attempt, entry.generation))

    def compensation(self) -> Observed | None:
        """The run that undid what this one did."""
        for run_id in self._stage.run_ids():
            origin = self._stage.state(run_id).origin
            if origin.kind == COMPENSATION and origin.parent_run_id == self.run_id:
                return self._known(run_id)
        return None

    def _known(self, run_id: str) -> Observed | None:
        return Observed(self._stage, run_id) if run_id in self._stage.run_ids() else None

    def bindings(self) -> dict[str, JSON]:
        """What the conditions of a test may read."""
        state, error = self._state, self._state.error
        run = {
            "id": self.run_id,
            "status": self.status.value,
            "output": self.output,
            "error": {"code": error.code, "message": error.message} if error else None,
        }
        return {
            "RUN": run,
            "STEPS": {ref: self._step(ref) for ref in self._nodes if "@" not in ref},
            "CONTEXT": self.context or {},
            "VARS": self._stage.value(self.run_id, state.origin.variables),
            "TRIGGER": {"payload": self._stage.value(self.run_id, state.origin.input)},
        }

    def _step(self, ref: str) -> JSON:
        error = self.error_of(ref)
        return {
            "status": self.node_status(ref),
            "output": self.output_of(ref),
            "attempt": self.attempts_of(ref),
            "error": {"code": error.code, "message": error.message} if error else None,
        }

    def story(self) -> list[str]:
        """The run in a few lines, for people who look why a test failed."""
        lines = [f"run: {self.status.value}{_told(self._state.error)}"]
        if self.status is RunStatus.WAITING and self._snapshot.waiting_on is not None:
            lines[0] += f", waiting on {self._snapshot.waiting_on.kind}: {self._snapshot.waiting_on.detail}"
        if self._snapshot.stalled is not None:
            lines[0] += f", stalled: {self._snapshot.stalled.reason}"
        shown = [*self._snapshot.nodes, *(node for node in self._nodes if node not in self._snapshot.nodes)]
        for node in shown[:_STORY]:
            attempts = self.attempts_of(node)
            tries = f", attempt {attempts}" if attempts > 1 else ""
            lines.append(f"  {node}: {self.node_status(node)}{tries}{_told(self.error_of(node))}")
        return [*lines, *([f"  … and {len(shown) - _STORY} more"] if len(shown) > _STORY else [])]


def _told(error: StepError | None) -> str:
    return f" ({error.code}: {error.message})" if error is not None else ""
