"""The built-in connectors and those of one's own, against a real HTTP server on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl

import pytest
from tests.unit.actions.web import Handler, Seen, Web

from ductor.actions.connection import Connection, Secret
from ductor.actions.connectors.catalog import load_connectors
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError, ActionLoadError
from ductor.actions.execute import execute
from ductor.actions.http import HttpRequest, HttpSettings
from ductor.actions.registry import ActionRegistry, default_registry

TOKEN = "secret-token-1"
SECRETS = {
    "stripe": "api_key",
    "hubspot": "access_token",
    "slack": "bot_token",
    "github": "token",
    "http": "token",
    "http_basic": "password",
}
INVOICE = {"customer_id": "cus_1", "amount": 1200, "currency": "eur"}


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as made:
        yield made


@pytest.fixture(scope="module")
def registry() -> ActionRegistry:
    return default_registry(http=HttpSettings(allow_private_networks=True))


def connection(web: Web, kind: str, **settings: Any) -> Connection:
    base = {"base_url": f"http://127.0.0.1:{web.port}", **settings}
    return Connection(id="1", slug="main", type=kind, settings=base, secrets={SECRETS[kind]: Secret(TOKEN)})


def run(
    registry: ActionRegistry, name: str, args: dict[str, Any], made: Connection | None, key: str = "run/step"
) -> Any:
    action = registry.get(name)
    assert action is not None
    return execute(action, args, ActionContext(connection=made, idempotency_key=key))[0]


def fails(registry: ActionRegistry, name: str, args: dict[str, Any], made: Connection | None) -> ActionError:
    with pytest.raises(ActionError) as raised:
        run(registry, name, args, made)
    assert TOKEN not in f"{raised.value.message} {raised.value.details}"
    return raised.value


def answers(web: Web, path: str, body: Any, status: int = 200, **headers: str) -> None:
    web.on(path, status, json.dumps(body).encode(), content_type="application/json", **headers)


def test_stripe_creates_an_invoice_with_its_item(web: Web, registry: ActionRegistry) -> None:
    answers(web, "/v1/invoices", {"id": "in_1", "status": "draft"})
    answers(web, "/v1/invoiceitems", {"id": "ii_1"})
    args = {**INVOICE, "metadata": {"order": "o-1"}}
    output = run(registry, "stripe.invoices.create", args, connection(web, "stripe", account="acct_1"))
    assert output == {
        "id": "in_1",
        "status": "draft",
        "customer_id": "cus_1",
        "amount": 1200,
        "currency": "eur",
        "item_id": "ii_1",
    }
    invoice, item = web.seen
    assert invoice.headers["authorization"] == f"Bearer {TOKEN}"
    assert invoice.headers["stripe-account"] == "acct_1"
    assert dict(parse_qsl(invoice.body.decode())) == {
        "customer": "cus_1",
        "currency": "eur",
        "auto_advance": "false",
        "metadata[order]": "o-1",
    }
    assert parse_qs(item.body.decode())["invoice"] == ["in_1"]


def test_each_request_of_a_step_has_an_idempotency_key_of_its_own(web: Web, registry: ActionRegistry) -> None:
    answers(web, "/v1/invoices", {"id": "in_1"})
    answers(web, "/v1/invoiceitems", {"id": "ii_1"})
    for _ in range(2):
        run(registry, "stripe.invoices.create", INVOICE, connection(web, "stripe"))
    keys = [seen.headers["idempotency-key"] for seen in web.seen]
    assert keys == ["run/step", "run/step/item"] * 2


def test_stripes_own_error_code_is_the_code(web: Web, registry: ActionRegistry) -> None:
    body = {"error": {"code": "card_declined", "message": f"declined for {TOKEN}"}}
    answers(web, "/v1/invoices", body, 402)
    error = fails(registry, "stripe.invoices.create", INVOICE, connection(web, "stripe"))
    assert (error.code, error.retryable) == ("STRIPE_CARD_DECLINED", False)
    assert error.message == "Stripe answered 402: declined for ***"
    assert error.details == {"status": 402, "code": "card_declined"}


def test_a_code_that_passes_is_tried_again(web: Web, registry: ActionRegistry) -> None:
    answers(web, "/v1/invoices", {"error": {"code": "lock_timeout", "message": "busy"}}, 400)
    assert fails(registry, "stripe.invoices.create", INVOICE, connection(web, "stripe")).retryable


def test_too_many_requests_tells_when_to_come_back(web: Web, registry: ActionRegistry) -> None:
    web.on("/v1/invoices", 429, b"slow down", retry_after="7")
    error = fails(registry, "stripe.invoices.create", INVOICE, connection(web, "stripe"))
    assert (error.code, error.retryable) == ("HTTP_429", True)
    assert error.details == {"status": 429, "retry_after": "7", "retry_after_ms": 7_000}


def test_stripe_lists_by_the_last_id(web: Web, registry: ActionRegistry) -> None:
    def page(handler: Handler, seen: Seen) -> None:
        first = "starting_after" not in seen.path
        body = {"data": [{"id": "in_1"}, {"id": "in_2"}] if first else [{"id": "in_3"}], "has_more": first}
        handler.answer(200, json.dumps(body).encode(), content_type="application/json")

    web.replies["/v1/invoices"] = page
    output = run(registry, "stripe.invoices.list", {"customer_id": "cus_1"}, connection(web, "stripe"))
    assert [item["id"] for item in output["items"]] == ["in_1", "in_2", "in_3"]
    assert (output["pages"], output["has_more"]) == (2, False)
    assert "starting_after=in_2" in web.seen[1].path
    assert "customer=cus_1" in web.seen[1].path


def test_a_list_stops_at_the_wanted_number(web: Web, registry: ActionRegistry) -> None:
    answers(web, "/v1/invoices", {"data": [{"id": "a"}, {"id": "b"}], "has_more": True})
    output = run(registry, "stripe.invoices.list", {"max_items": 3}, connection(web, "stripe"))
    assert (len(output["items"]), output["pages"], output["has_more"]) == (3, 2, True)


def test_hubspot_enriches_a_contact(web: Web, registry: ActionRegistry) -> None:
    answers(web, "/crm/v3/objects/contacts/ada%40example.com", {"id": "7", "properties": {"company": "Analytical"}})
    args = {"email": "ada@example.com"}
    output = run(registry, "hubspot.enrich_contact", args, connection(web, "hubspot"))
    assert output == {"id": "7", "email": "ada@example.com", "properties": {"company": "Analytical"}}
    assert "idProperty=email" in web.seen[0].path


@pytest.mark.parametrize("email", ["", "..", "."])
def test_an_arg_never_changes_the_path(web: Web, registry: ActionRegistry, email: str) -> None:
    error = fails(registry, "hubspot.enrich_contact", {"email": email}, connection(web, "hubspot"))
    assert (error.code, web.seen) == ("ACTION_ARGS_INVALID", [])


def test_an_arg_with_slashes_stays_one_segment(web: Web, registry: ActionRegistry) -> None:
    path = "/crm/v3/objects/contacts/..%2F..%2Fadmin%3Fx"
    answers(web, path, {"id": "1"})
    run(registry, "hubspot.enrich_contact", {"email": "../../admin?x"}, connection(web, "hubspot"))
    assert web.seen[0].path.startswith(path)


def test_hubspot_lists_by_a_cursor(web: Web, registry: ActionRegistry) -> None:
    def page(handler: Handler, seen: Seen) -> None:
        last = "after=2" in seen.path
        body = {"results": [{"id": "2" if last else "1"}], **({} if last else {"paging": {"next": {"after": "2"}}})}
        handler.answer(200, json.dumps(body).encode(), content_type="application/json")

    web.replies["/crm/v3/objects/contacts"] = page
    output = run(registry, "hubspot.contacts.list", {}, connection(web, "hubspot"))
    assert output == {"items": [{"id": "1"}, {"id": "2"}], "pages": 2, "has_more": False}


def test_slack_posts_a_message(web: Web, registry: ActionRegistry) -> None:
    answers(web, "/chat.postMessage", {"ok": True, "channel": "C1", "ts": "1.2"})
    output = run(registry, "slack.post_message", {"channel": "#ops", "text": "hi"}, connection(web, "slack"))
    assert output == {"channel": "C1", "ts": "1.2"}
    assert json.loads(web.seen[0].body) == {"channel": "#ops", "text": "hi"}


@pytest.mark.parametrize(("code", "retryable"), [("channel_not_found", False), ("ratelimited", True)])
def test_slack_fails_with_status_200(web: Web, registry: ActionRegistry, code: str, retryable: bool) -> None:
    answers(web, "/chat.postMessage", {"ok": False, "error": code})
    error = fails(registry, "slack.post_message", {"channel": "x", "text": "hi"}, connection(web, "slack"))
    assert (error.code, error.retryable) == (f"SLACK_{code.upper()}", retryable)


def test_github_opens_an_issue(web: Web, registry: ActionRegistry) -> None:
    answers(web, "/repos/acme/app/issues", {"id": 5, "number": 12, "html_url": "https://x", "state": "open"}, 201)
    args = {"owner": "acme", "repo": "app", "title": "It broke", "labels": ["bug"]}
    output = run(registry, "github.create_issue", args, connection(web, "github"))
    assert output == {"id": 5, "number": 12, "url": "https://x", "state": "open"}
    assert web.seen[0].headers["accept"] == "application/vnd.github+json"
    assert json.loads(web.seen[0].body) == {"title": "It broke", "labels": ["bug"]}


def test_github_lists_by_links(web: Web, registry: ActionRegistry) -> None:
    here = f"http://127.0.0.1:{web.port}"

    def page(handler: Handler, seen: Seen) -> None:
        last = "page=2" in seen.path.partition("per_page=100")[2]
        link = (
            {}
            if last
            else {"link": f'<{here}/repos/a/b/issues?per_page=100&page=2>; rel="next", <{here}/x>; rel="last"'}
        )
        handler.answer(200, b'[{"number": 1}]', content_type="application/json", **link)

    web.replies["/repos/a/b/issues"] = page
    output = run(registry, "github.issues.list", {"owner": "a", "repo": "b"}, connection(web, "github"))
    assert (len(output["items"]), output["pages"]) == (2, 2)


def test_a_link_to_another_host_gets_no_secret(web: Web, registry: ActionRegistry) -> None:
    answers(web, "/repos/a/b/issues", [], link='<http://evil.test/next>; rel="next"')
    web.replies["/repos/a/b/issues"] = lambda handler, seen: handler.answer(
        200, b'[{"n": 1}]', content_type="application/json", link='<http://evil.test/next>; rel="next"'
    )
    error = fails(registry, "github.issues.list", {"owner": "a", "repo": "b"}, connection(web, "github"))
    assert error.code == "HTTP_REDIRECT_REFUSED"


def test_a_redirect_to_another_host_gets_no_secret(web: Web, registry: ActionRegistry) -> None:
    with Web() as other:
        answers(other, "/chat.postMessage", {"ok": True, "channel": "C", "ts": "1"})
        web.on("/chat.postMessage", 307, location=f"http://127.0.0.1:{other.port}/chat.postMessage")
        run(registry, "slack.post_message", {"channel": "x", "text": "hi"}, connection(web, "slack"))
        assert "authorization" not in other.seen[0].headers


def test_a_connection_is_needed(registry: ActionRegistry) -> None:
    assert registry.needs_connection("stripe.invoices.create")
    assert fails(registry, "stripe.invoices.create", INVOICE, None).code == "CONNECTION_REQUIRED"


def test_a_connection_of_another_type_is_refused(web: Web, registry: ActionRegistry) -> None:
    error = fails(registry, "stripe.invoices.create", INVOICE, connection(web, "slack"))
    assert (error.code, error.retryable, web.seen) == ("CONNECTION_TYPE_MISMATCH", False, [])


def test_a_secret_does_not_go_over_plain_http_to_strangers() -> None:
    strict = default_registry()
    made = Connection(
        id="1", slug="m", type="slack", settings={"base_url": "http://api.test"}, secrets={"bot_token": Secret(TOKEN)}
    )
    assert fails(strict, "slack.post_message", {"channel": "x", "text": "hi"}, made).code == "CONNECTION_INSECURE"


def test_private_networks_stay_closed() -> None:
    strict = default_registry()
    made = Connection(
        id="1", slug="m", type="slack", settings={"base_url": "https://127.0.0.1"}, secrets={"bot_token": Secret(TOKEN)}
    )
    assert fails(strict, "slack.post_message", {"channel": "x", "text": "hi"}, made).code == "HTTP_ADDRESS_FORBIDDEN"


def test_a_secret_that_no_header_can_hold_is_not_shown(web: Web, registry: ActionRegistry) -> None:
    made = Connection(
        id="1",
        slug="m",
        type="slack",
        settings={"base_url": f"http://127.0.0.1:{web.port}"},
        secrets={"bot_token": Secret(f"{TOKEN}\r\nx: y")},
    )
    assert fails(registry, "slack.post_message", {"channel": "x", "text": "hi"}, made).code == "HTTP_REQUEST_INVALID"


def test_args_are_checked_before_a_run(registry: ActionRegistry) -> None:
    templated = {"customer_id": "${{ TRIGGER.payload.c }}", "amount": "${{ TRIGGER.payload.a }}", "currency": "eur"}
    assert registry.validate_args("stripe.invoices.create", templated) == []
    faults = dict(registry.validate_args("stripe.invoices.create", {"amount": "much", "currency": "euro", "x": 1}))
    assert set(faults) == {"customer_id", "amount", "currency", "x"}


def test_http_request_is_signed_by_its_connection(web: Web, registry: ActionRegistry) -> None:
    answers(web, "/things", {"ok": True})
    run(registry, "http.request", {"url": "/things"}, connection(web, "http"))
    run(
        registry,
        "http.request",
        {"url": f"http://127.0.0.1:{web.port}/things"},
        connection(web, "http_basic", username="ada"),
    )
    assert [seen.headers["authorization"] for seen in web.seen] == [
        f"Bearer {TOKEN}",
        "Basic YWRhOnNlY3JldC10b2tlbi0x",
    ]


def test_http_request_sends_the_secret_nowhere_else(web: Web, registry: ActionRegistry) -> None:
    error = fails(registry, "http.request", {"url": "http://127.0.0.1:1/things"}, connection(web, "http"))
    assert (error.code, web.seen) == ("CONNECTION_HOST_MISMATCH", [])


def test_a_connector_of_ones_own(web: Web, tmp_path: Path) -> None:
    (tmp_path / "crm.yaml").write_text(
        """
