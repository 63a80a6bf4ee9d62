"""The largest definition there can be."""

from __future__ import annotations

import itertools
import time
from typing import Any

from tests.unit.validation.samples import echo, errors

from ductor.expressions import analysis

LIMIT_S = 0.3
"""Processor time that the check of 500 steps and 5,000 edges may take."""


def _largest() -> dict[str, Any]:
    pairs = itertools.islice(itertools.combinations(range(500), 2), 5_000)
    edges = [
        {
            "source_ref": f"s{source}",
            "target_ref": f"s{target}",
            "condition": f"STEPS.s{source}.output.v == {place} && TRIGGER.payload.f{place} != 'k{place}'",
        }
        for place, (source, target) in enumerate(pairs)
    ]
    return {"family_slug": "large", "steps": [echo(f"s{place}") for place in range(500)], "edges": edges}


def _spent(document: dict[str, Any]) -> float:
    begin = time.process_time()
    assert errors(document) == set()
    return time.process_time() - begin


def test_the_largest_definition_is_checked_in_time() -> None:
    document = _largest()
    assert min(_spent(document) for _ in range(3)) <= LIMIT_S


def test_conditions_that_differ_in_values_and_names_are_compiled_once() -> None:
    document = _largest()
    before = analysis._compiled.cache_info().misses
    assert errors(document) == set()
    assert analysis._compiled.cache_info().misses - before <= 2


def test_a_condition_among_thousands_that_reads_an_unknown_step_is_named() -> None:
    edges = [{"source_ref": "a", "target_ref": f"s{n}", "condition": f"STEPS.a.output.v > {n}"} for n in range(400)]
    edges[200]["condition"] = "STEPS.nobody.output.v > 200"
    steps = [echo("a"), *(echo(f"s{n}") for n in range(400))]
    found = errors({"family_slug": "large", "steps": steps, "edges": edges})
    assert found == {("edges[200].condition", "CEL_UNKNOWN_STEP")}
