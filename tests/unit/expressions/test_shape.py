"""Shapes: what is compiled once for many must say of each what compiling it alone says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ductor.expressions.analysis import _compiled, analyse
from ductor.expressions.shape import shape_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("TRIGGER.payload.n > 17", "TRIGGER.payload.n > 4"),
        ("STEPS.a.output.v == 1", "STEPS.b_2.output.v == 3"),
        ('TRIGGER.payload.kind == "red"', "TRIGGER.payload.kind == 'blue'"),
        ("VARS.one > 1", "VARS.other > 1"),
        ('TRIGGER.payload.kind != "it\'s"', 'TRIGGER.payload.kind != "y"'),
    ],
)
def test_what_differs_in_a_value_has_one_shape(one: str, other: str) -> None:
    first, second = shape_of(one), shape_of(other)
    assert first is not None
    assert second is not None
    assert first[0] == second[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("VARS.s.matches('(a+)+')", "VARS.s.matches('a')"),
        ('STEPS["a"].output', 'STEPS["b"].output'),
        ("TRIGGER.payload.n > 1", "TRIGGER.payload.n > 1.0"),
        ("TRIGGER.payload.n > 1", "TRIGGER.payload.n > 1u"),
        ("STEPS.a.output == STEPS.a.output", "STEPS.a.output == STEPS.b.output"),
        ("STEPS.size() > 1", "STEPS.count() > 1"),
        ("STEPS.in", "STEPS.a"),
        ("VARS.a == 12345678901234567890", "VARS.a == 1"),
    ],
)
def test_what_may_be_judged_differently_has_not(one: str, other: str) -> None:
    first, second = shape_of(one), shape_of(other)
    assert first is not None
    assert second is not None
    assert first[0] != second[0]


@pytest.mark.parametrize("source", ['VARS.a == "\\n"', "1 // 2", 'VARS.a == """x"""', "STEPS._ductor_0.output"])
def test_what_only_the_compiler_understands_has_none(source: str) -> None:
    assert shape_of(source) is None


def test_the_reads_name_the_steps_that_the_text_names() -> None:
    assert analyse("STEPS.a.output.v > 1 && STEPS.b.output.v > 2 && STEPS.a.status == 'x'").reads.steps == {"a", "b"}
    assert analyse("STEPS.c.output.v > 1 && STEPS.d.output.v > 2 && STEPS.c.status == 'y'").reads.steps == {"c", "d"}


@pytest.mark.parametrize(
    "source", ["1 in STEPS", "[STEPS].all(STEPS, STEPS.a > 1)", "VARS.x == 9 ? 7 : 'a'", "99", "7 +"]
)
@pytest.mark.parametrize("expect_bool", [True, False])
def test_it_says_what_compiling_alone_says(source: str, expect_bool: bool) -> None:
    assert analyse(source, expect_bool=expect_bool) == _compiled(source, expect_bool=expect_bool)


_ATOMS = st.sampled_from(
    [
        *("STEPS.a.output", "STEPS.b.output.n", 'STEPS["c"].status', "STEPS", "STEPS.in", "STEPS.size()", "STEPS .a"),
        *("TRIGGER.payload", "TRIGGER.payload.a", "VARS.b", "VARS.c()", "VARS.d{}", "CONTEXT.in", "x", "'a' in STEPS"),
        *("12", "3.5", "7u", "9223372036854775808", "0x1f", "1e3", "'x'", '"y"', "r'z'", "b'q'"),
    ]
)
_OPERATORS = st.sampled_from([" == ", "!=", " > ", " + ", " && ", " in ", ".", "[", " ? 1 : ", ", "])


@given(st.lists(st.tuples(_ATOMS, _OPERATORS), min_size=1, max_size=6), st.booleans())
def test_any_text_is_judged_as_if_compiled_alone(parts: list[tuple[str, str]], expect_bool: bool) -> None:
    source = "".join(atom + operator for atom, operator in parts) + "1"
    source += "]" * source.count("[")
    assert analyse(source, expect_bool=expect_bool) == _compiled(source, expect_bool=expect_bool)
