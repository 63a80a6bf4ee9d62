"""Random nests of scatters, gathers and races over the simulator's own actions."""

from __future__ import annotations

import random
from typing import Any, Final

from ductor.model.definition import Definition, Edge, Retry, Step
from ductor.model.enums import EdgeType, OnError, StepType
from ductor.testing import doubles
from ductor.testing.pauses import PAUSES, pause_step

MAX_NODES: Final = 12
_ITEMS: Final = (
    "[]",
    "[1]",
    "[1, 2, 3]",
    "[1, 2, 3, 4, 5]",
    "[[1, 2], [], [3]]",
    "[[1], [2, 3, 4]]",
    "TRIGGER.payload.n",
)


class _Block:
    """A part of a graph: the steps that begin it, and the one that ends it."""

    def __init__(self, entries: list[str], last: str) -> None:
        self.entries = entries
        self.last = last


class _Nest:
    """One definition in the making."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.steps: list[Step] = []
        self.edges: list[Edge] = []

    def ref(self) -> str:
        return f"s{len(self.steps)}"

    def block(self, depth: int, scatters: int) -> _Block:
        """Up to `depth` levels; inside of `scatters` scatters."""
        full = depth <= 0 or len(self.steps) >= MAX_NODES
        dice = 0.0 if full else self.rng.random()
        if dice < 0.35:
            return self.leaf(scatters)
        if dice < 0.65 and scatters < 3:
            return self.scatter(depth, scatters)
        if dice < 0.85:
            return self.race(depth, scatters)
        first, second = self.block(depth - 1, scatters), self.block(depth - 1, scatters)
        self.join(first.last, second.entries)
        return _Block(first.entries, second.last)

    def join(self, source: str, targets: list[str], kind: EdgeType = EdgeType.SUCCESS) -> None:
        condition = self.rng.choice(("", "", "", "", "TRIGGER.payload.n > 1"))
        self.edges += [Edge(source_ref=source, target_ref=target, type=kind, condition=condition) for target in targets]

    def leaf(self, scatters: int) -> _Block:
        rng, ref = self.rng, self.ref()
        condition = rng.choice(("", "", "", "", "", "TRIGGER.payload.n > 0"))
        if rng.random() < 0.2:
            duration = rng.choice(("0s", "1s", "30s"))
            self.steps.append(Step(ref=ref, type=StepType.WAIT, args={"duration": duration}, condition=condition))
            return _Block([ref], ref)
        if rng.random() < 0.12:
            kind = rng.choice(PAUSES)
            self.steps.append(pause_step(rng, kind, {"ref": ref, "type": kind, "condition": condition}))
            return _Block([ref], ref)
        return self.work(ref, condition, scatters)

    def work(self, ref: str, condition: str, scatters: int) -> _Block:
        rng = self.rng
        action = rng.choices(doubles.NAMES, weights=(55, 12, 10, 15, 8))[0]
        value = "${{ [ITEM, INDEX] }}" if scatters and rng.random() < 0.6 else "${{ TRIGGER.payload.n }}"
        args: dict[str, Any] = {"v": value}
        if action == doubles.FAIL_N:
            args["n"] = rng.randint(1, 2)
        elif action == doubles.BOOM:
            args |= {"retryable": rng.random() < 0.5, "code": "BOOM"}
        elif action == doubles.SLOW:
            args["ms"] = rng.choice((100, 3_000, 15_000))
        elif action == doubles.BIG:
            args["bytes"] = rng.choice((300, 9_000))
        retry = Retry(max_attempts=rng.choice((1, 1, 2, 3)), backoff_ms=rng.choice((0, 500, 30_000)), jitter=0.0)
        on_error = OnError.CONTINUE if rng.random() < 0.1 else OnError.FAIL
        self.steps.append(
            Step(
                ref=ref,
                type=StepType.ACTION,
                action=action,
                args=args,
                retry=retry,
                condition=condition,
                on_error=on_error,
                timeout_ms=rng.choice((0, 0, 2_000)),
            )
        )
        return _Block([ref], ref)

    def scatter(self, depth: int, scatters: int) -> _Block:
        rng, ref = self.rng, self.ref()
        gather: dict[str, Any] = rng.choice(({}, {}, {}, {"policy": "any"}, {"policy": "quorum", "quorum": 2}))
        args: dict[str, Any] = {
            "items_expr": rng.choice((*_ITEMS, "ITEM", "ITEM") if scatters else _ITEMS),
            "max_concurrency": rng.choice((0, 0, 1, 2)),
        }
        if not gather:
            args["tolerated_failures"] = rng.choice((0, 0, 1, "50%"))
        self.steps.append(Step(ref=ref, type=StepType.SCATTER, args=args))
        inner = self.block(depth - 1, scatters + 1)
        self.join(ref, inner.entries)
        end = self.ref()
        output = rng.choice(({}, {"output_expr": "[ITEM, INDEX]"}, {"output_expr": f"STEPS.{inner.last}.status"}))
        self.steps.append(Step(ref=end, type=StepType.GATHER, args={**gather, **output}))
        self.join(inner.last, [end])
        return _Block([ref], end)

    def race(self, depth: int, scatters: int) -> _Block:
        rng = self.rng
        arms = [self.block(depth - 1, scatters) for _ in range(rng.choice((2, 2, 3)))]
        ref = self.ref()
        kind, args = rng.choice(
            (
                (StepType.RACE, {}),
                (StepType.RACE, {}),
                (StepType.RACE, {"cancel_losers": False}),
                (StepType.GATHER, {"policy": "any"}),
                (StepType.GATHER, {"policy": "quorum", "quorum": 2}),
            )
        )
        if kind is StepType.GATHER and scatters:
            kind, args = StepType.RACE, {}
        self.steps.append(Step(ref=ref, type=kind, args=args))
        for arm in arms:
            self.join(arm.last, [ref])
        return _Block([entry for arm in arms for entry in arm.entries], ref)


def random_nest(rng: random.Random, number: int) -> Definition:
    """A definition whose scatters are closed by their gathers, and whose races have branches of their own."""
    nest = _Nest(rng)
    block = nest.block(4, 0)
    after = nest.leaf(0)
    nest.join(block.last, after.entries)
    return Definition(
        family_slug=f"f{number}",
        steps=tuple(nest.steps),
        edges=tuple(nest.edges),
        run_timeout_ms=rng.choice((0, 0, 0, 20_000)),
    )
