"""Families of runs on virtual time: cancelled, undone and continued trees, with a crash at every fault point."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from ductor.app.successors import Continuations
from ductor.model.definition import Compensation, CompensationTarget, Definition, Edge, Retry, Step
from ductor.model.enums import EdgeType, RunStatus, StepType
from ductor.model.errors import RefusedError
from ductor.model.lineage import COMPENSATION, HOOK, WORKFLOW
from ductor.model.run import RunState
from ductor.testing import doubles
from ductor.testing.actors import VISIBILITY_MS, CoordinatorActor, WorkerActor
from ductor.testing.chaos import PROFILES, Crash
from ductor.testing.invariants import violations
from ductor.testing.memory import NullUnit
from ductor.testing.schedule import Schedule
from ductor.testing.world import World

POINTS = ("coordinator.before_commit", "coordinator.after_commit", "coordinator.after_send", "coordinator.before_ack")
RETRY = Retry(max_attempts=3, backoff_ms=500, jitter=0.0)


def act(ref: str, action: str = doubles.OK, **fields: Any) -> Step:
    args = fields.pop("args", {"v": ref})
    return Step(ref=ref, type=StepType.ACTION, action=action, args=args, **fields)


def boom(ref: str) -> Step:
    return act(ref, doubles.BOOM, args={"v": 1, "retryable": False, "code": "BROKEN"})


def sub(ref: str, family: str, **args: Any) -> Step:
    fields = {name: args.pop(name) for name in tuple(args) if name in Step.__struct_fields__}
    return Step(ref=ref, type=StepType.SUBWORKFLOW, args={"family_slug": family, **args}, **fields)


def hold(ref: str = "hold") -> Step:
    return Step(ref=ref, type=StepType.WAIT, args={"duration": "2h"})


def undo(name: str, *, on: str = "both", action: str = doubles.OK, **fields: Any) -> Compensation:
    target = (CompensationTarget(action, {"v": f"undo {name}"}),)
    return Compensation(
        on_failure=target if on in ("both", "failure") else (),
        on_cancel=target if on in ("both", "cancel") else (),
        **fields,
    )


class Family:
    """A world in which one root run lives with everything that it leads to."""

    def __init__(self) -> None:
        self.world = World(1, PROFILES["calm"])
        self.schedule = Schedule(self.world, [])
        self.ids: dict[str, str] = {}
        self.root = ""
        self.crashes = 0

    def add(self, family: str, *steps: Step, chain: bool = True, edges: tuple[Edge, ...] = (), **fields: Any) -> None:
        """Publish a definition whose steps follow each other, pinned to what was published before."""
        pins = {step.ref: self.ids[step.args["family_slug"]] for step in steps if step.type is StepType.SUBWORKFLOW}
        pairs = pairwise(steps) if chain else ()
        links = tuple(Edge(source_ref=one.ref, target_ref=two.ref) for one, two in pairs)
        definition = Definition(family_slug=family, steps=steps, edges=(*links, *edges), pins=pins, **fields)
        self.ids[family] = self.world.publish(definition)

    def start(self, family: str, value: Any = None) -> None:
        self.root = self.world.trigger(self.ids[family], value)

    def work(self, rounds: int = 60) -> None:
        """Everybody does what can be done now; no time passes but that of the work."""
        for _ in range(rounds):
            self.round()
            self.world.clock.advance(10)

    def round(self) -> None:
        for coordinator in self.world.coordinators:
            self.guarded(coordinator, lambda actor=coordinator: actor.deliver(10))  # type: ignore[misc]
        for worker in self.world.workers:
            self.guarded(worker, lambda actor=worker: serve(actor))  # type: ignore[misc]

    def guarded(self, actor: CoordinatorActor | WorkerActor, act: Callable[[], object]) -> None:
        """A crash costs the actor what it remembers; what it had received comes back after a while."""
        try:
            act()
        except Crash:
            self.crashes += 1
            actor.restart()
            self.world.clock.advance(VISIBILITY_MS + 1_000)

    def rest(self) -> None:
        """Until nothing is left to happen, without crashes; then no promise may be broken."""
        for point in POINTS:
            self.world.chaos.crash_at(point, 1_000_000)
        self.schedule.drain()
        assert violations(self.world, final=True) == []

    def state(self, run_id: str = "") -> RunState:
        return self.world.state(run_id or self.root)

    def runs(self, family: str, kind: str = WORKFLOW) -> list[RunState]:
        states = [self.world.state(run_id) for run_id in self.world.run_ids()]
        return [state for state in states if state.origin.kind == kind and state.origin.family_slug == family]

    def one(self, family: str, kind: str = WORKFLOW) -> RunState:
        (state,) = self.runs(family, kind)
        return state

    def said(self) -> list[Any]:
        """What the actions returned, in the order in which they ran."""
        return [effect.output["v"] for effect in self.world.ledger.effects if effect.output is not None]


def serve(worker: WorkerActor) -> None:
    """Claim, begin and finish whatever can be now."""
    worker.claim(10)
    for one in tuple(worker.waiting):
        worker.begin(one)
    worker.finish(worker.ready)


def nest(levels: int = 4, policy: str = "cancel") -> Family:
    """A chain of subworkflows; the innermost run waits for two hours after an effect that can be undone."""
    family = Family()
    family.add("level0", act("effect", compensation=undo("level0")), hold())
    for level in range(1, levels):
        step = sub("child", f"level{level - 1}", parent_close_policy=policy)
        family.add(f"level{level}", act("effect", compensation=undo(f"level{level}")), step)
    family.start(f"level{levels - 1}")
    return family


def statuses(family: Family, levels: int = 4) -> list[str]:
    return [family.one(f"level{level}").status.value for level in range(levels)]


def test_a_child_gets_its_input_and_gives_its_output() -> None:
    family = Family()
    family.add("leaf", act("a", args={"v": "${{ TRIGGER.payload.n }}"}), output={"twice": "${{ STEPS.a.output.v }}"})
    family.add("root", sub("c", "leaf", input={"n": "${{ TRIGGER.payload.m }}"}))
    family.start("root", {"m": 7})
    family.rest()
    assert family.state().status is RunStatus.COMPLETED
    assert family.world.output(family.root, "c") == {"twice": 7}


def test_a_child_belongs_to_the_tree_of_its_root() -> None:
    family = nest(3)
    family.work()
    origin = family.one("level0").origin
    assert origin.root_run_id == family.root
    assert origin.journey_id == family.root
    assert origin.parent_run_id == family.one("level1").run_id
    assert (origin.parent_node, origin.nesting_depth) == ("child", 2)


def test_large_values_travel_between_parent_and_child() -> None:
    family = Family()
    family.add("leaf", act("a", doubles.BIG, args={"v": "${{ TRIGGER.payload.text }}", "bytes": 40_000}))
    family.add("root", sub("c", "leaf", input={"text": "y" * 20_000}))
    family.start("root")
    family.rest()
    assert len(family.world.output(family.root, "c")["a"]["fill"]) == 40_000


def test_the_failure_of_a_child_takes_the_error_edge() -> None:
    family = Family()
    family.add("leaf", boom("a"))
    edge = Edge(source_ref="c", target_ref="rescue", type=EdgeType.ERROR)
    family.add("root", sub("c", "leaf"), act("rescue"), chain=False, edges=(edge,))
    family.start("root")
    family.rest()
    assert family.state().status is RunStatus.COMPLETED
    error = family.state().root.nodes["c"].error
    assert error is not None
    assert error.code == "CHILD_FAILED"
    assert "BROKEN" in error.message


def test_each_attempt_of_a_step_has_a_child_of_its_own() -> None:

    family = Family()
    family.add("leaf", boom("a"))
    family.add("root", sub("c", "leaf", retry=Retry(max_attempts=3, backoff_ms=1_000, jitter=0.0)))
    family.start("root")
    family.rest()
    assert [run.origin.parent_attempt for run in family.runs("leaf")] == [1, 2, 3]


def test_a_step_that_does_not_wait_completes_when_its_child_is_admitted() -> None:
    family = Family()
    family.add("leaf", hold())
    family.add("root", sub("c", "leaf", wait=False, parent_close_policy="abandon"))
    family.start("root")
    family.work()
    assert family.state().status is RunStatus.COMPLETED
    assert family.world.output(family.root, "c") == {"run_id": family.one("leaf").run_id}
    assert not family.one("leaf").status.terminal
    family.rest()
    assert family.one("leaf").status is RunStatus.COMPLETED


def test_a_time_limit_ends_the_wait_and_closes_the_child() -> None:
    family = Family()
    family.add("leaf", hold())
    edge = Edge(source_ref="c", target_ref="late", type=EdgeType.TIMEOUT)
    family.add("root", sub("c", "leaf", timeout_ms=5_000), act("late"), chain=False, edges=(edge,))
    family.start("root")
    family.rest()
    assert family.world.statuses(family.root) == {"c": "timed_out", "late": "completed"}
    leaf = family.one("leaf")
    assert leaf.status is RunStatus.CANCELLED
    assert leaf.finished_at - leaf.started_at < 30_000


def test_subworkflows_nest_ten_deep_and_no_deeper() -> None:
    family = Family()
    family.add("f0", act("a"))
    for level in range(1, 12):
        family.add(f"f{level}", sub("c", f"f{level - 1}"))
    family.start("f11")
    family.rest()
    assert max(run.origin.nesting_depth for run in (family.world.state(one) for one in family.world.run_ids())) == 10
    error = family.one("f1").root.nodes["c"].error
    assert error is not None
    assert error.code == "NESTING_TOO_DEEP"
    assert family.state().status is RunStatus.FAILED


def test_an_input_that_the_child_refuses_fails_the_step() -> None:
    family = Family()
    family.add("leaf", act("a"), input_schema={"type": "object", "required": ["n"]})
    family.add("root", sub("c", "leaf", input={}))
    family.start("root")
    family.rest()
    error = family.state().root.nodes["c"].error
    assert error is not None
    assert error.code == "INPUT_INVALID"
    assert family.runs("leaf") == []


def test_cancelling_a_tree_ends_every_level_and_undoes_every_effect_once() -> None:
    family = nest()
    family.work()
    family.world.control(family.root, "cancel", "stop")
    family.work()
    assert statuses(family) == ["cancelled"] * 4
    family.rest()
    undone = [text for text in family.said() if str(text).startswith("undo")]
    assert sorted(undone) == [f"undo level{level}" for level in range(4)]


def test_a_parent_is_cancelled_only_after_its_children() -> None:
    family = nest()
    family.work()
    family.world.control(family.root, "cancel", "stop")
    family.work()
    ends = [family.one(f"level{level}").finished_at for level in range(4)]
    assert ends == sorted(ends)


@pytest.mark.parametrize("policy", ["cancel", "terminate"])
def test_terminating_a_tree_ends_every_level_and_undoes_nothing(policy: str) -> None:
    family = nest(policy=policy)
    family.work()
    family.world.control(family.root, "terminate", "stop")
    family.work()
    assert statuses(family) == ["terminated"] * 4
    family.rest()
    assert [text for text in family.said() if str(text).startswith("undo")] == []


def test_an_abandoned_child_outlives_its_parent() -> None:
    family = nest(2, policy="abandon")
    family.work()
    family.world.control(family.root, "cancel", "stop")
    family.work()
    assert statuses(family, 2) == ["running", "cancelled"]
    family.rest()
    assert statuses(family, 2) == ["completed", "cancelled"]


@pytest.mark.parametrize("operation", ["cancel", "terminate", "nothing"])
@pytest.mark.parametrize("point", POINTS)
def test_a_crash_at_any_point_of_a_tree_changes_nothing(point: str, operation: str) -> None:
    """The n-th passing of the point crashes, for every n until the tree has ended without meeting it."""
    passing, crashed = 0, True
    while crashed:
        passing += 3
        family = nest()
        family.world.chaos.crash_at(point, passing)
        family.work(25)
        if operation != "nothing":
            family.world.control(family.root, operation, "stop")
            family.work(45)
        crashed = family.crashes > 0
        family.rest()
        expected = {"cancel": "cancelled", "terminate": "terminated", "nothing": "completed"}[operation]
        assert statuses(family) == [expected] * 4, passing
        undone = sorted(text for text in family.said() if str(text).startswith("undo"))
        assert undone == ([f"undo level{level}" for level in range(4)] if operation == "cancel" else []), passing


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


def continuations(family: Family) -> Continuations:
    world = family.world
    return Continuations(
        table=world.table,
        payloads=world.payloads,
        intents=world.intents,
        unit=NullUnit(),
        clock=world.clock,
        ids=world.ids,
    )


def test_a_run_continues_as_new_with_its_context() -> None:
    family = Family()
    family.add("loop", hold(), act("a", args={"v": "${{ CONTEXT.n }}"}))
    family.start("loop", {"x": 1})
    family.work()
    done = continuations(family).send(family.world.caller, family.root, "r1", "on", {"n": 5})
    again = continuations(family).send(family.world.caller, family.root, "r1", "on", {"n": 5})
    family.rest()
    assert again.new_run_id == done.new_run_id
    assert family.state().status is RunStatus.CONTINUED_AS_NEW
    successor = family.state(done.new_run_id)
    assert successor.status is RunStatus.COMPLETED
    assert family.world.output(done.new_run_id, "a")["v"] == 5
    assert successor.origin.source_run_id == family.root
    assert successor.origin.root_run_id == family.root
    assert family.world.value(done.new_run_id, successor.origin.input) == {"x": 1}


def test_a_waiting_parent_follows_the_successor_of_its_child() -> None:
    family = Family()
    family.add("leaf", hold(), act("a"), output={"v": "${{ CONTEXT.n }}"})
    family.add("root", sub("c", "leaf"))
    family.start("root")
    family.work()
    continuations(family).send(family.world.caller, family.one("leaf").run_id, "r1", "", {"n": 9})
    family.rest()
    assert family.state().status is RunStatus.COMPLETED
    assert family.world.output(family.root, "c") == {"v": 9}


def test_cancelling_a_parent_reaches_the_successor_of_its_child() -> None:
    family = nest(2)
    family.work()
    child = family.one("level0").run_id
    done = continuations(family).send(family.world.caller, child, "r1")
    family.work()
    family.world.control(family.root, "cancel", "stop")
    family.work()
    assert family.state(done.new_run_id).status is RunStatus.CANCELLED
    assert family.state().status is RunStatus.CANCELLED
    family.rest()


def test_a_run_with_a_live_child_continues_only_when_it_may_discard_it() -> None:

    family = nest(2)
    family.work()
    with pytest.raises(RefusedError) as refused:
        continuations(family).send(family.world.caller, family.root, "r1")
    assert refused.value.violations[0].code == "LIVE_ATTEMPTS"
    continuations(family).send(family.world.caller, family.root, "r2", discard_pending=True)
    family.work()
    assert family.state().status is RunStatus.CONTINUED_AS_NEW
    first = next(run for run in family.runs("level0") if run.origin.parent_run_id == family.root)
    assert first.status is RunStatus.CANCELLED
    family.rest()


def test_a_cancel_that_comes_too_late_goes_to_the_successor() -> None:
    family = Family()
    family.add("loop", hold())
    family.start("loop")
    family.work()
    done = continuations(family).send(family.world.caller, family.root, "r1")
    family.world.control(family.root, "cancel", "late")
    family.work()
    assert family.state().status is RunStatus.CONTINUED_AS_NEW
    assert family.state(done.new_run_id).status is RunStatus.CANCELLED
    family.rest()


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_at_any_point_of_the_move_loses_nothing(point: str) -> None:
    for passing in range(1, 16):
        family = Family()
        family.add("loop", hold(), act("a"))
        family.start("loop")
        family.work(10)
        family.world.chaos.crash_at(point, passing)
        done = continuations(family).send(family.world.caller, family.root, "r1", "", {"n": 1})
        family.work(30)
        family.rest()
        assert family.state().status is RunStatus.CONTINUED_AS_NEW
        assert family.state(done.new_run_id).status is RunStatus.COMPLETED


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
