"""The OpenAPI document: complete, true to its own schemas, and a page that loads nothing from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.api.world import ApiWorld

Document = dict[str, Any]


@pytest.fixture
def document(world: ApiWorld) -> Document:
    found: Document = world.call("GET", "/openapi.json").json
    return found


def operations(document: Document) -> Iterator[tuple[str, Document]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def faults(content: Document, document: Document) -> list[str]:
    schema = {**content["schema"], "components": document["components"]}
    return [error.message for error in Draft202012Validator(schema).iter_errors(content["example"])]


def test_every_example_of_a_body_fits_its_schema(document: Document) -> None:
    bodies = {
        name: faults(operation["requestBody"]["content"]["application/json"], document)
        for name, operation in operations(document)
        if "requestBody" in operation
    }
    assert len(bodies) > 10
    assert {name: found for name, found in bodies.items() if found} == {}


def test_no_example_of_a_body_is_refused_as_an_invalid_request(world: ApiWorld, document: Document) -> None:
    """Of things that are not there: what is left to refuse is that."""
    refused = {}
    for name, operation in operations(document):
        if "requestBody" in operation:
            method, path = name.split(" ")
            example = operation["requestBody"]["content"]["application/json"]["example"]
            answer = world.call(method, re.sub(r"\{\w+\}", "x1", path), example)
            refused[name] = answer.text if answer.status == 400 else ""
    assert {name: text for name, text in refused.items() if text} == {}


def test_every_example_of_an_answer_fits_its_schema(document: Document) -> None:
    answers = {
        f"{name} {status}": faults(content, document)
        for name, operation in operations(document)
        for status, answer in operation["responses"].items()
        for content in answer.get("content", {}).values()
        if "schema" in content
    }
    assert {name: found for name, found in answers.items() if found} == {}


def test_every_route_with_a_key_names_its_refusals(document: Document) -> None:
    for name, operation in operations(document):
        if "security" in operation:
            assert {"400", "401", "403", "429", "503"} <= set(operation["responses"]), name
            assert any(parameter["name"] == "X-Tenant-ID" for parameter in operation["parameters"]), name
        if "requestBody" in operation:
            assert {"413", "415"} <= set(operation["responses"]), name


def test_what_a_query_names_and_is_not_there_is_answered_as_documented(world: ApiWorld, document: Document) -> None:
    asked = {}
    for name, operation in operations(document):
        method, path = name.split(" ")
        named = [
            one["name"] for one in operation["parameters"] if one["in"] == "query" and one["name"] == "environment"
        ]
        if method in ("GET", "DELETE") and named:
            answer = world.call(method, re.sub(r"\{\w+\}", "x1", path), query="environment=nowhere")
            asked[name] = str(answer.status) in operation["responses"]
    assert len(asked) > 5
    assert set(asked.values()) == {True}, asked


def test_every_refusal_has_an_example_of_its_shape(document: Document) -> None:
    for status, answer in document["components"]["responses"].items():
        content = answer["content"]["application/json"]
        assert faults(content, document) == [], status
        assert content["example"]["errors"], status


def test_operations_have_ids_of_their_own(document: Document) -> None:
    ids = [operation["operationId"] for _, operation in operations(document)]
    assert len(ids) == len(set(ids))


def test_every_reference_leads_somewhere(document: Document) -> None:
    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value["$ref"]
            for item in value.values():
                yield from references(item)
        elif isinstance(value, list):
            for item in value:
                yield from references(item)

    for reference in references(document["paths"]):
        place: Any = document
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]


def test_the_page_loads_nothing_from_elsewhere(world: ApiWorld) -> None:
    page = world.call("GET", "/docs").text
    markup = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", page, flags=re.DOTALL)
    assert "src=" not in page.split("</style>")[1].split("<script>")[0]
    assert "http" not in markup
    assert not re.search(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=", markup)
