"""A simulated installation without faults, and runs that are moved on by hand: no time passes by itself."""

from __future__ import annotations

from typing import Any

from ductor.app.access import Caller
from ductor.app.history import read_history
from ductor.model.definition import Definition
from ductor.model.transition import OperatorAudited
from ductor.testing.schedule import Schedule
from ductor.testing.world import World
from ductor.validation.document import to_definition


class Gates(World):
    """One installation; `settle` lets everybody do what can be done at this moment."""

    def settle(self) -> None:
        schedule = Schedule(self, [])
        while schedule.round():
            pass

    def wait(self, ms: int) -> None:
        """Let `ms` milliseconds pass."""
        self.clock.advance(ms)
        self.settle()

    def started(self, *steps: dict[str, Any], edges: tuple[tuple[str, str, str], ...] = (), value: Any = None) -> str:
        """The id of a run of these steps that has had its first tick. An edge is (source, target, type)."""
        run_id = self.trigger(self.publish(definition(*steps, edges=edges)), value)
        self.settle()
        return run_id

    def audit(self, run_id: str) -> list[OperatorAudited]:
        """What became of the operators' requests, oldest first."""
        found = [entry.transition for entry in read_history(self.table, self.state(run_id))]
        return [transition for transition in found if isinstance(transition, OperatorAudited)]

    def status(self, run_id: str) -> str:
        return self.state(run_id).status.value


def definition(*steps: dict[str, Any], edges: tuple[tuple[str, ...], ...] = (), family: str = "f") -> Definition:
    """An edge is (source, target, type), and then perhaps its condition."""
    names = ("source_ref", "target_ref", "type", "condition")
    joined = [dict(zip(names, one, strict=False)) for one in edges]
    return to_definition({"family_slug": family, "steps": list(steps), "edges": joined})


def person(*roles: str, user: str = "", tenant: str = "t") -> Caller:
    """A key that may write runs, with these roles, issued to `user`."""
    return Caller(
        "key-of-" + (user or "-".join(roles)), tenant, frozenset({"workflow_run:write"}), frozenset(roles), user=user
    )


def note(ref: str) -> dict[str, Any]:
    """A step that ends at once."""
    return {"ref": ref, "type": "dataflow", "args": {"operation": "project", "project": {"at": f"'{ref}'"}}}
