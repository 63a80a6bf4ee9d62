"""A simulated installation whose runs meet in one digest."""

from __future__ import annotations

from typing import Any

from tests.unit.waits.gates import Gates, definition, note

from ductor.model.run import effective_status
from ductor.testing.digests import ARRIVAL
from ductor.testing.invariants import violations

MINUTE = 60_000


class Mail(Gates):
    """Runs of one definition with a digest step `all`; each brings what its payload says."""

    def __init__(self, **args: Any) -> None:
        super().__init__()
        own = {"digest_key": "${{ TRIGGER.payload.key }}", "arrival": ARRIVAL, "window": "1m", **args}
        if "max_count" in own:
            own.pop("window")
        step = {"ref": "all", "type": "digest", "args": own}
        self.definition_id = self.publish(definition(step, note("mail"), edges=(("all", "mail", "success"),)))

    def arrive(self, n: object, key: object = "k", **more: object) -> str:
        run_id = self.trigger(self.definition_id, {"key": key, "n": n, **more})
        self.settle()
        return run_id

    def end(self, run_id: str, operation: str) -> None:
        self.control(run_id, operation, f"{operation}-{run_id}")
        self.settle()

    def batch(self, run_id: str) -> Any:
        assert self.status(run_id) == "completed"
        return [arrival["n"] for arrival in self.output(run_id, "all")["arrivals"]]

    def merged_into(self, run_id: str) -> Any:
        assert self.status(run_id) == "merged"
        return self.value(run_id, self.state(run_id).output)["merged_into"]

    def status(self, run_id: str) -> str:
        return effective_status(self.state(run_id)).value

    def rows(self) -> list[str]:
        """What is stored of digests, but for the tombstones of runs that have left."""
        return [sk for pk, sk in self.table._rows if pk.startswith("DG#")]


def sound(world: Gates) -> None:
    assert violations(world, final=True) == []
