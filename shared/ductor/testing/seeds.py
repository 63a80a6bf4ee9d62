"""One seed, one world: builds it, lets it be struck, brings it to rest, and checks every promise."""

from __future__ import annotations

import random
from typing import Final

from ductor.testing.bridges import bridged
from ductor.testing.chaos import PROFILES
from ductor.testing.digests import gathers
from ductor.testing.families import related
from ductor.testing.graphs import random_definition
from ductor.testing.invariants import violations
from ductor.testing.listening import listener
from ductor.testing.schedule import Client, NeverAtRestError, Schedule
from ductor.testing.slots import limited
from ductor.testing.world import World

EVENTS: Final = 60
"""Most random events before the faults stop."""


class BrokenPromiseError(AssertionError):
    """A seed found a fault. The message says which, and how to see it again."""


def run_seed(seed: int, profile: str = "storm", *, traced: bool = False, keep: list[World] | None = None) -> World:
    """Run one world to its end. Raises BrokenPromiseError; `keep` gets the world also then."""
    world = World(seed, PROFILES[profile], traced=traced)
    if keep is not None:
        keep.append(world)
    try:
        with world.limits():
            _live(world)
    except BrokenPromiseError:
        raise
    except Exception as error:
        raise BrokenPromiseError(_report(world, [f"{type(error).__name__}: {error}"])) from error
    return world


def _live(world: World) -> None:
    schedule = Schedule(world, _clients(world, world.rng))
    schedule.strike(world.rng.randint(10, EVENTS))
    try:
        schedule.drain()
        _demand(world, violations(world))
        schedule.free()
    except NeverAtRestError as error:
        _demand(world, [str(error), *violations(world)])
    _demand(world, violations(world, final=True))


def _clients(world: World, rng: random.Random) -> list[Client]:
    families: dict[str, str] = {}
    meeting: list[str] = []
    crowded: list[str] = []
    for number in range(rng.choice((1, 1, 2, 4))):
        definition = limited(rng, bridged(rng, related(rng, random_definition(rng, number), families)))
        families[definition.family_slug] = world.publish(definition)
        meeting += [families[definition.family_slug]] if gathers(definition) else []
        crowded += [families[definition.family_slug]] if definition.concurrency else []
    definitions = list(families.values())
    if rng.random() < 0.15:
        world.listener = listener(rng)
        world.publish(world.listener)
    # Runs that are to meet in a digest come together.
    wanted = [rng.choice(meeting)] * rng.choice((1, 3, 5)) if meeting else []
    wanted += [rng.choice((*definitions, definitions[-1])) for _ in range(rng.choice((1, 1, 2, 3)))]
    wanted += [rng.choice(crowded)] * rng.choice((1, 3, 5)) if crowded else []
    return [Client(one, {"n": rng.randint(0, 3)}, f"key-{number}") for number, one in enumerate(wanted)]


def _demand(world: World, found: list[str]) -> None:
    if found:
        raise BrokenPromiseError(_report(world, found))


def _report(world: World, found: list[str]) -> str:
    replay = f".venv/bin/python -m ductor.testing.replay {world.seed} --profile {world.profile.name}"
    return "\n".join([f"seed {world.seed}, profile {world.profile.name}:", *found[:20], f"see it again: {replay}"])
