"""Forks of random runs at many points of their history, in the middle of ticks too: what is kept fits together."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

from ductor.model import transition as tr
from ductor.model.definition import Definition
from ductor.testing.chaos import PROFILES
from ductor.testing.graphs import random_definition
from ductor.testing.invariants import violations
from ductor.testing.nests import random_nest
from ductor.testing.schedule import Client, Schedule
from ductor.testing.world import World

POINTS = 6


def forked_everywhere(seed: int, draw: Callable[[random.Random, int], Definition]) -> Counter[str]:
    """One run to its end, then forks at points spread over its history; how often what happened in them."""
    world = World(seed, PROFILES["calm"])
    client = Client(world.publish(draw(world.rng, 0)), {"n": seed % 4}, "key")
    schedule = Schedule(world, [client])
    with world.limits():
        schedule.drain()
        schedule.free()
        assert client.run_id is not None
        last = world.state(client.run_id).seq
        points = {last * (number + 1) // POINTS for number in range(POINTS)}
        forks = [world.reset(client.run_id, point, f"f{point}") for point in sorted(points)]
        schedule.work_off()
        schedule.free()
    assert violations(world, final=True) == []
    return Counter(type(one).__name__ for run_id in forks for one in world.history(run_id))


def test_a_fork_of_scatters_and_races_holds_every_promise_wherever_it_begins() -> None:
    seen: Counter[str] = Counter()
    for seed in range(40):
        seen += forked_everywhere(seed, random_nest)
    assert min(seen[kind.__name__] for kind in (tr.NodeAdopted, tr.ScatterOpened, tr.NodeCompleted)) > 0


def test_a_fork_of_any_graph_holds_every_promise_wherever_it_begins() -> None:
    for seed in range(1_000, 1_030):
        forked_everywhere(seed, random_definition)


def test_the_same_run_forked_twice_at_one_point_goes_the_same_way() -> None:
    assert forked_everywhere(7, random_nest) == forked_everywhere(7, random_nest)
