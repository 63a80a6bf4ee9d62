"""What templates render, where expressions end, and what is never evaluated twice."""

from __future__ import annotations

from typing import Any

import pytest

from ductor.expressions import ExpressionError, ExpressionSyntaxError, Reads, compile_template

BINDINGS = {"TRIGGER": {"n": 7, "s": "text", "t": True, "z": None, "f": 1.5, "l": [1, "a"], "m": {"k": 1}}}


@pytest.mark.parametrize(("key", "text"), [
    ("n", "7"), ("s", "text"), ("t", "true"), ("z", "null"), ("f", "1.5"), ("l", '[1,"a"]'), ("m", '{"k":1}'),
])  # fmt: skip
def test_alone_it_keeps_its_type_and_in_text_it_is_json(key: str, text: str) -> None:
    assert compile_template("${{ TRIGGER." + key + " }}").render(BINDINGS) == BINDINGS["TRIGGER"][key]
    assert compile_template("<${{TRIGGER." + key + "}}>").render(BINDINGS) == f"<{text}>"


@pytest.mark.parametrize(("template", "expected"), [
    ("$${{ TRIGGER.n }}", "${{ TRIGGER.n }}"),
    ("a $${{ b ${{ TRIGGER.n }}", "a ${{ b 7"),
    (" ${{ TRIGGER.n }}", " 7"),
    ("${{ TRIGGER.n }}${{ TRIGGER.n }}", "77"),
    ("${{ '}}' }}", "}}"),
    ('${{ "a\\"}}" }}', 'a"}}'),
    ("${{ r'\\d' + '}}' }}", "\\d}}"),
    ("${{ '''it's }} ''' }}", "it's }} "),
    ("${{ {'a': {'b': 1}}}}", {"a": {"b": 1}}),
    ("${{ {'a': {'b': 1}}.a.b }}!", "1!"),
    ("${{ 1 // }}\n + 1 }}", 2),
    ("a }} b", "a }} b"),
    ("$ {{ x }}", "$ {{ x }}"),
    ("", ""),
])  # fmt: skip
def test_where_an_expression_starts_and_ends(template: str, expected: Any) -> None:
    assert compile_template(template).render(BINDINGS) == expected


@pytest.mark.parametrize("template", ["${{", "a ${{ TRIGGER.n", "${{ }}", "${{ {'a': 1 }}"])
def test_an_unclosed_or_empty_expression_is_refused(template: str) -> None:
    with pytest.raises(ExpressionSyntaxError) as raised:
        compile_template({"a": [template]})
    assert raised.value.code == "TEMPLATE_SYNTAX"
    assert "a[0]" in raised.value.message


def test_a_fault_inside_keeps_its_own_code() -> None:
    with pytest.raises(ExpressionSyntaxError) as raised:
        compile_template("${{ 1 + }}")
    assert raised.value.code == "CEL_SYNTAX"


@pytest.mark.parametrize("template", ["${{ TRIGGER.s }}", "x${{ TRIGGER.s }}", ["${{ [TRIGGER.s] }}"]])
def test_a_result_is_never_evaluated_again(template: Any) -> None:
    rendered = compile_template(template).render({"TRIGGER": {"s": "${{ 1 + 1 }}"}})
    assert "${{ 1 + 1 }}" in str(rendered)


def test_structure_keys_and_paths() -> None:
    template = compile_template({"${{ k }}": 1, "a": [{"b": "${{ TRIGGER.n }}"}, "x ${{ STEPS.s.output }}"], "c": None})
    assert list(template.paths()) == [("a[0].b", "TRIGGER.n"), ("a[1]", "STEPS.s.output")]
    assert template.reads == Reads(frozenset({"TRIGGER", "STEPS"}), frozenset({"s"}), False)
    rendered = template.render({**BINDINGS, "STEPS": {"s": {"output": 1}}})
    assert rendered == {"${{ k }}": 1, "a": [{"b": 7}, "x 1"], "c": None}


def test_a_constant_is_returned_as_it_is() -> None:
    value = {"a": [1, {"b": "text"}]}
    template = compile_template(value)
    assert template.constant
    assert template.render({}) is value


def test_an_escape_alone_is_constant_but_not_the_same_text() -> None:
    template = compile_template({"a": "$${{ x }}"})
    assert template.render({}) == {"a": "${{ x }}"}


def test_a_failing_expression_fails_the_whole() -> None:
    with pytest.raises(ExpressionError, match="Key not found"):
        compile_template({"a": 1, "b": "x ${{ TRIGGER.nope }}"}).render(BINDINGS)


def test_scanning_is_linear() -> None:
    with pytest.raises(ExpressionSyntaxError):
        compile_template("${{ '" * 20_000)
