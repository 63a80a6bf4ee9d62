"""A world with one run, driven by hand: who acts, when, and where a process dies."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from ductor.model.definition import Definition, Edge, Retry, Step
from ductor.model.enums import EdgeType, StepType
from ductor.model.json import JSON
from ductor.testing.actors import VISIBILITY_MS
from ductor.testing.chaos import PROFILES, Crash, Profile
from ductor.testing.invariants import violations
from ductor.testing.schedule import Schedule
from ductor.testing.world import World


def action(ref: str, double: str = "ok", retry: Retry | None = None, **rest: Any) -> Step:
    """An action step; what is no field of a step goes into its args."""
    fields = {name: rest.pop(name) for name in tuple(rest) if name in Step.__struct_fields__}
    args = {"v": ref, **rest}
    return Step(ref=ref, type=StepType.ACTION, action=f"double.{double}", args=args, retry=retry or Retry(), **fields)


def shape(ref: str, source: str = '"x"', **fields: Any) -> Step:
    """A dataflow step whose output is `{"result": {"v": source}}`."""
    return Step(ref=ref, type=StepType.DATAFLOW, args={"operation": "project", "project": {"v": source}}, **fields)


def switch(ref: str, expr: str, **fields: Any) -> Step:
    return Step(ref=ref, type=StepType.CONDITION, args={"expr": expr}, **fields)


def wait(ref: str, duration: str, **fields: Any) -> Step:
    return Step(ref=ref, type=StepType.WAIT, args={"duration": duration}, **fields)


def edge(source: str, target: str, kind: EdgeType = EdgeType.SUCCESS, condition: str = "") -> Edge:
    return Edge(source_ref=source, target_ref=target, type=kind, condition=condition)


def flow(*parts: Step | Edge, **fields: Any) -> Definition:
    return Definition(
        family_slug="flow",
        steps=tuple(part for part in parts if isinstance(part, Step)),
        edges=tuple(part for part in parts if isinstance(part, Edge)),
        **fields,
    )


def held(scenario: Callable[[], bool], without: AbstractContextManager[Any]) -> None:
    """The scenario holds, and no longer does when the mechanism is switched off."""
    assert scenario()
    with without:
        assert not scenario()


class Scene:
    """One run of one definition. Nothing happens but what is asked for."""

    def __init__(self, definition: Definition, value: JSON = None, profile: Profile = PROFILES["calm"]) -> None:
        self.world = World(1, profile)
        self.schedule = Schedule(self.world, [])
        self.clock = self.world.clock
        self.run_id = self.world.trigger(self.world.publish(definition), value)

    def deliver(self, limit: int = 10, coordinator: int = 0) -> int:
        """A coordinator handles one batch; how many messages it had."""
        return self.world.coordinators[coordinator].deliver(limit)

    def crash(self, point: str, limit: int = 10, coordinator: int = 0) -> None:
        """The same, but the coordinator dies at `point`; its messages are visible again afterwards."""
        actor = self.world.coordinators[coordinator]
        self.world.chaos.crash_at(point)
        try:
            actor.deliver(limit)
        except Crash:
            actor.restart()
            self.clock.advance(VISIBILITY_MS + 1)
        else:
            raise AssertionError(f"nobody passed {point}")

    def work(self, worker: int = 0) -> int:
        """A worker runs all tasks that are there, and records the results; how many."""
        actor = self.world.workers[worker]
        actor.claim(100)
        for one in actor.waiting:
            actor.begin(one)
        ready = actor.ready
        if ready:
            actor.finish(ready)
        return len(ready)

    def settle(self) -> None:
        """Everything goes on until nothing is left to happen, however much time passes."""
        self.schedule.work_off()

    def control(self, operation: str, request_id: str = "r1") -> None:
        self.world.control(self.run_id, operation, request_id)

    @property
    def status(self) -> str:
        return self.world.state(self.run_id).status.value

    @property
    def steps(self) -> dict[str, str]:
        """The status of each step."""
        return self.world.statuses(self.run_id)

    @property
    def faults(self) -> list[str]:
        """Broken promises."""
        return violations(self.world)

    def effects(self, ref: str) -> int:
        """How often the action of a step was executed."""
        return sum(effect.node == ref for effect in self.world.ledger.effects)

    @property
    def tasks(self) -> int:
        """Messages to the workers that nobody has finished."""
        return self.world.steps.depth()


def settled(definition: Definition, value: object = None) -> Scene:
    """The run of a definition when nothing is left to happen; nothing was promised that does not hold."""
    scene = Scene(definition, value)
    scene.settle()
    assert scene.faults == []
    return scene


def statuses(scene: Scene, *refs: str) -> list[str]:
    return [scene.steps[ref] for ref in refs]
