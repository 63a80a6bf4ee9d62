"""What is wrong with a body is said in words of the API, at a place that the body has."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.world import ApiWorld

EVENTS = "/api/v2/workflow-events:publish"
KEYS = "/api/admin/api-keys"
BATCH = "/api/v2/workflow-runs:batch"
POLL = "/api/v2/bridge-tasks:poll"
TENANTS = "/api/admin/tenants"


@pytest.mark.parametrize(
    ("route", "body", "field", "said"),
    [
        (EVENTS, {"event_name": 1, "event_id": "e"}, "event_name", "must be a string"),
        (POLL, {"task_types": "render"}, "task_types", "must be a list"),
        (POLL, {"task_types": ["render"], "max": "many"}, "max", "must be a whole number"),
        (KEYS, {"name": "k", "expires_at": "soon"}, "expires_at", "must be an instant with an offset, like "),
        (TENANTS, {"name": "t", "entitlements": 1}, "entitlements", "must be an object"),
        (
            BATCH,
            {"request_id": "b", "operation": "cancel", "filter": {"status": 1}},
            "filter.status",
            "must be a string, or must be true or false",
        ),
    ],
)
def test_a_wrong_type_is_said_in_plain_words(route: str, body: dict[str, Any], field: str, said: str) -> None:
    (item,) = ApiWorld().call("POST", route, body).json["errors"]

    assert (item["field"], item["code"]) == (field, "FIELD_INVALID")
    assert item["message"].startswith(said)
