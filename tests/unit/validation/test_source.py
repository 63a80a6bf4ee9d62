"""Definition files: YAML that means what JSON means, envelopes, and texts that are refused."""

from __future__ import annotations

import pytest

from ductor.validation.source import read_source

ENVELOPE = "type: workflow_definition\ndefinition:\n  family_slug: x\n"


def _body(text: str) -> object:
    body, violations = read_source(text)
    assert violations == []
    return body


def test_the_envelope_and_the_bare_body_are_read() -> None:
    assert _body(ENVELOPE) == _body("family_slug: x") == {"family_slug": "x"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2030-01-01", "2030-01-01"),
        ("2030-01-01T00:00:00Z", "2030-01-01T00:00:00Z"),
        ("yes", "yes"),
        ("on", "on"),
        ("1:30", "1:30"),
        ("010", "010"),
        ("2s", "2s"),
        ("true", True),
        ("null", None),
        ("", None),
        ("-5", -5),
        ("9007199254740993", 9007199254740993),
        ("1.50", 1.5),
        ("1e3", 1000.0),
        ("1.", 1.0),
        ("STEPS.a.output", "STEPS.a.output"),
    ],
)
def test_plain_scalars_mean_what_a_person_expects(text: str, value: object) -> None:
    assert _body(f"x: {text}") == {"x": value}


def test_the_edges_of_a_condition_may_be_written_true_and_false() -> None:
    body = _body("edges:\n- {type: true}\n- {type: false}\n- {type: 'true'}\n- {type: FALSE}")
    assert body == {"edges": [{"type": "true"}, {"type": "false"}, {"type": "true"}, {"type": "false"}]}


def test_anchors_and_single_merges_work() -> None:
    assert _body("a: &x {k: 1}\nb: {<<: *x, m: 2}") == {"a": {"k": 1}, "b": {"k": 1, "m": 2}}


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2",
        "a: [",
        "a: {b: 1, b: 2}",
        "? [a, b]\n: 1",
        "a: !!python/object:os.system x",
        "a: &x {k: 1}\nb: {<<: [*x, *x]}",
        "[" * 100_000,
        "{a: " * 5_000,
        "a: 1\n--- \nb: 2",
        "\x00",
        "a: *nothing",
    ],
)
def test_texts_that_cannot_be_read_are_one_violation(text: str) -> None:
    body, violations = read_source(text)
    assert body is None
    assert [item.code for item in violations] == ["FIELD_INVALID"]


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": NaN}', '{"a": Infinity}', "[" * 100_000, "{", ""])
def test_json_is_read_strictly(text: str) -> None:
    body, violations = read_source(text, as_json=True)
    assert body is None
    assert [item.code for item in violations] == ["FIELD_INVALID"]


def test_an_envelope_of_another_type_is_named() -> None:
    _, violations = read_source("type: workflow\ndefinition: {family_slug: x}\nextra: 1")
    assert {(item.field, item.code) for item in violations} == {("type", "FIELD_INVALID"), ("extra", "FIELD_UNKNOWN")}


def test_an_envelope_without_a_definition_is_named() -> None:
    _, violations = read_source("type: workflow_definition")
    assert [(item.field, item.code) for item in violations] == [("definition", "FIELD_REQUIRED")]


def test_a_file_beyond_the_limit_is_not_read() -> None:
    _, violations = read_source("x" * 7_000_000)
    assert [item.code for item in violations] == ["DEFINITION_TOO_LARGE"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3", "cannot be read: line 3, column 1: 'a' stands twice"),
        ("a:\n\t- b", "cannot be read: line 2, column 1: while scanning for the next token, found character '\\t'"),
        ("a: 1\n---\nb: 2", "cannot be read: line 2, column 1: expected a single document in the stream, but found"),
        ("a: \0", "cannot be read: a character that YAML does not allow, at position 3"),
    ],
)
def test_what_cannot_be_read_has_its_place_in_the_file(text: str, said: str) -> None:
    (violation,) = read_source(text)[1]

    assert violation.message.startswith(said)
