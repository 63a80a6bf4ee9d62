"""The OpenAPI document, made from the routes and their models. Built once, when somebody asks for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from ductor.api.examples import BODIES, example_of, refusal_example
from ductor.api.models.common import ErrorAnswer
from ductor.api.routing import Route
from ductor.app.cursors import MAX_LIMIT

Document = dict[str, Any]

_PARAMETER: Final = re.compile(r"<(\w+)>")
_JSON: Final = "application/json"
_PAGES: Final = {"/docs": "text/html"}
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_ABOUT: Final = (
    "Durable workflows in your own account. Null in an optional field of a request is the same as leaving it out; "
    "in a field that takes any JSON it is a value."
)
_QUERY: Final[dict[str, Document]] = {
    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT},
    "active_only": {"type": "string", "enum": ["true", "false"]},
}
_REFUSALS: Final = {
    400: "The request is not valid; every fault at once",
    401: "No valid API key",
    403: "The key may not do this, or belongs to another tenant",
    404: "Nothing with this id, or it is another tenant's",
    409: "The present state does not allow it",
    413: "Too large",
    415: "Not JSON",
    429: "Too many requests",
    503: "A store could not be reached in time; the request may be repeated with the same ids",
}


def openapi_document(routes: tuple[Route, ...], version: str) -> Document:
    """An OpenAPI 3.1 document of all routes but the unlisted ones."""
    routes = tuple(route for route in routes if route.listed)
    inputs = [(route.body, "validation") for route in routes if route.body]
    outputs = [(route.answer, "serialization") for route in routes if route.answer]
    keys: Any = dict.fromkeys([*inputs, *outputs, (ErrorAnswer, "serialization")])
    refs, definitions = models_json_schema(list(keys), ref_template="#/components/schemas/{model}")
    schemas = definitions.get("$defs", {})
    paths: dict[str, Document] = {}
    for route in routes:
        path = _PARAMETER.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, refs, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Ductor", "version": version, "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {str(status): _refusal(status, refs) for status in _REFUSALS},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route, refs: Any, schemas: Document) -> Document:
    operation: Document = {
        "summary": route.summary,
        "operationId": _operation_id(route),
        "tags": [_tag(route)],
        "parameters": _parameters(route),
        "responses": {str(route.status): _response(route, refs, schemas)},
    }
    for status in _statuses(route):
        operation["responses"][str(status)] = {"$ref": f"#/components/responses/{status}"}
    if not route.open:
        operation["security"] = [{"key": []}]
    if route.scope:
        operation["description"] = f"Scope: `{route.scope}`."
    if route.body:
        schema = refs[route.body, "validation"]
        example = BODIES.get((route.method, route.path)) or example_of(schema, schemas)
        operation["requestBody"] = {
            "required": _needs_body(route.body),
            "content": {_JSON: {"schema": schema, "example": example}},
        }
    return operation


def _statuses(route: Route) -> Iterator[int]:
    """Every refusal that the route can answer. 405 and unknown paths are no matter of a route."""
    if route.open:
        return
    yield from (400, 401, 403)
    if "<" in route.path or "cursor" not in route.query or route.seeks:
        yield 404
    if route.method != "GET" or route.path.endswith(("/diff", "/output")):
        yield 409
    if route.method in _WITH_BODY:
        yield from (413, 415)
    yield from (429, 503)


def _parameters(route: Route) -> list[Document]:
    found = [_parameter(name, "path", {"type": "string"}, required=True) for name in _PARAMETER.findall(route.path)]
    if not route.open:
        found.append(_parameter("X-Tenant-ID", "header", {"type": "string"}, required=True))
    for name in route.query:
        schema = _QUERY.get(name, {"type": "string"})
        found.append(_parameter(f"{name}<key>" if name.endswith(".") else name, "query", schema))
    return found


def _parameter(name: str, place: str, schema: Document, *, required: bool = False) -> Document:
    return {"name": name, "in": place, "required": required, "schema": schema}


def _response(route: Route, refs: Any, schemas: Document) -> Document:
    schema = refs.get((route.answer, "serialization"))
    if schema is None:
        return {"description": route.summary, "content": {_PAGES.get(route.path, _JSON): {}}}
    content = {_JSON: {"schema": schema, "example": example_of(schema, schemas)}}
    return {"description": route.summary, "content": content}


def _refusal(status: int, refs: Any) -> Document:
    schema = refs[ErrorAnswer, "serialization"]
    answer: Document = {
        "description": _REFUSALS[status],
        "content": {_JSON: {"schema": schema, "example": refusal_example(status)}},
    }
    if status in (429, 503):
        answer["headers"] = {"Retry-After": {"schema": {"type": "string"}, "description": "Seconds."}}
    return answer


def _tag(route: Route) -> str:
    """The resource: the first part of the path that names one."""
    parts = [part for part in route.path.split("/") if part not in ("", "api", "v2", "admin")]
    return re.split(r"[:<]", parts[0])[0] if parts else "api"


def _needs_body(model: type[BaseModel]) -> bool:
    return any(field.is_required() for field in model.model_fields.values())


def _operation_id(route: Route) -> str:
    return "_".join(re.findall(r"\w+", f"{route.method.lower()} {route.path}"))
