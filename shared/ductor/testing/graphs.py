"""Random definitions: small graphs of every step type that runs so far, with every kind of edge, join and failure."""

from __future__ import annotations

import random
from typing import Any, Final

from ductor.model.definition import Definition, Edge, Retry, Step
from ductor.model.enums import EdgeType, Join, OnError, StepType
from ductor.testing import digests, doubles, pauses
from ductor.testing.models import ai_step
from ductor.testing.nests import random_nest

MAX_STEPS: Final = 8
AI: Final = (StepType.AI_ACTION, StepType.AI_AGENT)
NESTS: Final = 0.25
"""The share of definitions that are nests of scatters and races."""

MEETINGS: Final = 0.1
"""The share of the others that are about runs which meet in a digest."""

BIG_BYTES: Final = (300, 5_000, 9_000, 40_000)

_EDGES: Final = {
    StepType.ACTION: (
        EdgeType.SUCCESS,
        EdgeType.SUCCESS,
        EdgeType.SUCCESS,
        EdgeType.ERROR,
        EdgeType.TIMEOUT,
        EdgeType.DONE,
        EdgeType.DEFAULT,
    ),
    StepType.CONDITION: (EdgeType.TRUE, EdgeType.FALSE, EdgeType.TRUE, EdgeType.FALSE, EdgeType.ERROR, EdgeType.DONE),
    StepType.WAIT: (EdgeType.SUCCESS, EdgeType.SUCCESS, EdgeType.DONE, EdgeType.DEFAULT),
    StepType.DATAFLOW: (EdgeType.SUCCESS, EdgeType.SUCCESS, EdgeType.ERROR, EdgeType.DONE),
    StepType.AI_ACTION: (EdgeType.SUCCESS, EdgeType.SUCCESS, EdgeType.ERROR, EdgeType.DONE),
    StepType.AI_AGENT: (EdgeType.SUCCESS, EdgeType.SUCCESS, EdgeType.ERROR, EdgeType.DONE),
    **pauses.EDGES,
    StepType.DIGEST: digests.EDGES,
}
_PLAIN_CONDITIONS: Final = ("true", "false", "TRIGGER.payload.n > 1", "TRIGGER.payload.n % 2 == 0")
_ERRING: Final = ("TRIGGER.payload.nope == 1", "TRIGGER.payload.n")


def random_definition(rng: random.Random, number: int) -> Definition:
    """A definition that compiles: edges lead from earlier to later steps and are of types that the source has."""
    if rng.random() < NESTS:
        return random_nest(rng, number)
    if rng.random() < MEETINGS:
        return digests.random_meeting(rng, number)
    count = rng.randint(2, MAX_STEPS)
    refs = [chr(ord("a") + index) for index in range(count)]
    steps = tuple(_step(rng, refs[:index], ref) for index, ref in enumerate(refs))
    return Definition(
        family_slug=f"f{number}",
        steps=steps,
        edges=tuple(_edges(rng, steps)),
        run_timeout_ms=rng.choice((0, 0, 0, 0, 20_000, 200_000)),
        output=rng.choice((None, None, {"n": "${{ TRIGGER.payload.n }}"}, "${{ STEPS.a.output }}")),
    )


def _step(rng: random.Random, earlier: list[str], ref: str) -> Step:
    kind = rng.choices(
        (StepType.ACTION, StepType.CONDITION, StepType.WAIT, StepType.DATAFLOW, *pauses.PAUSES, StepType.DIGEST, *AI),
        weights=(50, 12, 11, 10, 6, 8, 3, 4, 2, 4),
    )[0]
    common: dict[str, Any] = {
        "ref": ref,
        "type": kind,
        "condition": _condition(rng, earlier, 0.12),
        "join": Join.ALL if rng.random() < 0.25 else Join.ANY,
        "on_error": OnError.CONTINUE if rng.random() < 0.15 else OnError.FAIL,
    }
    if kind is StepType.ACTION:
        return _action(rng, earlier, common)
    if kind is StepType.DIGEST:
        return digests.digest_step(rng, common)
    if kind in AI:
        return ai_step(rng, kind, common)
    if kind in pauses.PAUSES:
        if kind is StepType.APPROVAL:
            common["on_error"] = OnError.FAIL
        return pauses.pause_step(rng, kind, common)
    if kind is StepType.CONDITION:
        return Step(args={"expr": _condition(rng, earlier, 1.0)}, **common)
    if kind is StepType.WAIT:
        return Step(args={"duration": rng.choice(("0s", "1s", "5s", "30s", "2h"))}, **common)
    source = rng.choice(("TRIGGER.payload.n", "TRIGGER.payload.nope", "TRIGGER", "1 + 1"))
    return Step(args={"operation": "project", "project": {"v": source}}, **common)


