"""Null in a request: absent where a field is optional, a value where it takes any JSON, refused where required."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError
from tests.api.world import ApiWorld

from ductor.api import app as _every_route  # noqa: F401 - so that every request model is known
from ductor.api.examples import example_of
from ductor.api.models.common import RequestModel

TRIGGER = "/api/v2/workflow-definitions/{}:trigger"


def request_models(root: type[RequestModel] = RequestModel) -> Iterator[type[RequestModel]]:
    for model in root.__subclasses__():
        if model.__module__.startswith("ductor.api."):
            yield model
        yield from request_models(model)


def fields_of(*, required: bool) -> list[Any]:
    return [
        pytest.param(model, name, id=f"{model.__name__}.{name}")
        for model in request_models()
        for name, field in model.model_fields.items()
        if field.is_required() is required
    ]


def smallest(model: type[RequestModel]) -> dict[str, Any]:
    """A body with nothing but what the model requires."""
    schema = model.model_json_schema()
    definitions = schema.get("$defs", {})
    example: dict[str, Any] = example_of(schema, definitions)
    return {name: example[name] for name in schema.get("required", ())}


@pytest.mark.parametrize(("model", "name"), fields_of(required=False))
def test_null_in_an_optional_field_is_the_same_as_leaving_it_out(model: type[RequestModel], name: str) -> None:
    without = model.model_validate(smallest(model))
    if model.model_fields[name].annotation is Any:
        assert getattr(model.model_validate({**smallest(model), name: None}), name) is None
    else:
        assert model.model_validate({**smallest(model), name: None}) == without


@pytest.mark.parametrize(("model", "name"), fields_of(required=True))
def test_null_in_a_required_field_is_refused(model: type[RequestModel], name: str) -> None:
    if model.model_fields[name].annotation is Any:
        assert getattr(model.model_validate({**smallest(model), name: None}), name) is None
        return
    with pytest.raises(ValidationError):
        model.model_validate({**smallest(model), name: None})


def test_the_document_says_of_every_optional_field_that_it_may_be_null(world: ApiWorld) -> None:
    schemas = world.call("GET", "/openapi.json").json["components"]["schemas"]
    names = {model.__name__ for model in request_models()}
    silent = [
        f"{model}.{name}"
        for model in sorted(names & set(schemas))
        for name, schema in schemas[model].get("properties", {}).items()
        if name not in schemas[model].get("required", ())
        and {"type": "null"} not in schema.get("anyOf", ())
        and ({"type", "$ref", "anyOf"} & set(schema))
    ]
    assert len(names & set(schemas)) > 20
    assert silent == []


def test_a_trigger_with_nulls_is_the_one_without(world: ApiWorld) -> None:
    path = TRIGGER.format(world.published())
    plain = world.call("POST", path, {"idempotency_key": "k", "correlation_labels": [{"key": "order", "id": "1"}]})
    nulls = dict.fromkeys(
        ("subject_type", "subject_id", "variables", "external_deployment_id", "wait_for_checkpoint"), None
    )
    again = world.call(
        "POST", path, {"idempotency_key": "k", "correlation_labels": [{"key": "order", "id": "1"}], **nulls}
    )
    assert (again.status, again.json["run_id"]) == (202, plain.json["run_id"])


def test_null_in_a_required_field_of_a_list_names_its_place(world: ApiWorld) -> None:
    path = TRIGGER.format(world.published())
    answer = world.call("POST", path, {"correlation_labels": [{"key": "order", "id": None}]})
    assert answer.codes == [("correlation_labels[0].id", "FIELD_INVALID")]


def test_a_change_of_an_environment_leaves_alone_what_is_null(world: ApiWorld) -> None:
    world.call("PATCH", "/api/environments/default", {"title": "Main", "release": {"required": False}})
    answer = world.call(
        "PATCH", "/api/environments/default", {"title": None, "description": "new", "release": {"required": None}}
    )
    assert answer.status == 200, answer.text
    assert (answer.json["data"]["title"], answer.json["data"]["description"]) == ("Main", "new")


def test_a_change_of_a_draft_takes_out_what_is_null(world: ApiWorld) -> None:
    draft = world.draft(title="Hello", description="said")
    answer = world.call(
        "PATCH",
        f"/api/workflow-definitions/{draft['id']}/draft",
        {"expected_draft_revision": 1, "description": None, "operations": None},
    )
    assert answer.status == 200, answer.text
    assert (answer.json["data"]["title"], answer.json["data"]["description"]) == ("Hello", "")


def test_a_filter_of_a_batch_takes_no_null_because_without_it_more_runs_would_match(world: ApiWorld) -> None:
    body = {"request_id": "b", "operation": "cancel", "filter": {"workflow_type": "hello_world", "subject_id": None}}
    answer = world.call("POST", "/api/v2/workflow-runs:batch", body)
    assert answer.codes == [("filter.subject_id", "FIELD_INVALID")]
