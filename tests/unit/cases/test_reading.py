"""Test files: every fault at once, with its line and what to do; and the schema that editors check them with."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from tests.unit.cases.bench import ROOT

from ductor.testing.cases.reading import UnreadableError, case_schema, read_cases
from ductor.validation.source import read_source

HEAD = "type: workflow_test\nworkflow: flow.yaml\n"


def faults(text: str) -> list[tuple[int | None, str, str]]:
    with pytest.raises(UnreadableError) as caught:
        read_cases(text)
    return [(fault.line, fault.field, fault.message) for fault in caught.value.faults]


def of_case(case: str) -> list[tuple[int | None, str, str]]:
    """Faults of a case of one line, which is the fourth of its file."""
    return faults(f"{HEAD}cases:\n  - {{name: one, {case}}}\n")


def test_all_faults_come_at_once_with_their_lines() -> None:
    text = (
        HEAD
        + "cases:\n  - name: one\n    when:\n      - advance: soon\n      - aprove: review\n    then:\n      stats: x\n"
    )

    assert [(line, field) for line, field, _ in faults(text)] == [
        (6, "cases[0].when[0].advance"),
        (7, "cases[0].when[1].aprove"),
        (9, "cases[0].then.stats"),
    ]


@pytest.mark.parametrize(
    ("case", "field", "message"),
    [
        ("given: {steps: {a: {error: X, output: {}}}}", "given.steps.a", "give `output` or `error`, not both"),
        (
            "given: {steps: {a: {output: 3}}}",
            "given.steps.a",
            "`output` must be an object: that is what actions return",
        ),
        ("given: {steps: {a: []}}", "given.steps.a", "List should have at least 1 item after validation, not 0"),
        ("given: {steps: {a: {delay: -1s}}}", "given.steps.a.delay", None),
        ("given: {steps: {a: {output: {v: '${{ 1 + }}'}}}}", "given.steps.a.output", None),
        ("given: {now: yesterday}", "given.now", "must be a moment with its zone, like 2026-03-01T09:00:00Z"),
        ("given: {now: '2026-03-01T09:00:00'}", "given.now", None),
        ("when: [{advance: 11000d}]", "when[0].advance", "is longer than ten years"),
        ("when: [dance]", "when[0]", "should be 'pause', 'resume', 'cancel', 'terminate' or 'redrive'"),
        ("when: [{run: x}]", "when[0]", None),
        ("when: [{advance: 1d, approve: a}]", "when[0]", None),
        ("when: [{publish: {event: a, matched: -1}}]", "when[0].publish.matched", None),
        ("then: {nodes: {a: {attempts: '2'}}}", "then.nodes.a.attempts", "should be a valid integer"),
        ("then: {check: 'RUN.x = 1'}", "then.check", None),
        ("faults: {crash: always}", "faults.crash", "should be 'never' or 'random'"),
        ("faults: {seeds: 0}", "faults.seeds", "should be greater than or equal to 1"),
        ("refused: X, then: {}", "", "a trigger that is refused starts no run: leave `when` and `then` out"),
    ],
)
def test_a_fault_says_where_and_what(case: str, field: str, message: str | None) -> None:
    found = of_case(case)

    assert [(line, at) for line, at, _ in found] == [(4, f"cases[0].{field}".rstrip("."))]
    assert message in (None, found[0][2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("type: workflow_definition\ndefinition: {steps: []}\n", "must be workflow_test: this is no test file"),
        ("[1, 2]", "must hold an object with type, workflow and cases"),
        ("", "must hold an object with type, workflow and cases"),
        (HEAD + "cases: []", "List should have at least 1 item after validation, not 0"),
        (HEAD + "cases: [{name: a}, {name: a}]", "two cases are named 'a'; give each case a name of its own"),
    ],
)
def test_what_is_no_test_file(text: str, message: str) -> None:
    assert [found[2] for found in faults(text)] == [message]


def test_yaml_that_cannot_be_read_has_a_line() -> None:
    assert [line for line, _, _ in faults(HEAD + "cases:\n  - {name: [}\n")] == [4]


@pytest.mark.parametrize(
    "text", ["a: &a [*a]", "{" * 200, "x: \x00", HEAD + "cases: &c [*c]", "? [1]: 2", "a: 1\na: 2"]
)
def test_odd_texts_are_refused(text: str) -> None:
    assert faults(text)


def validator() -> Any:
    schema = case_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.parametrize("path", sorted((ROOT / "events").glob("*.test.yaml")), ids=lambda path: path.name)
def test_the_schema_accepts_the_examples(path: Any) -> None:
    raw, faults_found = read_source(path.read_text())

    assert faults_found == []
    assert list(validator().iter_errors(raw)) == []


@pytest.mark.parametrize("case", ["when: [dance]", "then: {stats: x}", "given: {steps: {a: {eror: X}}}"])
def test_the_schema_refuses_what_the_reader_refuses(case: str) -> None:
    raw = yaml.safe_load(f"{HEAD}cases:\n  - {{name: one, {case}}}\n")

    assert list(validator().iter_errors(raw))