connector: crm
base_url: https://crm.test
secrets: {key: {}}
auth: {type: header, secret: key, header: x-api-key}
operations:
  leads.get:
    args: {id: {required: true}}
    requests: [{path: "/leads/{args.id}"}]
"""
    )
    own = default_registry(http=HttpSettings(allow_private_networks=True), connector_folders=[tmp_path])
    answers(web, "/leads/7", ["plain", "list"])
    made = Connection(
        id="1",
        slug="m",
        type="crm",
        settings={"base_url": f"http://127.0.0.1:{web.port}"},
        secrets={"key": Secret(TOKEN)},
    )
    assert run(own, "crm.leads.get", {"id": "7"}, made) == {"body": ["plain", "list"]}
    assert web.seen[0].headers["x-api-key"] == TOKEN


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("connector: [", "cannot be used"),
        ("connector: crm\nsecret: {}", "secret"),
        ("connector: CRM", "no connector name"),
        ("connector: crm\nauth: {type: bearer, secret: key}", "not among its secrets"),
        ("connector: crm\noperations: {x: {requests: []}}", "no request"),
        ("connector: stripe", "two connectors are named 'stripe'"),
    ],
)
def test_a_connector_file_with_a_fault_is_named(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "crm.yaml").write_text(text)
    with pytest.raises(ActionLoadError, match=told):
        load_connectors([tmp_path], HttpRequest(HttpSettings()))


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ActionLoadError, match="does not exist"):
        load_connectors([tmp_path / "gone"], HttpRequest(HttpSettings()))
