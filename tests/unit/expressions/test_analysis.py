"""What publication says about an expression."""

from __future__ import annotations

import pytest

from ductor.expressions.analysis import analyse


def codes(source: str, *, expect_bool: bool = False) -> list[str]:
    return [problem.code for problem in analyse(source, expect_bool=expect_bool).problems]


def test_a_good_expression_has_no_problem_and_says_what_it_reads() -> None:
    found = analyse("STEPS.a.output.x == TRIGGER.payload.x", expect_bool=True)
    assert found.problems == ()
    assert found.reads.steps == {"a"}


@pytest.mark.parametrize(("source", "nearest"), [
    ("TRIGER.payload", "TRIGGER"), ("STEP.a.output", "STEPS"), ("steps.a", "STEPS"), ("VAR.x == 1", "VARS"),
])  # fmt: skip
def test_an_unknown_root_names_the_nearest(source: str, nearest: str) -> None:
    (problem,) = analyse(source).problems
    assert problem.code == "CEL_UNKNOWN_ROOT"
    assert f"did you mean {nearest}?" in problem.message


def test_every_unknown_root_is_reported_once() -> None:
    assert codes("foo.a + foo.b + bar") == ["CEL_UNKNOWN_ROOT", "CEL_UNKNOWN_ROOT"]


@pytest.mark.parametrize(
    "source", ["TRIGGER.l.all(x, x > 0)", "TRIGGER.l.exists(STEPS, STEPS.a)", "int(TRIGGER.x) == 1"]
)
def test_macro_variables_and_functions_are_not_roots(source: str) -> None:
    assert codes(source) == []


def test_an_unknown_function_is_not_an_unknown_root() -> None:
    assert codes("foo(TRIGGER.x)") == ["CEL_SYNTAX"]


def test_a_reference_with_a_dash_needs_brackets() -> None:
    assert codes("STEPS.my-ref.output") == ["CEL_UNKNOWN_ROOT"]
    assert codes('STEPS["my-ref"].output') == []


@pytest.mark.parametrize("source", ["1 +", "", "'a", "a b"])
def test_syntax(source: str) -> None:
    assert codes(source) == ["CEL_SYNTAX"]


@pytest.mark.parametrize("source", ["(" * 3000 + ")" * 3000, "+".join(["1"] * 5000), "a" * 9000])
def test_too_complex(source: str) -> None:
    assert codes(source) == ["CEL_TOO_COMPLEX"]


@pytest.mark.parametrize("source", ["'yes'", "1 + 2", "[true]", "null", "size(TRIGGER.x)", "TRIGGER.x + 'a'"])
def test_a_condition_that_cannot_be_boolean(source: str) -> None:
    assert codes(source) == []
    assert codes(source, expect_bool=True) == ["CEL_TYPE"]


@pytest.mark.parametrize("source", ["true", "TRIGGER.x", "TRIGGER.x > 1", "TRIGGER.x ? true : TRIGGER.y"])
def test_a_condition_that_may_be_boolean(source: str) -> None:
    assert codes(source, expect_bool=True) == []
