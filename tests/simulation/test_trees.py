"""A tree of four levels with two hundred branches: whoever ends it leaves nothing alive below."""

from __future__ import annotations

import pytest
from tests.simulation.family import Family, hold, sub
from tests.simulation.test_scopes import gather, scatter

from ductor.testing.invariants import nodes_of

BRANCHES = 200


def tree() -> Family:
    """root -> middle -> 200 x branch -> leaf, all leaves waiting for two hours."""
    family = Family()
    family.add("leaf", hold())
    family.add("branch", sub("child", "leaf"))
    family.add("middle", scatter(items="TRIGGER.payload.items"), sub("each", "branch"), gather())
    family.add("root", sub("child", "middle", input={"items": list(range(BRANCHES))}))
    family.start("root")
    while len(family.runs("leaf")) < BRANCHES or any(run.status != "running" for run in family.runs("leaf")):
        family.round()
        family.world.clock.advance(10)
    return family


@pytest.mark.parametrize(("operation", "status"), [("cancel", "cancelled"), ("terminate", "terminated")])
def test_the_end_of_a_root_leaves_no_live_descendant(operation: str, status: str) -> None:
    family = tree()
    family.world.control(family.root, operation, "end")
    while any(not family.state(run_id).status.terminal for run_id in family.world.run_ids()):
        family.round()
        family.world.clock.advance(100)
    family.rest()
    states = [family.state(run_id) for run_id in family.world.run_ids()]
    assert len(states) == 2 + 2 * BRANCHES
    assert {state.status.value for state in states} == {status}
    assert [node for state in states for node, entry in nodes_of(state) if not entry.status.ended] == []
