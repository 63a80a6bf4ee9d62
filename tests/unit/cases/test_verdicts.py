"""Expectations: what holds passes, and each kind of expectation says what was expected and what was."""

from __future__ import annotations

import pytest
from tests.unit.cases.bench import SHORT, failed, one

from ductor.testing.cases.results import Verdict

OUTPUT = "given: {steps: {call: {output: {total: 3, lines: [{sku: a}, {sku: b}]}}}}\n"


def test_a_case_without_expectations_wants_a_run_that_completes() -> None:
    assert one(OUTPUT, SHORT).verdict is Verdict.PASSED
    assert failed("given: {steps: {call: {error: {code: X, retryable: false}}}}", SHORT) == {
        "then.status": ("completed", "failed (X: call: failed by the test)")
    }


def test_an_expected_error_wants_a_run_that_fails() -> None:
    assert one("given: {steps: {call: {error: X}}}\nthen: {error: X}", SHORT).verdict is Verdict.PASSED
    assert failed(OUTPUT + "then: {error: X}", SHORT) == {
        "then.status": ("failed or timed_out", "completed"),
        "then.error": ("X", "no error"),
    }


@pytest.mark.parametrize(
    "then",
    [
        "status: completed",
        "path: [call]",
        "path: [[call]]",
        "nodes: {call: completed}",
        "nodes: {call: {attempts: 1, output: {lines: [{sku: a}, {sku: b}], total: 3.0}}}",
        "nodes: {call: {output_contains: {total: 3}}}",
        "output: {call: {total: 3, lines: [{sku: a}, {sku: b}]}}",
        "output_contains: {call: {lines: [{sku: a}, {}]}}",
        "check: RUN.output.call.total == 3",
        "check: ['STEPS.call.status == \"completed\"', STEPS.call.attempt == 1]",
        "calls: [{step: call, action: http.request, args: {url: 'https://x.example.com/'}, times: 1}]",
        "calls: [{action: http.request, args_contain: {}}]",
        "calls: [{action: slack.post_message, times: 0}]",
        "compensation: null",
    ],
)
def test_what_holds_passes(then: str) -> None:
    assert one(f"{OUTPUT}then: {{{then}}}", SHORT).findings == ()


@pytest.mark.parametrize(
    ("then", "field", "expected", "actual"),
    [
        ("status: failed", "status", "failed", "completed"),
        ("path: []", "path", "no step", "call"),
        ("path: [call, more]", "path", "call → more", "call"),
        ("path: [[call, more]]", "path", "[call, more]", "call"),
        ("nodes: {call: failed}", "nodes.call", "failed", "completed"),
        ("nodes: {none: failed}", "nodes.none", "a step none", "no such step"),
        ("nodes: {call@3: failed}", "nodes.call@3", "a step call@3", "no such step"),
        ("nodes: {call: {attempts: 2}}", "nodes.call.attempts", "2", "1"),
        ("nodes: {call: {error: X}}", "nodes.call.error", "X", "no error"),
        ("nodes: {call: {output: {total: 3}}}", "nodes.call.output", '{"total":3}', None),
        ("nodes: {call: {output_contains: {total: '3'}}}", "nodes.call.output_contains", '{"total":"3"}', None),
        ("output: null", "output", "null", None),
        ("output_contains: {call: {lines: [{sku: a}]}}", "output_contains", None, None),
        ("context_contains: {a: 1}", "context_contains", '{"a":1}', None),
        ("check: RUN.output.call.total", "check[0]", "RUN.output.call.total", "3"),
        ("check: RUN.output.nope == 1", "check[0]", "RUN.output.nope == 1", None),
        ("calls: [{step: call, times: 2}]", "calls[0]", "of step call, 2 times with these arguments", "1 times"),
        ("calls: [{step: call, args_contain: {url: x}}]", "calls[0]", None, "0 times"),
        ("calls: [{action: slack.post_message}]", "calls[0]", None, "0 times"),
        ("compensation: {}", "compensation", "a compensation", "none was started"),
        ("children: {call: {}}", "children.call", "a child run of call", "none was started"),
        ("runs: {other: {}}", "runs.other", "a run that a moment started", "started were: none"),
    ],
)
def test_what_does_not_hold_says_so(then: str, field: str, expected: str | None, actual: str | None) -> None:
    found = failed(f"{OUTPUT}then: {{{then}}}", SHORT)

    assert list(found) == [f"then.{field}"]
    assert expected in (None, found[f"then.{field}"][0])
    assert actual in (None, found[f"then.{field}"][1])


def test_a_difference_names_the_place_in_the_value() -> None:
    result = one(OUTPUT + "then: {output: {call: {total: true, lines: [{sku: a}, {sku: c}], tax: 1}}}", SHORT)

    assert result.findings[0].details == (
        "call.total: expected true, was 3",
        "call.lines[1].sku: expected c, was b",
        "call.tax: expected 1, is missing",
    )


def test_a_failure_leads_to_its_line_and_shows_the_run() -> None:
    result = one("given: {steps: {call: {output: {}}}}\nwhen:\n- advance: 1d\n- expect: {nodes: {rest: waiting}}")

    places = [(finding.field.removeprefix("cases[0]."), finding.line) for finding in result.findings]
    assert (result.verdict, places) == (Verdict.FAILED, [("then.status", 4), ("when[1].expect.nodes.rest", 8)])
    assert result.story[0] == "run: failed (APPROVAL_TIMEOUT: ask: nobody decided within 259200000 ms)"
    assert result.story[1:4] == (
        "  call: completed",
        "  ask: failed (APPROVAL_TIMEOUT: nobody decided within 259200000 ms)",
        "  rest: pending",
    )


def test_steps_that_nobody_began_are_not_on_the_path() -> None:
    rejected = "given: {steps: {call: {}}}\nwhen: [{reject: ask}]\nthen: {path: [call, ask, no]}"

    assert one(rejected).findings == ()
