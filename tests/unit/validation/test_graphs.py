"""Random graphs: valid ones pass, and one injected fault is the one that is named."""

from __future__ import annotations

import random
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.validation.samples import Doc, doc, echo, edge, errors, found


@st.composite
def graphs(draw: st.DrawFn) -> Doc:
    """A graph whose edges lead from earlier to later steps, in shuffled order of definition, with reads along edges."""
    size = draw(st.integers(2, 12))
    pairs = draw(
        st.lists(
            st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(lambda pair: pair[0] < pair[1]),
            unique=True,
            min_size=1,
            max_size=30,
        )
    )
    steps = [echo(f"s{index}", args={}) for index in range(size)]
    for source, target in pairs:
        steps[target]["args"][f"from{source}"] = f"${{{{ STEPS.s{source}.output }}}}"
    draw(st.randoms(use_true_random=False)).shuffle(steps)
    return doc(*steps, edges=[edge(f"s{source}", f"s{target}") for source, target in pairs])


@given(graphs())
def test_every_acyclic_graph_is_valid(document: Doc) -> None:
    assert found(document) == []


def _close_a_cycle(document: Doc) -> str:
    first = document["edges"][0]
    document["edges"].append(edge(first["target_ref"], first["source_ref"], type="done"))
    return "GRAPH_CYCLE"


def _repeat_an_edge(document: Doc) -> str:
    document["edges"].append(dict(document["edges"][0]))
    return "EDGE_DUPLICATE"


def _lose_an_endpoint(document: Doc) -> str:
    document["edges"].append(edge("s0", "elsewhere"))
    return "EDGE_ENDPOINT_UNKNOWN"


def _mistype_an_edge(document: Doc) -> str:
    first = document["edges"][0]
    document["edges"].append(edge(first["source_ref"], first["target_ref"], type="approved"))
    return "EDGE_TYPE_INVALID"


def _read_backwards(document: Doc) -> str:
    first = document["edges"][0]
    step = next(step for step in document["steps"] if step["ref"] == first["source_ref"])
    step["condition"] = f"STEPS.{first['target_ref']}.status == 'completed'"
    return "CEL_STEP_NOT_UPSTREAM"


def _read_nobody(document: Doc) -> str:
    document["steps"][0]["condition"] = "STEPS['nobody'].status == 'completed'"
    return "CEL_UNKNOWN_STEP"


def _use_a_ref_twice(document: Doc) -> str:
    document["steps"].append(echo(document["steps"][0]["ref"].upper()))
    return "STEP_REF_DUPLICATE"


FAULTS: list[Callable[[Doc], str]] = [
    _close_a_cycle,
    _repeat_an_edge,
    _lose_an_endpoint,
    _mistype_an_edge,
    _read_backwards,
    _read_nobody,
    _use_a_ref_twice,
]


@given(graphs(), st.sampled_from(FAULTS))
def test_one_fault_in_a_valid_graph_is_the_one_that_is_named(document: Doc, inject: Callable[[Doc], str]) -> None:
    expected = inject(document)
    assert {code for _, code in errors(document)} == {expected}


@given(st.integers(1, 40), st.randoms(use_true_random=False))
def test_a_cycle_is_named_in_the_order_of_its_edges(length: int, chance: random.Random) -> None:
    refs = [f"s{index}" for index in range(length)]
    edges = [edge(one, refs[(index + 1) % length]) for index, one in enumerate(refs)]
    chance.shuffle(edges)
    document = doc(*map(echo, refs), echo("tail"), edges=[*edges, edge("s0", "tail", type="done")])
    message = next(item.message for item in found(document) if item.code == "GRAPH_CYCLE")
    assert " -> ".join([*refs, "s0"]) in message


def test_each_of_two_cycles_is_named() -> None:
    steps = [echo(ref) for ref in "abcd"]
    edges = [edge("a", "b"), edge("b", "a"), edge("c", "d"), edge("d", "c")]
    assert errors(doc(*steps, edges=edges)) == {("a", "GRAPH_CYCLE"), ("c", "GRAPH_CYCLE")}


def test_what_follows_a_step_that_never_runs_never_runs_either() -> None:
    document = doc(echo("a", condition="false"), echo("b"), edges=[edge("a", "b")])
    assert [(item.field, item.code, item.severity.value) for item in found(document)] == [
        ("a", "STEP_UNREACHABLE", "warning"),
        ("b", "STEP_UNREACHABLE", "warning"),
    ]


def test_a_join_of_both_arms_of_a_condition_never_runs() -> None:
    route = {"ref": "c", "type": "condition", "args": {"expr": "TRIGGER.payload.x"}}
    edges = [edge("c", "a", type="true"), edge("c", "b", type="false"), edge("c", "j", type="true")]
    both = [*edges, edge("c", "j", type="false")]
    steps = [route, echo("a"), echo("b")]
    assert ("j", "STEP_UNREACHABLE") in {
        (item.field, item.code) for item in found(doc(*steps, echo("j", join="all"), edges=both))
    }
    assert found(doc(*steps, echo("j"), edges=both)) == []
