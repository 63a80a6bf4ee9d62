"""The JSON Schema for editors agrees with the validator on the shape of documents."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.unit.validation.references import CONNECTOR_YAML, HELLO_JSON, HELLO_YAML, REVIEW_JSON
from tests.unit.validation.samples import doc, echo

from ductor.model.enums import StepType
from ductor.validation.schema import document_schema
from ductor.validation.source import read_source

SCHEMA = document_schema()


def _valid(document: Any) -> bool:
    return bool(Draft202012Validator(SCHEMA).is_valid(document))


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("text", [HELLO_YAML, HELLO_JSON, REVIEW_JSON, CONNECTOR_YAML])
def test_the_guides_samples_fit(text: str) -> None:
    body, _ = read_source(text)
    assert _valid(body)
    assert _valid({"type": "workflow_definition", "definition": body})


@pytest.mark.parametrize("step_type", list(StepType))
def test_both_spellings_of_every_type_fit(step_type: StepType) -> None:
    allowed = SCHEMA["$defs"]["step"]["properties"]["type"]["enum"]
    assert {step_type.value, step_type.wire} <= set(allowed)


@pytest.mark.parametrize(
    "document",
    [
        doc(colour="red"),
        doc(echo(retry_max_attempts=0)),
        doc(echo(type="nonsense")),
        doc({"ref": "w", "type": "wait", "args": {"durration": "2s"}}),
        doc({"type": "wait", "args": {"duration": "2s"}}),
        {"type": "workflow", "definition": doc()},
        {"steps": [echo()]},
    ],
)
def test_what_the_validator_refuses_by_shape_does_not_fit(document: Any) -> None:
    assert not _valid(document)
    assert _valid(doc())
