"""Makes random definitions members of families: some steps run earlier definitions, some can be undone, some call."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

import msgspec

from ductor.model.definition import Compensation, CompensationTarget, Definition, Retry, Step
from ductor.model.enums import StepType
from ductor.testing import doubles

_TARGETS: Final = (doubles.OK, doubles.OK, doubles.OK, doubles.FAIL_N, doubles.BOOM)
_POLICIES: Final = ("manual_repair", "fail_compensation", "ignore_with_audit")
_ARGS: Final = ("undo", "${{ TRIGGER.payload.n }}", "${{ TRIGGER.payload.nope }}", "x" * 9_000)


def related(rng: random.Random, definition: Definition, earlier: Mapping[str, str]) -> Definition:
    """The definition, some of its action steps turned into subworkflows of `earlier` (definition ids by family)."""
    pins: dict[str, str] = {}
    steps = tuple(_step(rng, step, earlier, pins) for step in definition.steps)
    hooks = {
        name: {"action": rng.choice(_TARGETS), "args": {"v": rng.choice(_ARGS)}}
        for name in ("on_completed", "on_failed", "on_cancelled")
        if rng.random() < 0.15
    }
    return msgspec.structs.replace(definition, steps=steps, pins=pins, hooks=hooks)


def _step(rng: random.Random, step: Step, earlier: Mapping[str, str], pins: dict[str, str]) -> Step:
    if rng.random() < 0.3:
        step = msgspec.structs.replace(step, compensation=_compensation(rng))
    if step.type is not StepType.ACTION or not earlier or rng.random() < 0.6:
        return step
    family = rng.choice(list(earlier))
    pins[step.ref] = earlier[family]
    args = {
        "family_slug": family,
        "input": {"n": rng.choice(("${{ TRIGGER.payload.n }}", 2, "${{ TRIGGER.payload.nope }}"))},
        "wait": rng.random() < 0.8,
        "parent_close_policy": rng.choice(("cancel", "cancel", "terminate", "abandon")),
    }
    return msgspec.structs.replace(step, type=StepType.SUBWORKFLOW, action="", args=args)


def _compensation(rng: random.Random) -> Compensation:
    return Compensation(
        on_failure=_targets(rng, 0.7),
        on_cancel=_targets(rng, 0.7),
        finally_=_targets(rng, 0.3),
        failure_policy=rng.choice(_POLICIES),
    )


def _targets(rng: random.Random, chance: float) -> tuple[CompensationTarget, ...]:
    count = rng.choice((1, 1, 2)) if rng.random() < chance else 0
    return tuple(_target(rng) for _ in range(count))


def _target(rng: random.Random) -> CompensationTarget:
    retry = Retry(max_attempts=rng.choice((1, 3)), backoff_ms=500)
    return CompensationTarget(rng.choice(_TARGETS), {"v": rng.choice(_ARGS), "n": 1}, retry=retry)
