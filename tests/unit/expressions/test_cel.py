"""What one expression evaluates to, what it refuses, and what it says that it reads."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ductor.expressions import ExpressionError, ExpressionSyntaxError, Reads, compile_cel

_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)


def evaluate(source: str, **bindings: Any) -> Any:
    return compile_cel(source).evaluate(bindings)


def same(a: Any, b: Any) -> bool:
    """Equality that tells 1, 1.0 and true apart at every depth."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


@given(_VALUES)
@settings(max_examples=150, deadline=None)
def test_json_survives_a_plain_path(value: Any) -> None:
    assert same(evaluate('STEPS["a"].output', STEPS={"a": {"output": value}}), value)


@given(_VALUES)
@settings(max_examples=150, deadline=None)
def test_json_survives_the_runtime(value: Any) -> None:
    assert same(evaluate('{"v": STEPS.a.output}', STEPS={"a": {"output": value}}), {"v": value})


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 9007199254740993])
def test_64_bit_integers_stay_exact_in_arithmetic(number: int) -> None:
    assert evaluate("[TRIGGER.n + 0]", TRIGGER={"n": number}) == [number]


@pytest.mark.parametrize(
    ("source", "trigger"),
    [
        ("TRIGGER.nope == 1", {}),
        ("TRIGGER.payload.nope", {"payload": {}}),
        ("TRIGGER.payload.nope", {"payload": 1}),
        ("TRIGGER[0]", []),
        ("9223372036854775807 + 1", {}),
        ("1 / 0", {}),
        ("[TRIGGER.nope]", {}),
        ('{"a": [TRIGGER.nope]}', {}),
        ("TRIGGER.n + 1", {"n": "x"}),
        ("0.0 / 0.0", {}),
        ("[1.0 / 0.0]", {}),
        ("{1: 2}", {}),
        ("type(1)", {}),
        ("TRIGGER.n", {"n": 2**64}),
        ("[TRIGGER.n]", {"n": 2**64}),
        ("TRIGGER.n", {"n": float("nan")}),
        ("[TRIGGER.n]", {"n": float("inf")}),
        ("[TRIGGER.n]", {"n": "\ud800"}),
        ('{"a": 1, "a": 2}', {}),
    ],
)
def test_what_has_no_value_is_an_expression_error(source: str, trigger: Any) -> None:
    with pytest.raises(ExpressionError) as raised:
        evaluate(source, TRIGGER=trigger)
    assert raised.value.code == "EXPRESSION_ERROR"
    assert source in raised.value.message


def test_a_string_that_looks_like_an_error_is_a_string() -> None:
    text = 'NOT_FOUND: Key not found in map : "a"'
    assert evaluate("[TRIGGER.s]", TRIGGER={"s": text}) == [text]


@pytest.mark.parametrize("value", ["a\0b", {"a\0": 1}, [["\0"]]])
def test_a_text_that_the_runtime_would_cut_is_refused(value: Any) -> None:
    assert evaluate("TRIGGER.v", TRIGGER={"v": value}) == value
    with pytest.raises(ExpressionError, match=r"U\+0000"):
        evaluate("[TRIGGER.v]", TRIGGER={"v": value})


def test_the_escape_of_that_character_is_ordinary_text() -> None:
    assert evaluate("[TRIGGER.v]", TRIGGER={"v": "\\u0000"}) == ["\\u0000"]


def test_an_unbound_root_is_named() -> None:
    with pytest.raises(ExpressionError, match="EVENT is not available"):
        evaluate("EVENT.payload.x == 1", TRIGGER={})


def test_the_expression_in_a_message_is_cut() -> None:
    with pytest.raises(ExpressionError) as raised:
        evaluate('TRIGGER.a == "' + "x" * 1000 + '"', TRIGGER={})
    assert len(raised.value.message) < 300


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('timestamp("2024-01-02T03:04:05.123456789Z")', "2024-01-02T03:04:05.123456789Z"),
        ('[duration("1.5s")]', ["1.5s"]),
        ('b"a\\xff"', "Yf8="),
        ("18446744073709551615u", 2**64 - 1),
    ],
)
def test_cel_types_that_json_lacks_have_one_form(source: str, expected: Any) -> None:
    assert evaluate(source) == expected


