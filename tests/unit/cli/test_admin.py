"""`ductor admin` against a real server in this process, and how it takes secrets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.actions.web import Web
from tests.unit.cli.local import LocalServer
from typer.testing import CliRunner, Result

from ductor.cli.failure import Exit
from ductor.cli.main import app

RUNNER = CliRunner()
SECRET = "sk_live_abcdef"

# As the reference text has it.
INVOICE = """
steps:
  - ref: create_invoice
    type: action
    action: stripe.invoices.create
    connection_ref: "${{ VARS.stripe_connection_ref }}"
    connection_ref_mode: direct
    args:
      customer_id: "${{ TRIGGER.payload.customer_id }}"
      amount: "${{ TRIGGER.payload.amount_cents }}"
      currency: "${{ TRIGGER.payload.currency }}"
    retry_max_attempts: 3
    retry_backoff_ms: 1000
    timeout_ms: 10000
    on_error: fail
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with LocalServer(tmp_path_factory.mktemp("data"), {"DUCTOR_HTTP_ALLOW_PRIVATE": "1"}) as made:
        yield made


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as made:
        yield made


def ductor(server: LocalServer, *arguments: str, text: str | None = None) -> Result:
    done = RUNNER.invoke(app, [*arguments, "--data", str(server.data)], input=text, env={"DUCTOR_API_KEY": None})
    assert SECRET not in done.output
    return done


def good(server: LocalServer, *arguments: str, text: str | None = None) -> str:
    done = ductor(server, *arguments, text=text)
    assert done.exit_code == 0, done.output
    return done.output


