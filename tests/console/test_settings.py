"""Settings: what an administrator sees once, what nobody sees twice, and what others are told instead."""

from __future__ import annotations

from uuid import uuid4

import httpx
import pytest
from playwright.sync_api import Page, Route, expect
from tests.console.conftest import OpenPage, Shop

pytestmark = pytest.mark.browser


@pytest.fixture
def admin(open_page: OpenPage, counter: Shop) -> Page:
    """A page that is signed in as the administrator."""
    page = open_page(signed_in=False)
    page.goto("about:blank")
    page.goto(f"{counter.url}#{httpx.QueryParams({**who(counter), 'to': '/settings'})}")
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    return page


def who(counter: Shop) -> dict[str, str]:
    lines = (counter.server.data / "admin.env").read_text().splitlines()
    values = dict(line.removeprefix("export ").split("=", 1) for line in lines)
    return {"key": values["DUCTOR_API_KEY"], "tenant": values["DUCTOR_TENANT_ID"]}


def area(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name).click()
    expect(page.get_by_role("heading", name=name, level=2)).to_be_visible()


@pytest.mark.parametrize("tab", ["environments", "variables", "connections", "keys", "plan"])
def test_areas_that_are_refused_name_the_missing_scope(open_page: OpenPage, tab: str) -> None:
    page = open_page(f"/settings?tab={tab}")
    expect(page.get_by_text("It lacks the scope admin.")).to_be_visible()
    expect(page.get_by_text("Your key may not see")).to_be_visible()
    expect(page.get_by_role("tabpanel").get_by_role("button")).to_have_count(0)


def test_a_key_shows_once_works_and_is_revoked(admin: Page, counter: Shop) -> None:
    area(admin, "API keys")
    name = f"key {uuid4().hex[:8]} <b>"
    admin.get_by_role("button", name="New key").click()
    dialog = admin.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill(name)
    dialog.get_by_label("Viewer").check()
    dialog.get_by_label("Other roles").fill("finance_manager")
    dialog.get_by_role("button", name="Issue the key").click()
    secret = admin.locator("[data-secret]")
    expect(secret).to_be_visible()
    key = secret.inner_text()
    headers = {"Authorization": f"Bearer {key}", "X-Tenant-ID": counter.tenant}
    assert httpx.get(f"{counter.server.url}/api/workflows/runs", headers=headers).status_code == 200
    assert httpx.get(f"{counter.server.url}/api/admin/api-keys", headers=headers).status_code == 403
    admin.get_by_role("button", name="I have kept it").click()
    row = admin.get_by_role("row").filter(has_text=name)
    expect(row).to_contain_text("finance_manager")
    assert key not in admin.content()
    admin.reload()
    expect(row).to_be_visible()
    assert key not in admin.content()
    row.get_by_role("button", name="Revoke").click()
    admin.get_by_role("dialog").get_by_role("button", name="Revoke", exact=True).click()
    expect(row).to_contain_text("Revoked")


def test_a_form_is_offered_when_what_it_needs_is_there(admin: Page) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    admin.route("**/api/connections/types", hold)
    with admin.expect_request("**/api/connections/types"):
        area(admin, "Connections")
    expect(admin.get_by_text("Reading…")).to_be_visible()
    expect(admin.get_by_role("button", name="New connection")).to_be_hidden()
    held.pop().continue_()
    expect(admin.get_by_role("button", name="New connection")).to_be_visible()


def test_the_secret_of_a_connection_goes_in_and_never_out(admin: Page) -> None:
    area(admin, "Connections")
    slug = f"mail-{uuid4().hex[:8]}"
    admin.get_by_role("button", name="New connection").click()
    admin.get_by_label("What does it connect to?").select_option("http")
    admin.get_by_role("button", name="Go on").click()
    dialog = admin.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill(slug)
    dialog.get_by_label("base_url").fill("https://mail.example.com")
    dialog.get_by_label("token").fill("very-secret-token")
    dialog.get_by_role("button", name="Create").click()
    row = admin.get_by_role("row").filter(has_text=slug)
    expect(row).to_contain_text("token ••••")
    assert "very-secret-token" not in admin.content()
    row.get_by_role("button", name=f"More for {slug}").click()
    row.get_by_role("menuitem", name="Edit…").click()
    assert admin.get_by_role("dialog").get_by_label("token").input_value() == ""
    admin.get_by_role("dialog").get_by_label("Title").fill("Mail")
    admin.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(row).to_contain_text("Mail")
    expect(row).to_contain_text("token ••••")
    row.get_by_role("button", name=f"More for {slug}").click()
    row.get_by_role("menuitem", name="Delete…").click()
    admin.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(row).to_have_count(0)


def test_an_environment_and_a_variable_of_it(admin: Page) -> None:
    key = f"stage_{uuid4().hex[:8]}"
    admin.get_by_role("button", name="New environment").click()
    dialog = admin.get_by_role("dialog")
    dialog.get_by_label("Key").fill(key)
    dialog.get_by_label("Versions come into it by promotion only").check()
    dialog.get_by_role("button", name="Create").click()
    expect(admin.get_by_role("row").filter(has_text=key)).to_contain_text("By promotion only")
    area(admin, "Variables")
    admin.get_by_label("Environment", exact=True).select_option(key)
    expect(admin.get_by_text(f"The environment {key} sets none.")).to_be_visible()
    admin.get_by_role("button", name="Set a variable").click()
    dialog.get_by_label("Name").fill("limit")
    dialog.get_by_label("Value").fill('{"eur": 5}')
    dialog.get_by_role("button", name="Save").click()
    row = admin.get_by_role("row").filter(has_text="limit")
    expect(row).to_contain_text('{"eur":5}')
    row.get_by_role("button", name="Remove limit").click()
    dialog.get_by_role("button", name="Remove", exact=True).click()
    expect(row).to_have_count(0)


def test_the_plan_says_what_is_used(admin: Page) -> None:
    area(admin, "Plan and limits")
    panel = admin.get_by_role("tabpanel")
    expect(panel).to_contain_text("Steps per definition")
    expect(panel).to_contain_text("no limit")
