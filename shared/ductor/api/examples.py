"""Examples for the OpenAPI document: written by hand where an invented value would mislead, else made of the schema."""

from __future__ import annotations

from typing import Any, Final

Document = dict[str, Any]

_ID: Final = "01983c1e-7f00-7000-8000-00000000000a"
_TIME: Final = "2026-07-11T11:10:00.000Z"
_MAX_DEPTH: Final = 8

_GREETING: Final = {
    "environment": "default",
    "family_slug": "hello_world",
    "title": "Hello World",
    "steps": [
        {
            "ref": "greet",
            "type": "STEP_TYPE_DATAFLOW",
            "args": {
                "operation": "project",
                "input_expr": "TRIGGER",
                "redaction_policy": "none",
                "project": {"message": '"hello"'},
            },
        },
        {"ref": "pause", "type": "STEP_TYPE_WAIT", "args": {"duration": "2s"}},
    ],
    "edges": [{"source_ref": "greet", "target_ref": "pause", "type": "EDGE_TYPE_SUCCESS"}],
}
_PLAN: Final = {"plan": "small", "step_types": ["action", "wait"], "max_steps": 20}
_CONTROL: Final = {"request_id": "op-8f2a-1", "reason": "manual hold pending review"}

BODIES: Final[dict[tuple[str, str], Document]] = {
    ("POST", "/api/workflow-definitions"): _GREETING,
    ("PATCH", "/api/workflow-definitions/<definition_id>/draft"): {
        "expected_draft_revision": 3,
        "title": "Lead Router v2",
        "operations": [
            {"add_step": {"ref": "enrich", "type": "STEP_TYPE_ACTION", "action": "hubspot.enrich_contact"}},
            {"rename_step": {"ref": "greet", "new_ref": "welcome"}},
            {"remove_edge": {"source_ref": "welcome", "target_ref": "pause"}},
        ],
    },
    ("POST", "/api/workflow-definitions/<definition_id>/publish"): {"expected_draft_revision": 3},
    ("POST", "/api/workflow-definitions/<definition_id>/duplicate"): {"family_slug": "hello_world_copy"},
    ("POST", "/api/v2/workflow-definitions/<definition_id>:trigger"): {
        "subject_type": "lead",
        "subject_id": "lead-123",
        "input": {"source": "webinar"},
        "idempotency_key": "lead-123-signup",
        "correlation_labels": [{"key": "conversation", "id": "conversation-42"}],
    },
    ("POST", "/api/v2/workflow-events:publish"): {
        "event_name": "order.paid",
        "correlation_key": "order-42",
        "event_id": "evt-abc",
        "payload": {"amount": 12900},
    },
    ("POST", "/api/v2/bridge-tasks:poll"): {
        "task_types": ["video.render"],
        "wait_seconds": 20,
        "lease_seconds": 60,
        "worker": "render-1",
    },
    ("POST", "/api/v2/bridge-tasks/<token>:heartbeat"): {"details": {"frames": 1200}},
    ("POST", "/api/v2/bridge-tasks/<token>:complete"): {"output": {"url": "https://example.com/v/42.mp4"}},
    ("POST", "/api/v2/bridge-tasks/<token>:fail"): {
        "code": "CODEC_UNKNOWN",
        "message": "no decoder for this file",
        "retryable": False,
    },
    **{
        ("POST", f"/api/workflow-schedules/<family_slug>:{verb}"): {
            "request_id": "op-8f2a-2",
            "reason": "month-end close",
            **body,
        }
        for verb, body in {
            "pause": {},
            "resume": {},
            "triggerNow": {"overlap_policy": "allow_all"},
            "backfill": {"start_at": "2026-07-01T00:00:00Z", "end_at": "2026-07-02T00:00:00Z"},
        }.items()
    },
    **{
        ("POST", f"/api/v2/workflow-runs/<run_id>:{verb}"): _CONTROL
        for verb in ("pause", "resume", "cancel", "terminate", "redrive")
    },
    ("POST", "/api/v2/workflow-runs:batch"): {
        "request_id": "op-8f2a-3",
        "reason": "bad input",
        "operation": "cancel",
        "filter": {"workflow_type": "hello_world", "active_only": True},
    },
    ("POST", "/api/v2/workflow-runs/<run_id>/steps/<node>:approve"): {
        "request_id": "sig-1",
        "comment": "cleared",
        "payload": {"tier": "gold"},
    },
    ("POST", "/api/v2/workflow-runs/<run_id>/steps/<node>:resolve"): {
        "request_id": "sig-2",
        "outcome": "success",
        "payload": {"paid": True},
    },
    ("POST", "/api/admin/api-keys"): {"name": "dashboard", "roles": ["viewer"]},
    ("POST", "/api/connections"): {
        "slug": "stripe_main",
        "type": "stripe",
        "secrets": {"api_key": "sk_test_1234567890"},
    },
    ("POST", "/api/admin/tenants"): {"name": "Acme", "entitlements": _PLAN},
    ("PATCH", "/api/admin/tenants/<tenant>"): {"entitlements": _PLAN},
}
"""Request bodies by method and path (with `<name>` parameters)."""

