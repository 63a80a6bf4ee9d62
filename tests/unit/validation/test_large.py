"""The largest definition there can be."""

from __future__ import annotations

import itertools

from tests.unit.validation.samples import echo, errors

from ductor.expressions import analysis


def test_conditions_that_differ_in_values_and_names_are_compiled_once() -> None:
    pairs = itertools.islice(itertools.combinations(range(500), 2), 5_000)
    edges = [
        {
            "source_ref": f"s{source}",
            "target_ref": f"s{target}",
            "condition": f"STEPS.s{source}.output.v == {place} && TRIGGER.payload.f{place} != 'k{place}'",
        }
        for place, (source, target) in enumerate(pairs)
    ]
    document = {"family_slug": "large", "steps": [echo(f"s{place}") for place in range(500)], "edges": edges}
    before = analysis._compiled.cache_info().misses
    assert errors(document) == set()
    assert analysis._compiled.cache_info().misses - before <= 2


def test_a_condition_among_thousands_that_reads_an_unknown_step_is_named() -> None:
    edges = [{"source_ref": "a", "target_ref": f"s{n}", "condition": f"STEPS.a.output.v > {n}"} for n in range(400)]
    edges[200]["condition"] = "STEPS.nobody.output.v > 200"
    steps = [echo("a"), *(echo(f"s{n}") for n in range(400))]
    found = errors({"family_slug": "large", "steps": steps, "edges": edges})
    assert found == {("edges[200].condition", "CEL_UNKNOWN_STEP")}
