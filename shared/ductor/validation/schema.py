"""The JSON Schema (2020-12) of definition documents, made from the same shapes and models that validate them."""

from __future__ import annotations

from typing import Final

import msgspec

from ductor.model.enums import StepType
from ductor.model.json import JSON
from ductor.steps.registry import STEP_SPECS
from ductor.validation.document_shape import DOCUMENT, ENVELOPE_TYPE, STEP

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_REF: Final = "#/$defs/{name}"


def document_schema() -> dict[str, JSON]:
    """A schema that editors use to complete and check definitions: the YAML envelope or the bare body of the API.

    It knows every field, both spellings of step and edge types, and the args of each step type. It does not know the
    rules across fields: those are the validator's.
    """
    models = {spec.type: spec.args_model for spec in STEP_SPECS.values() if spec.args_model is not None}
    names = {step_type: f"{step_type.value}_args" for step_type in models}
    schemas, parts = msgspec.json.schema_components(list(models.values()), ref_template=_REF)
    definitions: dict[str, JSON] = dict(parts)
    definitions |= {names[step_type]: schema for step_type, schema in zip(models, schemas, strict=True)}
    definitions["step"] = STEP.schema() | {"allOf": [*STEP.schema()["allOf"], *map(_args_rule, names.items())]}
    body = DOCUMENT.schema()
    body["properties"]["steps"]["items"] = {"$ref": _REF.format(name="step")}
    definitions["body"] = body
    return {
        "$schema": DIALECT,
        "title": "Ductor workflow definition",
        "oneOf": [_envelope(), {"$ref": _REF.format(name="body")}],
        "$defs": definitions,
    }


def _envelope() -> dict[str, JSON]:
    return {
        "type": "object",
        "properties": {"type": {"const": ENVELOPE_TYPE}, "definition": {"$ref": _REF.format(name="body")}},
        "required": ["type", "definition"],
        "additionalProperties": False,
    }


def _args_rule(pair: tuple[StepType, str]) -> dict[str, JSON]:
    step_type, name = pair
    return {
        "if": {"properties": {"type": {"enum": [step_type.value, step_type.wire]}}, "required": ["type"]},
        "then": {"properties": {"args": {"$ref": _REF.format(name=name)}}},
    }
