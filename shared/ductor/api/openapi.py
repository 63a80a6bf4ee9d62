"""The OpenAPI document, made from the routes and their models. Built once, when somebody asks for it."""

from __future__ import annotations

import re
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from ductor.api.models.common import ErrorAnswer
from ductor.api.routing import Route

Document = dict[str, Any]

_PARAMETER: Final = re.compile(r"<(\w+)>")


def openapi_document(routes: tuple[Route, ...], version: str) -> Document:
    """An OpenAPI 3.1 document of all routes."""
    inputs = [(route.body, "validation") for route in routes if route.body]
    outputs = [(route.answer, "serialization") for route in routes if route.answer]
    keys: Any = dict.fromkeys([*inputs, *outputs, (ErrorAnswer, "serialization")])
    refs, definitions = models_json_schema(list(keys), ref_template="#/components/schemas/{model}")
    paths: dict[str, Document] = {}
    for route in routes:
        path = _PARAMETER.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, refs)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Ductor", "version": version, "description": "Durable workflows in your own account."},
        "paths": paths,
        "components": {
            "schemas": definitions.get("$defs", {}),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route, refs: Any) -> Document:
    operation: Document = {
        "summary": route.summary,
        "operationId": _operation_id(route),
        "parameters": _parameters(route),
        "responses": {str(route.status): _response(route.summary, refs.get((route.answer, "serialization")))},
    }
    if not route.open:
        operation["security"] = [{"key": []}]
        operation["responses"]["default"] = _response("A refusal", refs[ErrorAnswer, "serialization"])
    if route.scope:
        operation["description"] = f"Scope: `{route.scope}`."
    if route.body:
        operation["requestBody"] = {
            "required": _needs_body(route.body),
            "content": {"application/json": {"schema": refs[route.body, "validation"]}},
        }
    return operation


def _parameters(route: Route) -> list[Document]:
    found = [_parameter(name, "path", required=True) for name in _PARAMETER.findall(route.path)]
    if not route.open:
        found.append(_parameter("X-Tenant-ID", "header", required=True))
    found += [_parameter(f"{name}<key>" if name.endswith(".") else name, "query") for name in route.query]
    return found


def _parameter(name: str, place: str, *, required: bool = False) -> Document:
    return {"name": name, "in": place, "required": required, "schema": {"type": "string"}}


def _response(description: str, schema: Document | None) -> Document:
    if schema is None:
        return {"description": description}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _needs_body(model: type[BaseModel]) -> bool:
    return any(field.is_required() for field in model.model_fields.values())


def _operation_id(route: Route) -> str:
    return "_".join(re.findall(r"\w+", f"{route.method.lower()} {route.path}"))
