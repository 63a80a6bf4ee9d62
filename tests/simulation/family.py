"""Families of runs, driven by hand: definitions pinned to each other, one root run, everybody who works on it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from ductor.model.definition import Compensation, CompensationTarget, Definition, Edge, Retry, Step
from ductor.model.enums import StepType
from ductor.model.lineage import WORKFLOW
from ductor.model.run import RunState
from ductor.testing import doubles
from ductor.testing.actors import VISIBILITY_MS, CoordinatorActor, WorkerActor
from ductor.testing.chaos import PROFILES, Crash
from ductor.testing.invariants import violations
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
