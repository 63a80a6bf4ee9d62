"""Rule 17: while a run is stalled its intents are kept in order, and a redrive or a terminate is the way out."""

from __future__ import annotations

from unittest.mock import patch

from tests.simulation import mutants
from tests.simulation.scene import Scene, action, edge, flow, held

from ductor.app.headers import request_sk, run_pk
from ductor.testing.invariants import violations


def a_stalled_run_with_a_result_and_a_request() -> Scene:
    scene = Scene(flow(action("a"), action("b"), edge("a", "b")))
    scene.deliver()
    scene.work()
    scene.world.damage(scene.run_id)
    scene.deliver()
    scene.control("pause", "while-stalled")
    scene.deliver()
    assert scene.world.stalled(scene.run_id)
    scene.world.mend()
    return scene


def test_rule_17_a_redrive_replays_what_came_while_stalled() -> None:
    def scenario() -> bool:
        scene = a_stalled_run_with_a_result_and_a_request()
        scene.control("redrive", "redrive")
        scene.settle()
        return scene.status == "paused" and scene.steps["a"] == "completed" and not scene.faults

    held(scenario, mutants.stalled_intents_are_dropped())


def test_rule_17_a_crash_within_a_redrive_loses_nothing() -> None:
    def scenario() -> bool:
        scene = a_stalled_run_with_a_result_and_a_request()
        scene.control("redrive", "redrive")
        scene.crash("coordinator.after_replay")
        scene.settle()
        return scene.status == "paused" and scene.steps["a"] == "completed" and not scene.faults

    held(scenario, mutants.stall_rows_go_first())


def test_rule_17_other_requests_of_a_terminated_stalled_run_are_answered() -> None:
    scene = a_stalled_run_with_a_result_and_a_request()
    scene.control("terminate", "end")
    scene.settle()
    assert scene.status == "terminated"
    assert scene.world.table.get(run_pk(scene.run_id), request_sk("while-stalled")) is not None
    assert scene.faults == []


def test_rule_17_a_terminate_tells_what_the_last_commit_before_the_stall_had_not_told() -> None:
    def scenario() -> bool:
        scene = Scene(flow(action("a")))
        scene.crash("coordinator.after_commit")
        scene.world.damage(scene.run_id)
        scene.deliver()
        assert scene.world.stalled(scene.run_id)
        scene.world.mend()
        scene.control("terminate", "end")
        scene.settle()
        assert (scene.status, scene.effects("a")) == ("terminated", 0)
        return not violations(scene.world, final=True)

    held(scenario, patch("ductor.app.stalls.Announce", str))


def test_rule_17_a_redrive_of_an_unreadable_state_is_rejected_and_costs_nothing() -> None:
    scene = a_stalled_run_with_a_result_and_a_request()
    scene.world.damage(scene.run_id)
    scene.control("redrive", "too-early")
    scene.settle()
    assert scene.world.stalled(scene.run_id)
    scene.world.mend()
    scene.control("redrive", "again")
    scene.settle()
    assert scene.status == "paused"
    assert scene.faults == []
