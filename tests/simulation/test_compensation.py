"""What a run did is undone: order, policies, late effects, hooks, with a crash at every fault point."""

from __future__ import annotations

import pytest
from tests.simulation.family import POINTS, RETRY, Family, act, boom, hold, undo

from ductor.model.definition import Compensation, CompensationTarget, Edge
from ductor.model.enums import EdgeType, RunStatus
from ductor.model.errors import RefusedError
from ductor.model.lineage import COMPENSATION, HOOK
from ductor.testing import doubles


def saga(policy: str = "manual_repair", second: str = doubles.OK) -> Family:
    """A, B and C succeed, D fails; B's inverse is `second`; A has a finalizer."""
    family = Family()
    first = Compensation(
        on_failure=(CompensationTarget(doubles.OK, {"v": "undo a ${{ STEPS.a.output.v }}"}),),
        finally_=(CompensationTarget(doubles.OK, {"v": "finally a"}),),
        failure_policy=policy,
    )
    family.add(
        "saga",
        act("a", compensation=first),
        act("b", compensation=undo("b", action=second, failure_policy=policy)),
        act("c", doubles.FAIL_N, args={"v": "c", "n": 2}, compensation=undo("c"), retry=RETRY),
        boom("d"),
        act("e", compensation=undo("e")),
        hooks={"on_failed": {"action": doubles.OK, "args": {"v": "hook ${{ STEPS.d.error.code }}"}}},
    )
    family.start("saga")
    family.rest()
    return family


def test_a_failed_run_is_undone_in_reverse_order_then_finalized() -> None:
    family = saga()
    assert family.state().status is RunStatus.FAILED
    undone = [text for text in family.said() if text not in ("a", "b", "c") and "hook" not in text]
    assert undone == ["undo c", "undo b", "undo a a", "finally a"]
    assert family.one("saga", COMPENSATION).status is RunStatus.COMPLETED


def test_a_hook_is_called_once_and_recorded_as_a_run() -> None:
    family = saga()
    assert family.said().count("hook BROKEN") == 1
    assert family.one("saga", HOOK).origin.parent_run_id == family.root


@pytest.mark.parametrize(
    ("policy", "status", "code", "after"),
    [
        ("manual_repair", RunStatus.FAILED, "MANUAL_REPAIR", ["undo c", "undo a a", "finally a"]),
        ("fail_compensation", RunStatus.FAILED, "COMPENSATION_FAILED", ["undo c", "finally a"]),
        ("ignore_with_audit", RunStatus.COMPLETED, "", ["undo c", "undo a a", "finally a"]),
    ],
)
def test_a_failed_inverse_follows_its_policy_and_never_changes_the_run(
    policy: str, status: RunStatus, code: str, after: list[str]
) -> None:
    family = saga(policy, doubles.BOOM)
    run = family.one("saga", COMPENSATION)
    assert (run.status, run.error.code if run.error else "") == (status, code)
    assert [text for text in family.said() if "undo" in text or "finally" in text] == after
    assert family.state().status is RunStatus.FAILED
    assert family.state().error is not None
    assert family.state().error.code == "BROKEN"  # type: ignore[union-attr]


def test_a_run_that_is_being_undone_is_not_redriven() -> None:

    family = saga()
    with pytest.raises(RefusedError) as refused:
        family.world.control(family.root, "redrive", "again")
    assert refused.value.violations[0].code == "COMPENSATION_STARTED"


def test_args_that_cannot_be_rendered_are_a_failed_target() -> None:
    family = Family()
    bad = Compensation(on_failure=(CompensationTarget(doubles.OK, {"v": "${{ TRIGGER.payload.nope }}"}),))
    family.add("saga", act("a", compensation=bad), boom("d"))
    family.start("saga")
    family.rest()
    run = family.one("saga", COMPENSATION)
    assert run.error is not None
    assert run.error.code == "MANUAL_REPAIR"
    assert family.world.value(run.run_id, run.origin.input)["errors"]["undo-a"]["code"] == "EXPRESSION_ERROR"


def test_an_attempt_that_succeeds_while_the_run_fails_is_undone() -> None:
    family = Family()
    slow = act("slow", doubles.SLOW, args={"v": "slow", "ms": 3_000}, compensation=undo("slow"))
    family.add("saga", slow, boom("d"), act("next"), chain=False, edges=(Edge(source_ref="slow", target_ref="next"),))
    family.start("saga")
    family.work(4)
    family.world.chaos.on = False
    family.rest()
    assert family.state().status is RunStatus.FAILED
    effects = family.said()
    assert "next" not in effects
    assert effects.count("undo slow") == effects.count("slow")


def test_termination_runs_finalizers_only() -> None:
    family = Family()
    both = Compensation(
        on_cancel=(CompensationTarget(doubles.OK, {"v": "undo"}),),
        finally_=(CompensationTarget(doubles.OK, {"v": "finally"}),),
    )
    family.add("saga", act("a", compensation=both), hold())
    family.start("saga")
    family.work()
    family.world.control(family.root, "terminate", "stop")
    family.rest()
    assert family.said() == ["a", "finally"]


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_at_any_point_undoes_every_effect_once(point: str) -> None:
    for passing in range(1, 40, 2):
        family = Family()
        family.add("saga", act("a", compensation=undo("a")), act("b", compensation=undo("b")), boom("c"))
        family.start("saga")
        family.world.chaos.crash_at(point, passing)
        family.work(40)
        family.rest()
        assert [text for text in family.said() if "undo" in str(text)] == ["undo b", "undo a"], passing


def succeed_late(family: Family) -> None:
    """The worker gives an attempt up at its time limit; its action goes on and succeeds when the run has moved on."""
    family.work(6)
    family.world.clock.advance(3_000)
    for worker in family.world.workers:
        worker.look(heed=False)
    family.work(20)
    family.world.clock.advance(8_000)
    family.work(20)


@pytest.mark.parametrize("also", [False, True])
def test_an_effect_that_comes_to_light_after_the_end_is_undone_too(also: bool) -> None:
    family = Family()
    slow = act("slow", doubles.SLOW, args={"v": "slow", "ms": 10_000}, timeout_ms=2_000, compensation=undo("slow"))
    first = act("first", compensation=undo("first")) if also else act("first")
    family.add("saga", first, slow)
    family.start("saga")
    succeed_late(family)
    family.rest()
    assert family.state().status is RunStatus.FAILED
    assert family.state().late
    undone = [text for text in family.said() if text not in ("first", "slow")]
    assert undone == (["undo first", "undo slow"] if also else ["undo slow"])


def test_an_effect_that_comes_to_light_while_the_run_goes_on_is_undone_with_the_others() -> None:
    family = Family()
    slow = act("slow", doubles.SLOW, args={"v": "slow", "ms": 10_000}, timeout_ms=2_000, compensation=undo("slow"))
    edge = Edge(source_ref="slow", target_ref="hold", type=EdgeType.TIMEOUT)
    family.add("saga", slow, hold(), boom("d"), chain=False, edges=(edge, Edge(source_ref="hold", target_ref="d")))
    family.start("saga")
    succeed_late(family)
    family.rest()
    assert family.said() == ["slow", "undo slow"]
    assert len(family.runs("saga", COMPENSATION)) == 1
