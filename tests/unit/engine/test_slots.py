"""The slot that a run waits for, as the engine sees it: when it is looked after."""

from __future__ import annotations

from tests.simulation.scene import action, flow

from ductor.engine.context import TickContext
from ductor.engine.due import decide_due, soonest_due
from ductor.engine.graph import compile_graph
from ductor.model.enums import RunStatus
from ductor.model.run import Origin, RunState
from ductor.model.slots import SlotState
from ductor.steps.behaviours import BEHAVIOURS

NOW = 100


def _waits(ending: RunStatus | None) -> TickContext:
    origin = Origin(
        run_id="r", tenant="t", definition_id="d", family_slug="f", definition_version=1, created_at=1, journey_id="r"
    )
    slot = SlotState("k", 1, 1, since=1, check_at=NOW - 10, check_every=10)
    state = RunState(origin=origin, status=RunStatus.PENDING, ending=ending, slot=slot)
    graph = compile_graph(flow(action("a"), concurrency={"key": '"k"', "limit": 1}), BEHAVIOURS)
    return TickContext(graph, state, NOW, lambda _: None)


def test_a_run_in_line_wakes_to_look_after_its_slot() -> None:
    assert soonest_due(_waits(None)) == NOW - 10
    assert [type(one).__name__ for one in decide_due(_waits(None))] == ["SlotChecked"]


def test_a_run_that_is_ending_does_not_wake_for_a_slot_that_it_looks_after_no_more() -> None:
    assert list(decide_due(_waits(RunStatus.CANCELLED))) == []
    assert soonest_due(_waits(RunStatus.CANCELLED)) == 0
