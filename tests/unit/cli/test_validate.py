"""The offline check: every fault, its line, and the verdict."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.unit.cli.catalog import CONTEXT

from ductor.cli.failure import Exit, Failure
from ductor.cli.lines import Lines
from ductor.cli.sources import Source, collect
from ductor.cli.validate import Report, check

VALID = """\
type: workflow_definition
definition:
  family_slug: hello
  steps:
    - ref: greet
      type: action
      action: core.echo
"""


def checked(text: str, name: str = "flow.yaml") -> Report:
    return check(Source(name, text.encode()), CONTEXT)


def test_valid_file_is_valid_in_one_line() -> None:
    assert checked(VALID).as_text() == ["flow.yaml: valid"]


def test_each_fault_has_file_line_field_and_code() -> None:
    report = checked(VALID.replace("core.echo", "core.eco") + "      retry_max_attempts: 0\n")

    assert not report.valid
    assert report.as_text()[0] == "flow.yaml: invalid (2 errors)"
    assert [line.partition(" error: ")[0] for line in report.as_text()[1:]] == ["flow.yaml:7:", "flow.yaml:8:"]
    assert report.as_text()[1].endswith("[ACTION_UNKNOWN]")
    assert report.as_text()[2].endswith("[RETRY_INVALID]")


def test_what_only_a_server_knows_does_not_make_a_file_invalid() -> None:
    report = checked(VALID + "  environment: production\n")

    assert report.valid
    assert report.as_json()["unresolved"][0]["line"] == 8
    assert report.as_json()["errors"] == []


def test_text_that_is_no_yaml_is_one_error() -> None:
    report = checked("steps: [")

    assert not report.valid
    assert len(report.violations) == 1


def test_bytes_that_are_no_text_are_one_error() -> None:
    report = check(Source("flow.yaml", b"\xff\xfe"), CONTEXT)

    assert report.as_text()[1] == ("flow.yaml: error: is not UTF-8 text (byte 0); save it as UTF-8 [FIELD_INVALID]")


def test_json_body_of_the_api_is_accepted() -> None:
    text = '{"family_slug": "hello", "steps": [{"ref": "a", "type": "STEP_TYPE_ACTION", "action": "core.echo"}]}'

    assert checked(text, "flow.json").valid


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("greet", 5),
        ("greet.action", 7),
        ("greet.args.missing", 5),
        ("steps[0].type", 6),
        ("steps", 5),
        ("family_slug", 3),
        ("nothing.here", None),
        ("", None),
        ("edges[3]", None),
    ],
)
def test_fields_lead_to_lines(field: str, line: int | None) -> None:
    assert Lines(VALID).of(field) == line


@pytest.mark.parametrize("text", ["", "- a", "a: [", "\t", "[" * 5_000])
def test_odd_texts_have_no_lines_and_no_error(text: str) -> None:
    assert Lines(text).of("steps[0].ref") is None


def test_names_are_files_patterns_and_folders_each_once(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yml", "c.json", "notes.txt"):
        (tmp_path / name).write_text(name)

    found = collect([str(tmp_path / "b.yml"), str(tmp_path / "*.yaml"), str(tmp_path), str(tmp_path / "c.json")])

    assert [Path(source.name).name for source in found] == ["b.yml", "a.yaml", "c.json"]


def test_a_pipe_is_read_like_a_file() -> None:
    read, write = os.pipe()
    os.write(write, VALID.encode())
    os.close(write)

    (source,) = collect([f"/dev/fd/{read}"])

    os.close(read)
    assert source.data == VALID.encode()


def test_a_folder_without_definitions_is_told_from_one_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="holds no definition file"):
        collect([str(tmp_path)])


def test_name_that_matches_nothing_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="no such definition file") as raised:
        collect([str(tmp_path / "*.yaml")])

    assert raised.value.code is Exit.USAGE