def rows(server: LocalServer, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(good(server, *arguments, "--format", "json"))
    return found


def answer(web: Web, path: str, body: Any) -> None:
    web.on(path, 200, json.dumps(body).encode(), content_type="application/json")


def finished(server: LocalServer, folder: Path, document: dict[str, Any], payload: dict[str, Any]) -> str:
    """What `trigger --wait` prints of a run of `document`."""
    file = folder / "flow.yaml"
    file.write_text(yaml.safe_dump({"type": "workflow_definition", "definition": document}))
    good(server, "workflow", "publish", str(file))
    return good(server, "trigger", document["family_slug"], "--input", json.dumps(payload), "--wait")


def test_the_invoice_sample_runs_with_a_connection(server: LocalServer, web: Web, tmp_path: Path) -> None:
    answer(web, "/v1/invoices", {"id": "in_1", "status": "draft", "echo": SECRET})
    answer(web, "/v1/invoiceitems", {"id": "ii_1"})
    base = f"base_url=http://127.0.0.1:{web.port}"
    create = ("admin", "connections", "create", "stripe_main", "--type", "stripe", "--set", base)
    good(server, *create, "--secret", "api_key=@-", text=f"{SECRET}\n")
    good(server, "admin", "variables", "set", "stripe_connection_ref", "stripe_main")
    document = {"family_slug": "invoices", **yaml.safe_load(INVOICE)}
    payload = {"customer_id": "cus_1", "amount_cents": 1200, "currency": "eur"}
    assert '"id": "in_1"' in finished(server, tmp_path, document, payload)
    assert {seen.headers["authorization"] for seen in web.seen} == {f"Bearer {SECRET}"}
    assert all(SECRET.encode() not in path.read_bytes() for path in server.data.iterdir())


def test_the_lead_sample_runs_with_a_connection(server: LocalServer, web: Web, tmp_path: Path) -> None:
    answer(web, "/crm/v3/objects/contacts/ada%40example.com", {"id": "7", "properties": {"company": "Analytical"}})
    base = f"base_url=http://127.0.0.1:{web.port}"
    create = ("admin", "connections", "create", "hub", "--type", "hubspot", "--set", base)
    good(server, *create, "--secret", "access_token=@-", text=SECRET)
    good(server, "admin", "environments", "connect", "default", "crm", "hub")
    enrich = {
        "ref": "enrich",
        "type": "STEP_TYPE_ACTION",
        "action": "hubspot.enrich_contact",
        "connection_ref": "crm",
        "connection_ref_mode": "environment",
        "args": {"email": "${{ TRIGGER.payload.email }}"},
    }
    document = {"family_slug": "lead_router", "title": "Lead Router v2", "steps": [enrich]}
    printed = finished(server, tmp_path, document, {"email": "ada@example.com", "source": "webinar"})
    assert '"company": "Analytical"' in printed


def test_a_connection_is_tested(server: LocalServer, web: Web) -> None:
    base = f"base_url=http://127.0.0.1:{web.port}"
    create = ("admin", "connections", "create", "chat", "--type", "slack", "--set", base)
    good(server, *create, "--secret", "bot_token", text=f"{SECRET}\n")
    answer(web, "/auth.test", {"ok": True})
    assert "chat works" in good(server, "admin", "connections", "test", "chat")
    answer(web, "/auth.test", {"ok": False, "error": "invalid_auth"})
    failed = ductor(server, "admin", "connections", "test", "chat")
    assert (failed.exit_code, "SLACK_INVALID_AUTH" in failed.output) == (Exit.FAILED, True)
    good(server, "admin", "connections", "update", "chat", "--title", "Chat", "--inactive")
    (shown,) = [row for row in rows(server, "admin", "connections", "list") if row["slug"] == "chat"]
    assert (shown["title"], shown["active"], shown["secrets"]) == ("Chat", False, ["bot_token"])
    good(server, "admin", "connections", "delete", "chat")


def test_a_secret_does_not_stand_on_the_command_line(server: LocalServer) -> None:
    create = ("admin", "connections", "create", "x", "--type", "slack", "--secret", "bot_token=plain-text")
    done = ductor(server, *create)
    assert done.exit_code == Exit.USAGE
    assert "plain-text" not in done.output


def test_a_secret_comes_from_a_file_or_a_variable(
    server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n")
    monkeypatch.setenv("MY_TOKEN", SECRET)
    for slug, source in (("a", f"@{tmp_path / 'token'}"), ("b", "env:MY_TOKEN")):
        create = ("admin", "connections", "create", slug, "--type", "github", "--secret", f"token={source}")
        good(server, *create)
    missing = ("admin", "connections", "create", "c", "--type", "github", "--secret", "token=env:NOBODY")
    assert ductor(server, *missing).exit_code == Exit.USAGE


def test_environments_releases_and_promotion(server: LocalServer, tmp_path: Path) -> None:
    good(server, "admin", "environments", "create", "prod", "--no-direct", "--require-promotion")
    good(server, "admin", "environments", "release", "prod", "wave-1", "--require")
    (prod,) = [row for row in rows(server, "admin", "environments", "list") if row["key"] == "prod"]
    assert (prod["release"], prod["require_promotion"]) == (
        {"required": True, "external_deployment_id": "wave-1"},
        True,
    )
    file = tmp_path / "echo.yaml"
    file.write_text("family_slug: promoted\nsteps: [{ref: a, type: action, action: core.echo}]\n")
    version = good(server, "workflow", "publish", str(file)).split("(")[1].split(")")[0]
    assert "promoted version 2" in good(server, "admin", "environments", "promote", version, "--to", "prod")
    good(server, "admin", "environments", "update", "prod", "--inactive")


def test_keys_and_tenants(server: LocalServer) -> None:
    key = good(server, "admin", "keys", "issue", "dashboard", "--role", "viewer").splitlines()[0]
    key_id = key.split("_")[1]
    assert key_id in {row["id"] for row in rows(server, "admin", "keys", "list")}
    good(server, "admin", "keys", "revoke", key_id)
    made = good(server, "admin", "tenants", "create", "Acme", "--plan", "small", "--limit", "max_steps=5")
    tenant = made.split()[1]
    (shown,) = [row for row in rows(server, "admin", "tenants", "list") if row["id"] == tenant]
    assert (shown["entitlements"]["plan"], shown["entitlements"]["max_steps"]) == ("small", 5)
    good(server, "admin", "tenants", "entitle", tenant, "--step-type", "wait", "--step-type", "action")


def test_a_plan_keeps_what_is_not_named_unless_it_is_replaced(server: LocalServer) -> None:
    options = ("--plan", "small", "--limit", "max_steps=5", "--step-type", "wait")
    tenant = good(server, "admin", "tenants", "create", "Keeper", *options).split()[1]

    def plan() -> tuple[str, list[str] | None, int, int]:
        (shown,) = [row["entitlements"] for row in rows(server, "admin", "tenants", "list") if row["id"] == tenant]
        return shown["plan"], shown["step_types"], shown["max_steps"], shown["retention_days"]

    good(server, "admin", "tenants", "entitle", tenant, "--limit", "retention_days=30")
    assert plan() == ("small", ["STEP_TYPE_WAIT"], 5, 30)

    good(server, "admin", "tenants", "entitle", tenant, "--limit", "retention_days=0", "--replace")
    assert plan() == ("", None, 0, 0)


def test_variables(server: LocalServer) -> None:
    good(server, "admin", "variables", "set", "limit", "12")
    good(server, "admin", "variables", "set", "region", "eu")
    found = {row["name"]: row["value"] for row in rows(server, "admin", "variables", "list")}
    assert (found["limit"], found["region"]) == (12, "eu")
    good(server, "admin", "variables", "unset", "limit")


def test_an_ordinary_key_is_told_which_one_it_takes(server: LocalServer) -> None:
    done = RUNNER.invoke(app, ["admin", "tenants", "list", "--data", str(server.data)], env=server.ordinary)
    assert done.exit_code == Exit.REFUSED
    assert "admin.env" in done.output