@pytest.mark.parametrize("value", [None, 0, 1, "true", "", [], {}])
def test_a_condition_that_is_not_boolean_is_neither_true_nor_false(value: Any) -> None:
    with pytest.raises(ExpressionError, match="must be true or false"):
        compile_cel("TRIGGER.v").evaluate_bool({"TRIGGER": {"v": value}})


def test_a_condition_is_true_or_false() -> None:
    program = compile_cel("TRIGGER.n > 1")
    assert [program.evaluate_bool({"TRIGGER": {"n": n}}) for n in (1, 2)] == [False, True]


@pytest.mark.parametrize("source", ["", "1 +", "(1", "'a", "TRIGER.x", "foo(1)", "STEPS.my-ref", "1 == 'a'"])
def test_what_does_not_compile_is_a_syntax_error(source: str) -> None:
    with pytest.raises(ExpressionSyntaxError) as raised:
        compile_cel(source)
    assert raised.value.code == "CEL_SYNTAX"


@pytest.mark.parametrize(
    ("source", "roots", "steps", "all_steps"),
    [
        ("1 == 1", "", "", False),
        ("TRIGGER.payload.a > VARS.limit", "TRIGGER VARS", "", False),
        ("STEPS.a.output.x", "STEPS", "a", False),
        ('STEPS["a-b"].output', "STEPS", "a-b", False),
        ("STEPS['a'].output + STEPS[r'b'].output", "STEPS", "a b", False),
        ("has(STEPS.a.output)", "STEPS", "a", False),
        ("has(STEPS.a)", "STEPS", "a", False),
        ('"a" in STEPS', "STEPS", "a", False),
        ("STEPS[ITEM.ref].output", "STEPS ITEM", "", True),
        ("STEPS.exists(k, k == 'a')", "STEPS", "", True),
        ("STEPS", "STEPS", "", True),
        ("size(STEPS) + STEPS.a.attempt", "STEPS", "a", True),
        ("'STEPS.a' == \"STEPS['b']\"", "", "", False),
        ("1 // STEPS.a", "", "", False),
        ("'''STEPS.a''' == 'x' || b'STEPS.b' == b''", "", "", False),
        ("TRIGGER.l.all(x, x.STEPS.a == 1)", "TRIGGER", "", False),
        ("TRIGGER.l.all(STEPS, STEPS.a == 1)", "TRIGGER", "", False),
        ("TRIGGER.l.all(STEPS, .STEPS.a == STEPS)", "TRIGGER STEPS", "a", False),
        ("STEPS.a-INDEX", "STEPS INDEX", "a", False),
    ],
)
def test_reads(source: str, roots: str, steps: str, all_steps: bool) -> None:
    expected = Reads(frozenset(roots.split()), frozenset(steps.split()), all_steps)
    assert compile_cel(source).reads == expected


def test_only_the_paths_that_are_read_reach_the_runtime() -> None:
    unusable = object()
    trigger = {"n": 2, "other": unusable}
    assert evaluate("TRIGGER.n > 1 && has(TRIGGER.n)", TRIGGER=trigger, VARS=unusable) is True


def test_presence_of_a_step() -> None:
    source = 'has(STEPS.a) && !has(STEPS.b) && "a" in STEPS && !("b" in STEPS)'
    assert evaluate(source, STEPS={"a": {}, "c": {}}) is True


def test_four_threads_get_their_own_results() -> None:
    program = compile_cel("TRIGGER.l.map(x, x + TRIGGER.n)")

    def work(n: int) -> bool:
        bindings = {"TRIGGER": {"l": list(range(20)), "n": n}}
        return all(program.evaluate(bindings) == [x + n for x in range(20)] for _ in range(100))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


def test_the_runtime_imports_no_publish_time_library() -> None:
    code = "import sys, ductor.expressions; print([m for m in ('celpy','lark','pydantic','yaml') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize(("step", "there"), [({"output": {"x": 1}}, True), ({}, False)])
def test_has_says_whether_and_not_what(step: dict[str, object], there: bool) -> None:
    assert compile_cel("has(STEPS.b.output)").evaluate({"STEPS": {"b": step}}) is there