def _action(rng: random.Random, earlier: list[str], common: dict[str, Any]) -> Step:
    action = rng.choices(doubles.NAMES, weights=(50, 15, 10, 15, 10))[0]
    args: dict[str, Any] = {"v": _value(rng, earlier)}
    if action == doubles.FAIL_N:
        args["n"] = rng.randint(1, 3)
    elif action == doubles.BOOM:
        args |= {"retryable": rng.random() < 0.7, "code": rng.choice(("BOOM", "FATAL"))}
    elif action == doubles.SLOW:
        args["ms"] = rng.choice((100, 3_000, 15_000, 40_000))
    elif action == doubles.BIG:
        args["bytes"] = rng.choice(BIG_BYTES)
    return Step(
        action=action,
        args=args,
        retry=_retry(rng),
        timeout_ms=rng.choice((0, 0, 0, 2_000, 20_000)),
        heartbeat_timeout_ms=rng.choice((0, 0, 0, 6_000)),
        **common,
    )


def _retry(rng: random.Random) -> Retry:
    return Retry(
        max_attempts=rng.choice((1, 1, 2, 3, 4)),
        backoff_ms=rng.choice((0, 0, 500, 1_000, 30_000, 300_000)),
        jitter=rng.choice((0.0, 0.1, 1.0)),
        max_elapsed_ms=rng.choice((0, 0, 0, 10_000)),
        non_retryable_codes=("FATAL",),
    )


def _value(rng: random.Random, earlier: list[str]) -> Any:
    dice = rng.random()
    if dice < 0.4:
        return "${{ TRIGGER.payload.n }}"
    if earlier and dice < 0.6:
        return f"${{{{ STEPS.{rng.choice(earlier)}.status }}}}"
    if earlier and dice < 0.7:
        return f"${{{{ STEPS.{rng.choice(earlier)}.output }}}}"
    if dice < 0.75:
        return "${{ TRIGGER.payload.nope }}"
    return "x" * rng.choice((1, 1, 300, 9_000))


def _condition(rng: random.Random, earlier: list[str], chance: float) -> str:
    if rng.random() >= chance:
        return ""
    dice = rng.random()
    if dice < 0.15:
        return rng.choice(_ERRING)
    if earlier and dice < 0.4:
        ref = rng.choice(earlier)
        return rng.choice((f'STEPS["{ref}"].status == "completed"', f"has(STEPS.{ref}.output)"))
    return rng.choice(_PLAIN_CONDITIONS)


def _edges(rng: random.Random, steps: tuple[Step, ...]) -> list[Edge]:
    edges: list[Edge] = []
    seen: set[tuple[str, str, EdgeType]] = set()
    for index, target in enumerate(steps[1:], 1):
        for _ in range(rng.choice((0, 1, 1, 1, 1, 2, 2, 3))):
            source = steps[index - 1] if rng.random() < 0.5 else rng.choice(steps[:index])
            kind = rng.choice(_EDGES[source.type])
            if (source.ref, target.ref, kind) in seen:
                continue
            seen.add((source.ref, target.ref, kind))
            condition = _condition(rng, [step.ref for step in steps[:index]], 0.15)
            edges.append(Edge(source_ref=source.ref, target_ref=target.ref, type=kind, condition=condition))
    return edges
