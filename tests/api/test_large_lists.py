"""Lists and names that would not fit into a row are refused before; whatever is left is never the server's fault."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.world import ApiWorld

from ductor.ports import ItemTooLargeError

KEYS = "/api/admin/api-keys"
LONG = "x" * 1_000_000


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("roles", ["viewer", LONG]),
        ("roles", ["viewer", " "]),
        ("roles", ["viewer", *(f"team-{number}" for number in range(100))]),
        ("environments_read", [f"e{number}" for number in range(101)]),
        ("environments_write", [LONG]),
        ("environments_write", [""]),
    ],
)
def test_a_key_holds_no_more_than_fits(world: ApiWorld, field: str, value: Any) -> None:
    answer = world.call("POST", KEYS, {"name": "k", "roles": ["viewer"], field: value})
    assert (answer.status, answer.codes) == (400, [(field, "FIELD_INVALID")])


@pytest.mark.parametrize("moment", [4_070_908_800, 4_070_908_800.0, "4070908800", True, "2099-01-01", "2099-W01-1"])
def test_a_key_expires_at_an_instant_that_is_written_as_one(world: ApiWorld, moment: Any) -> None:
    answer = world.call("POST", KEYS, {"name": "k", "roles": ["viewer"], "expires_at": moment})
    assert (answer.status, answer.codes) == (400, [("expires_at", "FIELD_INVALID")])


def test_a_connection_serves_so_many_environments_at_most(world: ApiWorld) -> None:
    body = {
        "slug": "many",
        "type": "http",
        "settings": {"base_url": "https://api.example.com"},
        "secrets": {"token": "abcdefgh"},
        "environments": [f"e{number}" for number in range(101)],
    }
    answer = world.call("POST", "/api/connections", body)
    assert (answer.status, answer.codes) == (400, [("environments", "FIELD_INVALID")])


def test_what_does_not_fit_into_a_row_is_too_large_and_no_fault_of_the_server(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_ops: Any) -> None:
        raise ItemTooLargeError("the row 'K#…' is larger than 400000 bytes")

    monkeypatch.setattr(world.table, "write", full)
    answer = world.call("POST", "/api/environments", {"key": "prod"})
    assert (answer.status, answer.codes) == (413, [("body", "PAYLOAD_TOO_LARGE")])
    assert "K#" not in answer.text


def test_a_fault_in_the_filter_of_a_batch_names_its_place(world: ApiWorld) -> None:
    for name, value in (("nope", "x"), ("status", "x"), ("started_after", "x"), ("q", "x" * 300)):
        body = {"request_id": "b", "operation": "pause", "filter": {name: value}}
        assert world.call("POST", "/api/v2/workflow-runs:batch", body).codes[0][0] == f"filter.{name}"


def test_a_release_that_is_too_long_is_named_as_it_was_sent(world: ApiWorld) -> None:
    answer = world.call("PATCH", "/api/environments/default", {"release": {"external_deployment_id": "x" * 300}})
    assert answer.codes == [("release.external_deployment_id", "FIELD_INVALID")]


@pytest.mark.parametrize("node", ["greet@0", "greet@", "pause@0.1", "greet@x"])
def test_an_item_of_a_step_that_has_none_is_not_found(world: ApiWorld, node: str) -> None:
    run_id = world.triggered()
    answer = world.call("POST", f"/api/v2/workflow-runs/{run_id}/nodes/{node}:pause", {"request_id": "n"})
    assert (answer.status, answer.codes) == (404, [("node", "NODE_NOT_FOUND")])
