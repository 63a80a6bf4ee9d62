"""The examples and the documentation: every definition in them is valid, every command in them exists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from ductor.bootstrap.local_settings import action_catalog
from ductor.cli.main import app
from ductor.cli.sources import Source
from ductor.cli.validate import check
from ductor.steps.registry import STEP_SPECS
from ductor.validation.context import Context
from ductor.validation.source import CASE_SUFFIXES

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted(path for path in (ROOT / "events").glob("*.yaml") if not path.name.endswith(CASE_SUFFIXES))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CONTEXT = Context(catalog=action_catalog(), now=1_767_225_600_000)
RUNNER = CliRunner()

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in _BLOCK.findall(page.read_text()) if kind == language]


def commands() -> Iterator[tuple[str, str]]:
    """Each line of a shell block, or of inline code, that calls `ductor`."""
    for page in PAGES:
        text = page.read_text()
        lines = [line for block in blocks(page, "") for line in block.splitlines()]
        lines += re.findall(r"`(ductor [^`\n]+)`", text)
        for line in lines:
            found = re.search(r"(?:^|\s)(ductor [a-z].*)", line)
            if found and not line.startswith(("error", " ")):
                yield page.name, found[1]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_valid_without_warnings(path: Path) -> None:
    report = check(Source(path.name, path.read_bytes()), CONTEXT)

    assert report.valid, report.as_text()
    assert report.as_json()["warnings"] == []


def test_there_is_an_example_of_every_step_type_that_runs() -> None:
    types = {step["type"] for path in EXAMPLES for step in yaml.safe_load(path.read_text())["definition"]["steps"]}

    assert types == {spec.type.value for spec in STEP_SPECS.values() if spec.executable}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_definitions_in_the_pages_are_valid(page: Path) -> None:
    for text in blocks(page, "yaml"):
        if text.startswith("type: workflow_definition"):
            report = check(Source(page.name, text.encode()), CONTEXT)
            assert report.valid, report.as_text()


def test_getting_started_shows_the_example_as_it_is() -> None:
    shown = blocks(ROOT / "docs" / "getting-started.md", "yaml")[0]
    example = (ROOT / "events" / "hello_world.yaml").read_text()

    assert yaml.safe_load(shown) == yaml.safe_load(example)


@pytest.mark.parametrize(("page", "command"), sorted(set(commands())))
def test_commands_in_the_pages_exist(page: str, command: str) -> None:
    words = [word for word in command.split() if re.fullmatch(r"[a-z]+", word)][1:3]
    depth = 2 if words and words[0] in ("runs", "workflow") else 1

    assert RUNNER.invoke(app, [*words[:depth], "--help"]).exit_code == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_pages_and_headings(page: Path) -> None:
    for target, anchor in _LINK.findall(page.read_text()):
        if target.startswith("http"):
            continue
        file = (page.parent / target) if target else page
        assert file.exists(), target
        if anchor:
            assert anchor[1:] in headings(file), f"{target}{anchor}"


def headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_readme_and_docs_name_only_files_that_exist(page: Path) -> None:
    for name in re.findall(r"`((?:events|docs|tests)/[\w./]+)`", page.read_text()):
        assert (ROOT / name).exists(), name


def test_readme_shows_two_make_commands() -> None:
    assert set(re.findall(r"make \w+", (ROOT / "README.md").read_text())) == {"make run", "make test"}


def test_the_schema_in_the_docs_is_the_one_that_the_command_prints() -> None:
    printed = RUNNER.invoke(app, ["workflow", "schema"]).output

    assert (ROOT / "docs" / "workflow.schema.json").read_text() == printed


def test_the_schema_accepts_the_examples() -> None:
    schema = json.loads((ROOT / "docs" / "workflow.schema.json").read_text())
    validator = Draft202012Validator(schema)

    for path in EXAMPLES:
        assert list(validator.iter_errors(yaml.safe_load(path.read_text()))) == [], path.name
