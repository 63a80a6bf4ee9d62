"""The texts of definitions: JSON whose every value has a place, YAML that the command line reads back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Page
from tests.console.conftest import Shop
from tests.e2e.server import publish

from ductor.validation.source import read_source

pytestmark = pytest.mark.browser

SAMPLES: Final = sorted(path for path in Path("events").glob("*.yaml") if not path.name.endswith(".test.yaml"))


@pytest.fixture(scope="module")
def page(browser: Browser, counter: Shop) -> Iterator[Page]:
    """One page for all: what is tested here only computes."""
    opened = browser.new_page()
    opened.goto(counter.url)
    yield opened
    opened.close()


def run(page: Page, module: str, code: str, given: Any = None) -> Any:
    return page.evaluate(f"async (given) => {{ const m = await import('./js/definitions/{module}'); {code} }}", given)


def test_every_sample_survives_json_and_yaml(page: Page) -> None:
    documents = [read_source(path.read_text(), as_json=False)[0] for path in SAMPLES]
    code = "return given.map((one) => [m.toJson(one), m.toYaml({type: 'workflow_definition', definition: one})]);"
    for document, (as_json, as_yaml) in zip(documents, run(page, "writing.js", code, documents), strict=True):
        assert json.loads(as_json) == document
        again, faults = read_source(as_yaml, as_json=False)
        assert (again, faults) == (document, [])


@pytest.mark.parametrize(
    "value",
    [
        {"a": "yes", "b": "12:30", "c": "null", "d": "", "e": " x ", "f": "a: b", "g": "#", "h": "- x", "i": "1e3"},
        {"text": 'two\nlines\t"quoted" \\ ${{ x }}', "unicode": "\u2028 ä 😀", "key with: colon": 1, "no": True},
        {
            "empty": [],
            "none": {},
            "deep": [[1, [2]], [{"a": [{}]}]],
            "null": None,
            "float": 1.5,
            "big": 9007199254740991,
        },
    ],
)
def test_yaml_keeps_what_yaml_likes_to_change(page: Page, value: dict[str, Any]) -> None:
    document = {"family_slug": "x", "variables": value}
    code = "return m.toYaml({type: 'workflow_definition', definition: given});"
    again, faults = read_source(run(page, "writing.js", code, document), as_json=False)
    assert (again, faults) == (document, [])


TEXT: Final = """{
  "steps": [
    { "ref": "first", "args": { "a.b": [1, {"c": "x"}] } },
    { "id": "second", "type": "wait" }
  ],
  "edges": [{ "source_ref": "first", "type": "oops" }],
  "schedule": { "cron": "* *" }
}"""


@pytest.mark.parametrize(
    ("field", "found"),
    [
        ("first.args", '"args": { "a.b": [1, {"c": "x"}] }'),
        ("second.type", '"type": "wait"'),
        ("second.args.duration", '{ "id": "second", "type": "wait" }'),
        ("edges[0].type", '"type": "oops"'),
        ("schedule.cron", '"cron": "* *"'),
        ("steps[1]", '{ "id": "second", "type": "wait" }'),
        ("title", TEXT),
    ],
)
def test_a_fault_leads_to_its_place(page: Page, field: str, found: str) -> None:
    code = "const place = m.placeOf(m.readPlaces(given[0]), given[1]); return given[0].slice(place.start, place.end);"
    assert run(page, "positions.js", code, [TEXT, field]) == found


@pytest.mark.parametrize(
    ("text", "offset", "words"),
    [
        ("", 0, "The text is empty"),
        ('{"a": 1,}', 8, "A comma too many"),
        ('{"a": 1 "b": 2}', 8, "is missing before this"),
        ('{"a" 1}', 5, "A colon is missing"),
        ("{a: 1}", 1, "A name in double quotes"),
        ("{'a': 1}", 1, "A name in double quotes"),
        ('{"a": yes}', 6, "yes is no JSON value"),
        ('{"a": "open\n}', 6, "no closing quote"),
        ('{"a": [1, 2}', 11, 'A comma or "]" is missing'),
        ('{"a": [1, 2', 6, "never closed"),
        ("{} {}", 3, "after the end"),
        ('{"a": 1, "a": 2}', 9, "stands twice"),
        ('{"a": }', 6, "A value is missing"),
        ('{"a": 01}', 6, "01 is no JSON value"),
        ('{"a": "\\q"}', 6, "an escape that JSON does not know"),
    ],
)
def test_what_is_no_json_is_said_where_it_is(page: Page, text: str, offset: int, words: str) -> None:
    code = "try { m.readPlaces(given); } catch (error) { return [error.name, error.offset, error.message]; }"
    name, at, message = run(page, "positions.js", code, text)
    assert (name, at) == ("JsonFault", offset)
    assert words in message


def test_whatever_json_takes_has_places_and_nothing_else(page: Page) -> None:
    values = [
        "0",
        "-1.5e+3",
        '"\\u00e4\\n"',
        "[]",
        "{}",
        ' [1 , {"": null}] ',
        "true",
        '{"__proto__": 1, "constructor": []}',
    ]
    code = "return given.map((text) => { JSON.parse(text); return m.readPlaces(text).start; });"
    assert run(page, "positions.js", code, values) == [0, 0, 0, 0, 0, 1, 0, 0]


def test_an_edit_says_only_what_changed(page: Page) -> None:
    before = {"title": "a", "tags": ["x"], "steps": [{"ref": "a"}], "schedule": {"rate": "5m"}}
    after = {"title": "b", "tags": ["x"], "steps": [{"ref": "a"}], "output": 1}
    changes = run(page, "document.js", "return m.changedFields(given[0], given[1]);", [before, after])
    assert changes == {"title": "b", "schedule": None, "output": 1}


def test_an_input_to_begin_with_comes_from_the_schema(page: Page) -> None:
    schema = {
        "type": "object",
        "required": ["amount", "who", "kind", "lines", "any"],
        "properties": {
            "amount": {"type": "integer", "minimum": 5},
            "who": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
            "kind": {"enum": ["daily", "weekly"]},
            "lines": {"type": ["array", "null"]},
            "optional": {"type": "string"},
        },
    }
    code = "return given.map((one) => m.exampleOf(one));"
    examples = run(page, "example_input.js", code, [schema, None, True, {"properties": {}}, {"$ref": "#"}])
    full = {"amount": 5, "who": {"name": ""}, "kind": "daily", "lines": [], "any": None}
    assert examples == [full, {}, {}, {}, {}]


def test_every_template_can_be_published_as_it_stands(page: Page, counter: Shop) -> None:
    templates = run(page, "templates.js", "return m.TEMPLATES;")
    assert len(templates) == 6
    for template in templates:
        slug = f"{template['slug']}_{uuid4().hex[:8]}"
        version = publish(counter.client, {"family_slug": slug, **template["document"]})
        found = counter.client.get(f"/api/workflow-definitions/{version}").json()["data"]
        assert (found["version"], found["family_slug"]) == (1, slug)
