"""Records golden histories: `python -m tests.golden.record` plays random worlds and a few scenes that those rarely see,

and keeps a run for each kind of transition that no recording here has yet. What is here is never recorded anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.simulation.family import Family, act, hold
from tests.simulation.scene import action, edge, flow
from tests.simulation.test_continue import continuations
from tests.simulation.test_scopes import failing_third, gather, scatter, settled

from ductor.app.decisions import Resolve
from ductor.model.definition import Checkpoint, Step
from ductor.model.enums import StepType
from ductor.testing.chaos import PROFILES
from ductor.testing.golden import read, record, written
from ductor.testing.seeds import run_seed
from ductor.testing.world import World

FOLDER = Path(__file__).parent
SEEDS = 1_000
MAX_ROWS = 120


def a_checkpoint_is_reached() -> World:
    family = Family()
    family.add("marked", act("a"), checkpoints=(Checkpoint("half", "a", response=True),))
    family.start("marked")
    family.rest()
    return family.world


def a_failed_scatter_is_redriven() -> World:
    scene = settled(failing_third())
    scene.control("redrive")
    scene.settle()
    return scene.world


def a_fork_keeps_the_results_of_items() -> World:
    parts = [scatter("s", "[1, 2, 3]"), action("a"), gather("g")]
    scene = settled(flow(*parts, edge("s", "a"), edge("a", "g")))
    inputs: dict[str, Any] = {"a@1": {"v": "anew"}}
    scene.world.reset(scene.run_id, scene.world.state(scene.run_id).seq, "fork", **inputs)
    scene.settle()
    return scene.world


def work_outside_is_resolved_by_hand() -> World:
    family = Family()
    family.add("outside", Step(ref="job", type=StepType.BRIDGE, args={"task_type": "print", "input": {"page": 1}}))
    family.start("outside")
    family.work(5)
    given = Resolve(request_id="by-hand", payload={"by": "hand"})
    family.world.decisions.resolve(family.world.caller, family.root, "job", given)
    family.rest()
    return family.world


def a_cancel_comes_after_the_run_went_on_as_another() -> World:
    family = Family()
    family.add("long", hold())
    family.start("long")
    family.work()
    continuations(family).send(family.world.caller, family.root, "go-on")
    family.world.control(family.root, "cancel", "late")
    family.work()
    family.rest()
    return family.world


SCENES = (
    a_checkpoint_is_reached,
    a_failed_scatter_is_redriven,
    a_fork_keeps_the_results_of_items,
    work_outside_is_resolved_by_hand,
    a_cancel_comes_after_the_run_went_on_as_another,
)


def worlds() -> Iterator[tuple[str, World]]:
    """Random ones first, because theirs are the richest runs."""
    names = tuple(PROFILES)
    for seed in range(SEEDS):
        yield f"seed_{seed:03d}", run_seed(seed, names[seed % len(names)])
    for scene in SCENES:
        yield scene.__name__, scene()


def main() -> None:
    """Write what is new into this folder."""
    known = frozenset[str]().union(*(read(path.read_bytes()).kinds for path in FOLDER.glob("*.json")))
    for name, world in worlds():
        for number, run_id in enumerate(world.run_ids()):
            golden = record(world, run_id)
            if len(golden.rows) <= MAX_ROWS and golden.kinds - known:
                known |= golden.kinds
                (FOLDER / f"{name}_{number}.json").write_bytes(written(golden))


if __name__ == "__main__":
    main()
