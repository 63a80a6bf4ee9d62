"""Random documents: what the validator lets through compiles and runs to its end; of the rest it names the fault."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from ductor.model.errors import Severity, Violation
from ductor.testing import doubles
from ductor.testing.chaos import PROFILES
from ductor.testing.doubles import Doubles
from ductor.testing.invariants import violations
from ductor.testing.ledger import Ledger
from ductor.testing.schedule import Schedule
from ductor.testing.world import World
from ductor.validation.context import Context, Standing
from ductor.validation.document import canonical, to_definition
from ductor.validation.validator import validate

Document = dict[str, Any]

REFS = ["a", "b", "c", "d", "e", "f"]
CONTEXT = Context(catalog=Doubles(Ledger(traced=False)).registry(), now=0, environment=lambda key: Standing.KNOWN)
TERMINAL = {"completed", "failed", "timed_out", "cancelled", "terminated"}

CONDITIONS = st.sampled_from(
    [
        *("true", "false", "TRIGGER.payload.n > 1", "STEPS.a.status == 'completed'", "has(STEPS.b.output)"),
        *("STEPS.c.output.v == 1", "TRIGGER.payload.nope", "1 +", "NOPE == 1", "3", "STEPS.zz.output == 1"),
    ]
)
KINDS = st.sampled_from(["success", "error", "timeout", "true", "false", "done", "default", "approved", "odd"])


def _action(name: str, args: Document) -> Document:
    return {"type": "action", "action": name, "args": args}


BODIES = st.sampled_from(
    [
        *(_action(doubles.NAMES[0], {"v": 1}), _action(doubles.NAMES[0], {"v": "${{ STEPS.a.output }}"})),
        *(_action(doubles.BOOM, {"code": "BOOM"}), _action(doubles.FAIL_N, {"n": 1}), _action("no.such", {})),
        {"type": "condition", "args": {"expr": "TRIGGER.payload.n > 1"}},
        {"type": "condition", "args": {"expr": "STEPS.a.output.v == 1"}},
        {"type": "wait", "args": {"duration": "5s"}},
        {"type": "wait", "args": {"duration": "never"}},
        {"type": "dataflow", "args": {"operation": "project", "project": {"v": "TRIGGER.payload.n"}}},
        {"type": "dataflow", "args": {"operation": "map", "input_expr": "[1, 2]", "each": "ITEM"}},
        {"type": "scatter", "args": {"items_expr": "[1, 2]"}},
        {"type": "gather", "args": {}},
        {"type": "race", "args": {}},
        {"type": "approval", "action": "approval", "args": {"audience": {"roles": ["operator"]}, "timeout_ms": 1_000}},
    ]
)
EXTRAS = st.fixed_dictionaries(
    {},
    optional={
        "condition": CONDITIONS,
        "join": st.sampled_from(["any", "all", "most"]),
        "on_error": st.sampled_from(["fail", "continue"]),
        "retry_max_attempts": st.sampled_from([1, 2, 0]),
        "compensation": st.just({"on_failure": [{"action": doubles.NAMES[0]}]}),
    },
)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Steps of every kind; edges mostly forward and mostly of a type that fits, so that about half are valid."""
    steps = []
    for ref in REFS[: draw(st.integers(1, len(REFS)))]:
        extras = draw(EXTRAS) if draw(st.integers(0, 3)) == 0 else {}
        steps.append({"ref": ref, **draw(BODIES), **extras})
    edges = []
    for _ in range(draw(st.integers(0, 8))):
        source = draw(st.integers(0, len(steps) - 1))
        target = draw(st.integers(0, len(steps) - 1))
        if draw(st.integers(0, 9)):
            source, target = sorted((source, target))
        if source != target or draw(st.integers(0, 9)) == 0:
            edges.append(_edge(draw, steps[source], steps[target]))
    return {"family_slug": "drawn", "environment": "default", "steps": steps, "edges": edges}


def _edge(draw: st.DrawFn, source: Document, target: Document) -> Document:
    fitting = {"condition": "true", "approval": "approved"}.get(source["type"], "success")
    edge = {"source_ref": source["ref"], "target_ref": target["ref"]}
    edge["type"] = fitting if draw(st.integers(0, 3)) else draw(KINDS)
    return {**edge, "condition": draw(CONDITIONS)} if draw(st.integers(0, 5)) == 0 else edge


@settings(max_examples=500, deadline=None)
@given(documents(), st.integers(0, 3))
def test_what_publishes_runs_to_its_end_and_what_is_refused_names_the_fault(document: Document, n: int) -> None:
    errors = [found for found in validate(document, CONTEXT) if found.severity is Severity.ERROR]
    if errors:
        event("refused")
        for found in errors:
            _assert_names_its_place(found, document)
        return
    event("published")
    world = World(1, PROFILES["calm"])
    with world.limits():
        run_id = world.trigger(world.publish(to_definition(canonical(document))), {"n": n})
        schedule = Schedule(world, [])
        schedule.drain()
        schedule.free()
    assert world.state(run_id).status.value in TERMINAL
    assert violations(world, final=True) == []


def _assert_names_its_place(found: Violation, document: Document) -> None:
    """A code, a sentence, and a field that starts with a step of the document or an edge of it."""
    assert re.fullmatch(r"[A-Z][A-Z_]+", found.code)
    assert len(found.message) > 10
    place = re.match(r"edges\[(\d+)\]", found.field)
    if place is not None:
        assert int(place[1]) < len(document["edges"])
    else:
        assert found.field.split(".")[0] in {step["ref"] for step in document["steps"]}
