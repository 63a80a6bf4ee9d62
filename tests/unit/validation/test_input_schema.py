"""Input schemas: what is applied to inputs is what was checked, in bounded time."""

from __future__ import annotations

from typing import Any

import pytest

from ductor.validation.input_schema import InputValidator, check_input_schema


def _paths(schema: Any, value: Any) -> list[str]:
    return [error.json_path for error in InputValidator(schema).iter_errors(value)]


def test_one_error_per_fault() -> None:
    schema = {"required": ["a"], "properties": {"b": {"type": "integer"}, "c": {"minLength": 2}}}
    assert _paths(schema, {"b": "x", "c": "y"}) == ["$", "$.b", "$.c"]
    assert _paths(schema, {"a": 1, "b": 2, "c": "yy"}) == []


@pytest.mark.timeout(10)
@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(.*a){20}$"])
def test_no_pattern_backtracks(pattern: str) -> None:
    assert list(check_input_schema({"pattern": pattern})) == []
    assert _paths({"pattern": pattern}, "a" * 10_000 + "b") == ["$"]


def test_property_patterns_and_additional_properties_work_together() -> None:
    schema = {"properties": {"a": {}}, "patternProperties": {"^x_": {"type": "integer"}}, "additionalProperties": False}
    assert list(check_input_schema(schema)) == []
    assert _paths(schema, {"a": 1, "x_1": 2}) == []
    assert _paths(schema, {"x_1": "two"}) == ["$.x_1"]
    assert _paths(schema, {"z": 1}) == ["$"]


def test_additional_properties_may_have_a_schema() -> None:
    schema = {"additionalProperties": {"type": "integer"}}
    assert _paths(schema, {"a": 1}) == []
    assert _paths(schema, {"a": "x"}) == ["$.a"]


@pytest.mark.timeout(10)
def test_unique_items_are_compared_in_linear_time() -> None:
    schema = {"uniqueItems": True}
    assert _paths(schema, [{"n": n} for n in range(50_000)]) == []
    assert _paths(schema, [1, 1.0]) == ["$"]
    assert _paths(schema, [1, True, "1", [1]]) == []


def test_a_recursive_schema_follows_the_input_and_no_further() -> None:
    tree = {"properties": {"child": {"$ref": "#"}, "n": {"type": "integer"}}}
    assert list(check_input_schema(tree)) == []
    assert _paths(tree, {"child": {"child": {"n": "x"}}}) == ["$.child.child.n"]


@pytest.mark.timeout(10)
def test_a_schema_that_doubles_is_stopped() -> None:
    schema = {"$defs": {"t": {"items": {"allOf": [{"$ref": "#/$defs/t"}] * 2}}}, "$ref": "#/$defs/t"}
    value: Any = 1
    for _ in range(40):
        value = [value]
    with pytest.raises(RecursionError):
        list(InputValidator(schema).iter_errors([value, value]))


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        ({"$ref": "file:///etc/passwd"}, "input_schema.$ref"),
        ({"properties": {"a": {"$ref": "other.json"}}}, "input_schema.properties.a.$ref"),
        ({"$id": "https://example.com/a"}, "input_schema.$id"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "input_schema.$schema"),
        ({"$ref": "#/$defs/nowhere"}, "input_schema"),
        ({"patternProperties": {"(": {}}}, "input_schema.patternProperties"),
        ({"unevaluatedItems": False, "$ref": "#/$defs/a", "$defs": {"a": {}}}, "input_schema"),
        ({"properties": {"a": {"minimum": "x"}}}, "input_schema.properties.a.minimum"),
        ({"description": "x" * 300_000}, "input_schema"),
    ],
)
def test_schemas_that_cannot_be_applied_are_refused(schema: Any, field: str) -> None:
    assert (field, "INPUT_SCHEMA_INVALID") in {(item.field, item.code) for item in check_input_schema(schema)}


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"},
        {"properties": {"$ref": {"type": "string"}, "pattern": {"type": "string"}}},
        {"const": {"$ref": "http://example.com"}, "default": {"pattern": "("}},
        {"unevaluatedProperties": False, "allOf": [{"properties": {"a": {}}}]},
    ],
)
def test_harmless_schemas_are_accepted(schema: Any) -> None:
    assert list(check_input_schema(schema)) == []
