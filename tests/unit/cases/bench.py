"""Plays a test file that stands in a test, on a small workflow that stands there too."""

from __future__ import annotations

import textwrap
from pathlib import Path

from ductor.bootstrap.local_settings import action_catalog
from ductor.testing.cases.results import CaseResult, FileResult
from ductor.testing.cases.runner import Options, run_file

ACTIONS = action_catalog()
ROOT = Path(__file__).parents[3]

FLOW = """
family_slug: flow
steps:
  - {ref: call, type: action, action: http.request, retry_max_attempts: 3, args: {url: "https://x.example.com/"}}
  - {ref: ask, type: approval, action: approval, args: {audience: {roles: [boss], users: [ada]}, timeout_ms: 259200000}}
  - {ref: rest, type: wait, args: {duration: 30d}}
  - {ref: told, type: wait_event, args: {event_name: told, correlation_key: k}}
  - {ref: end, type: dataflow, args: {operation: project, project: {done: "true"}}}
  - {ref: no, type: dataflow, args: {operation: project, project: {done: "false"}}}
edges:
  - {source_ref: call, target_ref: ask}
  - {source_ref: ask, target_ref: rest, type: approved}
  - {source_ref: ask, target_ref: no, type: rejected}
  - {source_ref: rest, target_ref: told}
  - {source_ref: told, target_ref: end}
"""
"""A call, a decision, a month, an event."""

SHORT = """
family_slug: short
steps:
  - {ref: call, type: action, action: http.request, retry_max_attempts: 3, args: {url: "https://x.example.com/"}}
"""


def run(cases: str, flow: str = FLOW, options: Options = Options(), **others: str) -> FileResult:  # noqa: B008 - frozen
    """The result of a file with these `cases` (and what else stands in it) for `flow`; `others` are further files."""
    files = {"flow.yaml": flow, **{f"{name}.yaml": text for name, text in others.items()}}
    text = f"type: workflow_test\nworkflow: flow.yaml\n{textwrap.dedent(cases)}"
    return run_file("flow.test.yaml", text, ACTIONS, options, lambda path: files[path.name])


def one(case: str, flow: str = FLOW, **others: str) -> CaseResult:
    """The result of a single case."""
    body = textwrap.indent(textwrap.dedent(case).strip(), "    ")
    result = run(f"cases:\n  - name: one\n{body}\n", flow, Options(), **others)
    assert result.findings == ()
    return result.cases[0]


def failed(case: str, flow: str = FLOW) -> dict[str, tuple[str, str]]:
    """What is wrong with a case: expected and actual, by the field after `cases[0].`."""
    return {
        finding.field.removeprefix("cases[0]."): (finding.expected, finding.actual)
        for finding in one(case, flow).findings
    }
