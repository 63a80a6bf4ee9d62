"""One round of work of a world: everybody does what can be done at this moment, in a fixed order. Moves no clock."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from ductor.model.enums import RunStatus
from ductor.testing.actors import Running, WorkerActor
from ductor.testing.bridges import next_visible_at
from ductor.testing.world import World

Act = Callable[[], int]
Guard = Callable[[Act], int]
"""Runs one step of one actor; how much was done. May turn the death of a process into its restart."""

LOOK_MS: Final = 3_000
"""The longest time that a worker with a running action does not look after it: a third of its lease is less."""

BATCH: Final = 10


def unguarded(act: Act) -> int:
    """Whatever happens, happens."""
    return act()


class Rounds:
    """Drives the processes of a world that nobody drives at random."""

    def __init__(self, world: World, guard: Guard = unguarded) -> None:
        self._world = world
        self._guard = guard

    def round(self) -> bool:
        """Everybody does what can be done at this moment; whether anybody did anything."""
        moved = self._guard(self._world.timer.step)
        for coordinator in self._world.coordinators:
            moved += self._guard(partial(coordinator.deliver, BATCH))
        for worker in self._world.workers:
            moved += self._guard(partial(_work, worker))
        for outsider in self._world.outsiders:
            moved += self._guard(outsider.work)
        return moved > 0

    def next_moment(self) -> int | None:
        """When the next thing can happen without anybody from outside; None when nothing is left."""
        world = self._world
        moments = [at for at in (world.intents.next_visible_at(), world.steps.next_visible_at()) if at is not None]
        for worker in world.workers:
            left = worker.next_ready_in
            if left is not None:
                moments.append(world.clock.now + min(left, LOOK_MS))
            moments += [at for at in map(_ends_at, worker.running) if at > world.clock.now]
        late = world.chaos.chances.skew_ms  # the clock of who polls may be behind by so much
        hidden = next_visible_at(world.table, world.clock.now - late, self._rests)
        if hidden is not None:
            moments.append(hidden + late)
        at = world.timers.next_at()
        if at is not None:
            moments.append(at - world.chaos.chances.early_ms)
        return min(moments) if moments else None

    def _rests(self, run_id: str) -> bool:
        return self._world.state(run_id).status is RunStatus.PAUSED


def _ends_at(one: Running) -> int:
    """When a running action has used up its time, or has been silent for too long; 0 for never."""
    claimed, silence = one.claimed, one.claimed.task.heartbeat_timeout_ms
    ends = [claimed.deadline, claimed.beat_at + silence if silence else 0]
    return min((at for at in ends if at), default=0)


def _work(worker: WorkerActor) -> int:
    moved = worker.claim(BATCH)
    for one in worker.waiting:
        worker.begin(one)
        moved += 1
    ready = worker.ready
    if ready:
        worker.finish(ready)
        moved += len(ready)
    if worker.running:
        worker.look(heed=True)
    return moved
