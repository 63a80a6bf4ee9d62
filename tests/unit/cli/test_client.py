"""The command line's HTTP client: requests as documented, refusals readable."""

from __future__ import annotations

import httpx
import pytest
from tests.unit.cli.server import Server

from ductor.cli.client import Refused, Unreachable
from ductor.cli.failure import Exit, Failure
from ductor.cli.trigger import definition_id

REFUSAL = {
    "error_code": "INVALID_ARGUMENT",
    "message": "the definition has 2 faults",
    "errors": [
        {"field": "review.args.audience", "code": "APPROVAL_SPEC_INVALID", "message": "add roles or users"},
        {"field": "", "code": "GRAPH_EMPTY", "message": "add a step"},
    ],
}


def test_every_request_carries_key_and_tenant() -> None:
    server = Server({"GET /api/v2/workflow-runs/run-1/snapshot": [(200, {})]})

    server.client().snapshot("run-1")

    headers = server.requests[0].headers
    assert headers["authorization"] == "Bearer dk_1_secret"
    assert headers["x-tenant-id"] == "tenant-1"


def test_refusal_shows_every_field_code_and_message() -> None:
    server = Server({"POST /api/workflow-definitions": [(400, REFUSAL)]})

    with pytest.raises(Refused) as raised:
        server.client().create_definition({})

    assert raised.value.lines() == (
        "error: INVALID_ARGUMENT: the definition has 2 faults",
        "  review.args.audience: add roles or users (APPROVAL_SPEC_INVALID)",
        "  add a step (GRAPH_EMPTY)",
    )
    assert raised.value.code is Exit.REFUSED


def test_an_output_that_lies_elsewhere_is_read_there_without_the_key() -> None:
    told = {"data": {"output_url": "https://bucket.example/o?sign=1"}}
    server = Server({"GET /api/workflows/runs/r/output": [(303, told)], "GET /o": [(200, {"n": [1]})]})

    assert server.client().output("r") == {"n": [1]}

    assert "authorization" not in server.requests[1].headers


def test_known_codes_come_with_a_hint() -> None:
    body = {
        "error_code": "UNAUTHENTICATED",
        "message": "unknown key",
        "errors": [{"code": "KEY_UNKNOWN", "message": "m"}],
    }
    server = Server({"GET /api/workflows/runs/r": [(401, body)]})

    with pytest.raises(Refused) as raised:
        server.client().run("r")

    assert raised.value.hint.startswith("this server does not know the key")


def test_refusal_that_is_no_json_keeps_its_status() -> None:
    server = Server({"GET /api/workflows/runs/r": [(502, b"<html>")]})

    with pytest.raises(Refused, match="HTTP 502: the answer is not JSON"):
        server.client().run("r")


def test_success_that_is_no_json_is_another_server() -> None:
    server = Server({"GET /api/workflows/runs/r": [(200, b"<html>")]})

    with pytest.raises(Failure, match="does not answer like a Ductor server"):
        server.client().run("r")


def test_no_answer_names_address_and_remedy() -> None:
    server = Server({"GET /api/workflows/runs/r": [httpx.ConnectError("Connection refused")]})

    with pytest.raises(Unreachable) as raised:
        server.client().run("r")

    assert raised.value.lines() == (
        "error: no Ductor server answers at http://ductor.test (Connection refused)",
        "hint: start one with `ductor serve`, or set DUCTOR_API_URL",
    )
    assert raised.value.code is Exit.UNREACHABLE


def test_ids_are_one_path_segment() -> None:
    server = Server({"GET /api/workflows/runs/a/../b": [(200, {"data": {}})]})

    server.client().run("a/../b")

    assert server.requests[0].url.raw_path == b"/api/workflows/runs/a%2F..%2Fb"


def test_family_slug_means_its_newest_version_over_all_pages() -> None:
    pages = [
        (200, {"data": [{"id": "v9", "version": 9}], "next_cursor": "c1"}),
        (200, {"data": [{"id": "v10", "version": 10}], "next_cursor": None}),
    ]
    server = Server({"GET /api/workflow-definitions": list(pages)})

    assert definition_id(server.client(), "orders") == "v10"
    assert [dict(request.url.params) for request in server.requests] == [
        {"family_slug": "orders", "status": "published", "limit": "200"},
        {"family_slug": "orders", "status": "published", "limit": "200", "cursor": "c1"},
    ]


def test_an_id_needs_no_look_up() -> None:
    server = Server({})
    name = "0190a1b2-0000-7000-8000-000000000000"

    assert definition_id(server.client(), name) == name
    assert server.requests == []


def test_family_without_a_version_says_so() -> None:
    server = Server({"GET /api/workflow-definitions": [(200, {"data": []})]})

    with pytest.raises(Failure, match="no published definition of the family 'orders'"):
        definition_id(server.client(), "orders")


def test_an_empty_name_is_no_family_and_never_all_of_them() -> None:
    server = Server({"GET /api/workflow-definitions": [(200, {"data": [{"id": "v1", "version": 1}]})]})

    with pytest.raises(Failure, match="no published definition of the family ''"):
        definition_id(server.client(), "")

    assert server.requests == []
