"""What may be published can be run: whichever value of a valid document is replaced, it is refused or compiles."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.validation.samples import Doc, doc, echo, edge, errors, found

from ductor.engine.graph import compile_graph
from ductor.steps.behaviours import BEHAVIOURS
from ductor.validation.document import to_definition
from ductor.validation.validator import refuses

Path = tuple[str | int, ...]

WHOLE: Doc = doc(
    {"ref": "large", "type": "condition", "args": {"expr": "TRIGGER.payload.n > 3"}},
    echo("call", args={"n": "${{ TRIGGER.payload.n }}"}, condition="true", effects={"context": {"k": "1"}}),
    {"ref": "each", "type": "scatter", "args": {"items_expr": "TRIGGER.payload.items"}},
    echo("one"),
    {"ref": "all", "type": "gather", "args": {"output_expr": "STEPS.one.output"}},
    echo("other"),
    {"ref": "first", "type": "race", "args": {}},
    edges=[
        edge("large", "call", type="true", condition="true"),
        edge("call", "each"),
        edge("each", "one"),
        edge("one", "all"),
        edge("all", "first"),
        edge("other", "first"),
    ],
    checkpoints=[{"name": "called", "step_ref": "call", "output": "${{ STEPS.call.output }}"}],
    hooks={"on_completed": {"action": "core.echo", "args": {"x": 1}}},
    concurrency={"key": '"all"', "limit": 1},
    triggers=[{"patterns": ["a.b"], "condition": "true"}],
    output="${{ STEPS.all.output }}",
)
ODD: tuple[Any, ...] = ("", " ", "x", None, [], {}, 0)


def _places(value: Any, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in below:
        yield from _places(inner, (*path, key))


def _with(path: Path, value: Any) -> Doc:
    changed: Any = copy.deepcopy(WHOLE)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return dict(changed)


def test_the_document_itself_is_valid() -> None:
    assert found(WHOLE) == []


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_what_passes_compiles(odd: Any) -> None:
    for path in _places(WHOLE):
        changed = _with(path, odd)
        if not refuses(found(changed)):
            compile_graph(to_definition(changed), BEHAVIOURS)


@pytest.mark.parametrize("end", ["source_ref", "target_ref"])
def test_an_edge_with_an_empty_end_is_refused(end: str) -> None:
    assert errors(_with(("edges", 1, end), "")) == {(f"edges[1].{end}", "FIELD_INVALID")}
