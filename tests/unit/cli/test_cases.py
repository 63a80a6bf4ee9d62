"""`ductor test`: what it finds, how it shows it, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from ductor.cli.main import app

FLOW = """
type: workflow_definition
definition:
  family_slug: flow
  steps: [{ref: greet, type: action, action: core.echo, args: {text: hello}}]
"""
TESTS = """
type: workflow_test
workflow: flow.yaml
cases:
  - name: says hello
    then: {output: {greet: {text: hello}}}
  - name: says goodbye
    then: {output: {greet: {text: goodbye}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "flow.yaml").write_text(FLOW)
    (tmp_path / "flow.test.yaml").write_text(TESTS)
    return tmp_path


def ductor(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def lines(result: Result) -> Sequence[str]:
    return [line.strip() for line in result.output.splitlines()]


def test_a_failure_shows_place_expectation_and_how_to_repeat_it(folder: Path) -> None:
    file = folder / "flow.test.yaml"

    result = ductor("test", file)

    assert result.exit_code == 1
    shown = lines(result)
    assert shown[0].startswith(f"{file}: 2 cases, FAILED")
    assert shown[1].startswith("FAIL says goodbye")
    assert shown[2:6] == [
        f"{file}:8: cases[1].then.output",
        'expected  {"greet":{"text":"goodbye"}}',
        'was       {"greet":{"text":"hello"}}',
        "greet.text: expected goodbye, was hello",
    ]
    assert f'repeat: ductor test {file} --filter "says goodbye"' in shown
    assert shown[-1].startswith("1 passed, 1 failed in 1 files (2 plays")


def test_a_filter_plays_only_what_it_names(folder: Path) -> None:
    result = ductor("test", folder, "--filter", "HELLO", "-v")

    assert (result.exit_code, lines(result)[1].startswith("ok   says hello")) == (0, True)
    assert ductor("test", folder, "--filter", "nothing").exit_code == 2


def test_crashes_and_seeds_are_asked_for(folder: Path) -> None:
    result = ductor("test", folder, "--filter", "hello", "--crash", "--seeds", "12", "--format", "json")

    case = json.loads(result.output)["files"][0]["cases"][0]
    assert (case["verdict"], case["plays"], case["crashes"] > 0) == ("passed", 13, True)
    assert ductor("test", folder, "--filter", "hello", "--crash", "--seed", "2").exit_code == 0


def test_json_holds_everything(folder: Path) -> None:
    result = ductor("test", folder, "--format", "json")

    shown = json.loads(result.output)
    assert (result.exit_code, shown["passed"]) == (1, False)
    first, second = shown["files"][0]["cases"]
    assert (first["verdict"], second["verdict"], second["findings"][0]["line"]) == ("passed", "failed", 8)


def test_junit_is_what_build_servers_read(folder: Path) -> None:
    (folder / "broken.test.yaml").write_text("type: workflow_test\n")

    suites = ElementTree.fromstring(ductor("test", folder, "--format", "junit").output)

    assert [(suite.get("tests"), suite.get("failures"), suite.get("errors")) for suite in suites] == [
        ("1", "0", "1"),
        ("2", "1", "0"),
    ]
    failures = suites.findall("./testsuite/testcase/failure")
    assert [failure.get("message") for failure in failures] == [f"{folder / 'flow.test.yaml'}:8: cases[1].then.output"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("type: workflow_test\nworkflow: none.yaml\ncases: [{name: a}]", "2: workflow"),
        ("type: workflow_test\nworkflow: flow.yaml\n", "1: cases: is required"),
        ("type: workflow_test\nworkflow: flow.yaml\ncases: [", "cannot be read"),
        ("type: workflow_test\nworkflow: flow.test.yaml\ncases: [{name: a}]", "flow"),
    ],
)
def test_a_file_that_cannot_be_used(folder: Path, text: str, told: str) -> None:
    (folder / "bad.test.yaml").write_text(text)

    result = ductor("test", folder / "bad.test.yaml")

    assert (result.exit_code, told in result.output) == ((2, True) if told != "flow" else (1, True))


def test_a_workflow_that_is_not_valid_fails_its_tests(folder: Path) -> None:
    (folder / "flow.yaml").write_text(FLOW.replace("core.echo", "core.eco"))

    result = ductor("test", folder)

    assert result.exit_code == 1
    assert f"{folder / 'flow.yaml'}: greet.action: no action 'core.eco' is registered" in result.output


def test_folders_and_patterns_stand_for_the_tests_in_them(folder: Path) -> None:
    assert ductor("test", folder / "*.yaml", "--filter", "hello").exit_code == 0
    assert ductor("workflow", "validate", folder).exit_code == 0
    assert ductor("workflow", "validate", folder / "*.yaml").exit_code == 0


def test_of_files_that_the_shell_has_listed_each_command_takes_its_own(folder: Path) -> None:
    listed = sorted(folder.glob("*.yaml"))

    assert ductor("test", *listed, "--filter", "hello").exit_code == 0
    assert ductor("workflow", "validate", *listed).exit_code == 0
    refused = ductor("workflow", "validate", folder / "flow.test.yaml")
    assert (refused.exit_code, "these are tests of workflows" in refused.output) == (2, True)


@pytest.mark.parametrize("names", [(), ("nowhere",), ("nowhere/*.yaml",)])
def test_names_that_lead_nowhere_are_a_wrong_command_line(names: tuple[str, ...]) -> None:
    assert ductor("test", *names).exit_code == 2


def test_a_text_that_is_not_utf_8_is_refused(folder: Path) -> None:
    (folder / "bad.test.yaml").write_bytes(b"type: workflow_test\nworkflow: \xff\n")

    assert ductor("test", folder / "bad.test.yaml").exit_code == 2


def test_the_schema_is_printed() -> None:
    assert json.loads(ductor("test", "--schema").output)["title"] == "CaseFile"