_STRINGS: Final = {
    "id": _ID,
    "run_id": _ID,
    "definition_id": _ID,
    "draft_id": _ID,
    "family_slug": "hello_world",
    "workflow_type": "hello_world",
    "environment": "default",
    "trace_id": "trace-01983c1e",
    "request_id": "req-01983c1e",
    "error_code": "INVALID_ARGUMENT",
    "field": "review.args.audience",
    "code": "APPROVAL_SPEC_INVALID",
    "message": "name at least one role or user",
    "severity": "error",
    "title": "Hello World",
    "node": "greet",
    "ref": "greet",
    "key": "default",
}
_BY_STATUS: Final = {
    400: ("INVALID_ARGUMENT", "FIELD_INVALID", "family_slug", "a family slug starts with a to z"),
    401: ("UNAUTHENTICATED", "UNAUTHENTICATED", "Authorization", "send a valid API key as a bearer token"),
    403: ("PERMISSION_DENIED", "SCOPE_MISSING", "", "the key lacks the scope that this call needs"),
    404: ("NOT_FOUND", "DEFINITION_NOT_FOUND", "id", "there is nothing with this id"),
    409: ("ABORTED", "DRAFT_REVISION_CONFLICT", "expected_draft_revision", "the draft is at revision 4, not 3"),
    413: ("PAYLOAD_TOO_LARGE", "PAYLOAD_TOO_LARGE", "", "a request has at most 6 MB"),
    415: ("INVALID_ARGUMENT", "MEDIA_TYPE_UNSUPPORTED", "Content-Type", "send JSON"),
    429: ("RESOURCE_EXHAUSTED", "RATE_LIMITED", "", "wait for as long as Retry-After says"),
    503: ("UNAVAILABLE", "UNAVAILABLE", "", "repeat the request with the same ids"),
}


def refusal_example(status: int) -> Document:
    """A refusal of this status."""
    error_code, code, field, message = _BY_STATUS[status]
    return {
        "error_code": error_code,
        "message": message,
        "errors": [{"field": field, "code": code, "message": message}],
        "metadata": {"trace_id": "trace-01983c1e", "request_id": "req-01983c1e", "fetched_at": _TIME},
    }


def example_of(schema: Document, definitions: Document) -> Any:
    """A value that fits the schema."""
    return _value(schema, definitions, "", 0)


def _value(schema: Document, definitions: Document, name: str, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        return None
    if "$ref" in schema:
        return _value(definitions.get(schema["$ref"].rsplit("/", 1)[-1], {}), definitions, name, depth)
    for given in ("default", "const"):
        if schema.get(given) is not None:
            return schema[given]
    if schema.get("enum"):
        return schema["enum"][0]
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return _value({**schema, **options[0], "anyOf": None, "oneOf": None}, definitions, name, depth)
    return _plain(schema, definitions, name, depth)


def _plain(schema: Document, definitions: Document, name: str, depth: int) -> Any:
    kind = schema.get("type")
    if kind == "object":
        properties = schema.get("properties") or {}
        return {key: _value(inner, definitions, key, depth + 1) for key, inner in properties.items()}
    if kind == "array":
        items = schema.get("items") or {}
        return [_value(items, definitions, name.removesuffix("s"), depth + 1)] if items else []
    if kind == "string":
        timed = schema.get("format") == "date-time" or name.endswith("_at")
        return _TIME if timed else _STRINGS.get(name, name.replace("_", " ") or "text")
    return {"integer": max(1, schema.get("minimum", 1)), "number": 1.0, "boolean": True}.get(str(kind))
