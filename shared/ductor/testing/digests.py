"""Digests in simulated worlds: random digest steps, and what must hold of them: each arrival in exactly one batch."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ductor.model import transition as tr
from ductor.model.definition import Definition, Edge, Step
from ductor.model.enums import EdgeType, NodeStatus, RunStatus, StepType
from ductor.model.run import RunState
from ductor.testing import doubles
from ductor.testing.world import World

EDGES: Final = (EdgeType.SUCCESS, EdgeType.SUCCESS, EdgeType.ERROR, EdgeType.DONE)
_KEYS: Final = ("k", "k", "k", "k${{ TRIGGER.payload.n }}", "${{ TRIGGER.payload.n }}", "${{ TRIGGER.payload.nope }}")
_DEDUP: Final = ("", "", "${{ TRIGGER.payload.n }}")
ARRIVAL: Final = {"run": "${{ RUN.id }}", "n": "${{ TRIGGER.payload.n }}"}

Batch = list[dict[str, Any]]
"""The arrivals that a leader got."""


def digest_step(rng: random.Random, common: dict[str, Any]) -> Step:
    """A digest of runs. `common` are the fields that all steps have."""
    args: dict[str, Any] = {"digest_key": rng.choice(_KEYS), "dedup_key": rng.choice(_DEDUP)}
    args["arrival"] = {**ARRIVAL, "pad": "x" * rng.choice((1, 1, 400, 9_000))}
    wait = rng.choice(("0s", "1s", "5s", "30s", "2h"))
    if rng.random() < 0.5:
        args |= {"max_wait": wait, "max_count": rng.choice((1, 2, 2, 3))}
    else:
        args["window"] = wait
    return Step(args=args, **common)


def random_meeting(rng: random.Random, number: int) -> Definition:
    """A definition whose runs surely meet: before the digest they may be slow or fail, beside it they may wait."""
    before = Step(
        ref="a",
        type=StepType.ACTION,
        action=rng.choice((doubles.OK, doubles.OK, doubles.OK, doubles.SLOW, doubles.BOOM)),
        args={"v": "x", "ms": 3_000, "code": "BOOM", "retryable": False},
    )
    both = Step(ref="b", type=StepType.DIGEST, args={**_often(rng), "arrival": ARRIVAL})
    after = Step(ref="c", type=StepType.ACTION, action=doubles.OK, args={"v": "${{ STEPS.b.output.count }}"})
    beside = Step(ref="d", type=StepType.WAIT, args={"duration": rng.choice(("5s", "30s", "2h"))})
    condition = rng.choice(("", "", "", "TRIGGER.payload.n > 1", "TRIGGER.payload.nope && STEPS.b.output.count > 0"))
    steps = [before, both, after, *([beside] if rng.random() < 0.3 else [])]
    edges = [Edge(source_ref="b", target_ref="c", condition=condition)]
    edges += [Edge(source_ref="a", target_ref="b", type=EdgeType.DONE)] if rng.random() < 0.5 else []
    limit = rng.choice((0, 0, 20_000))
    return Definition(family_slug=f"f{number}", steps=tuple(steps), edges=tuple(edges), run_timeout_ms=limit)


def _often(rng: random.Random) -> dict[str, Any]:
    args: dict[str, Any] = {"digest_key": "k", "dedup_key": rng.choice(_DEDUP)}
    if rng.random() < 0.6:
        return {**args, "max_wait": rng.choice(("5s", "30s", "2h")), "max_count": rng.choice((2, 2, 3))}
    return {**args, "window": rng.choice(("0s", "1s", "5s", "30s"))}


def gathers(definition: Definition) -> bool:
    """Whether runs of the definition meet in a digest."""
    return any(step.type is StepType.DIGEST for step in definition.steps)


def digest_faults(world: World, *, final: bool) -> Iterator[str]:
    """Every broken promise about digests. A run that was redriven may have brought its arrival twice."""
    states = {run_id: world.state(run_id) for run_id in world.run_ids()}
    again = {run_id for run_id in states if any(isinstance(one, tr.RunRedriven) for one in world.history(run_id))}
    batches: dict[tuple[str, str], dict[str, Batch]] = defaultdict(dict)
    for run_id, state in states.items():
        for ref, batch in _led(world, state):
            batches[state.origin.family_slug, ref][run_id] = batch
    for (_, ref), led in batches.items():
        times = Counter(arrival["run"] for batch in led.values() for arrival in batch)
        yield from (
            f"the arrival of {run_id} is in {count} batches of {ref}"
            for run_id, count in times.items()
            if count > 1 and run_id not in again
        )
        for leader, batch in led.items():
            if not _is_in(world, leader, ref, leader, batch):
                yield f"run {leader} leads a batch of {ref} without its own arrival"
            alone = [each["run"] for each in batch if states[each["run"]].status is RunStatus.COMPLETED]
            if set(alone) - {leader} - again:
                yield f"run {leader} has the arrivals of {alone} from {ref}, which went on by themselves"
    for state in states.values():
        if state.status is RunStatus.MERGED and not _is_taken(world, state, batches):
            yield f"run {state.run_id} is merged into {state.merged_into}, which has not got its arrival"
    if final:
        left = [f"{item.pk}/{item.sk} {item.body.decode()}" for item in world.table.rows() if item.pk.startswith("DG#")]
        yield from (f"of a digest is left {row}" for row in left[:5])


def _led(world: World, state: RunState) -> Iterator[tuple[str, Batch]]:
    """The batches that the run itself has got, by step."""
    graph = world.graph(state.run_id)
    for ref, entry in state.root.nodes.items():
        kept = state.fork is not None and state.fork.foreign(ref)
        ended = entry.status is NodeStatus.COMPLETED and entry.error is None
        if graph.by_ref[ref].step.type is StepType.DIGEST and ended and not kept:
            output: Any = world.value(state.run_id, entry.output)
            yield ref, output["arrivals"]


def _is_in(world: World, leader: str, ref: str, run_id: str, batch: Batch) -> bool:
    """Whether the run's arrival is in the batch, or stands behind one with the same dedup key."""
    if any(arrival["run"] == run_id for arrival in batch):
        return True
    args = world.graph(leader).by_ref[ref].step.args
    value: Any = world.value(run_id, world.state(run_id).origin.input)
    return bool(args.get("dedup_key")) and any(arrival["n"] == value["n"] for arrival in batch)


def _is_taken(world: World, state: RunState, batches: Mapping[tuple[str, str], Mapping[str, Batch]]) -> bool:
    into, family = state.merged_into, state.origin.family_slug
    taken = (
        _is_in(world, into, ref, state.run_id, led[into])
        for (other, ref), led in batches.items()
        if other == family and into in led
    )
    return any(taken) and world.value(state.run_id, state.output) == {"merged_into": into}
