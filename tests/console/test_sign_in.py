"""Signing in: what is refused and why, where the key is kept, and the link that signs in."""

from __future__ import annotations

import httpx
import pytest
from playwright.sync_api import Page, expect
from tests.console.conftest import OpenPage, Shop

pytestmark = pytest.mark.browser


def sign_in(page: Page, key: str, tenant: str, *, remember: bool = False) -> None:
    page.get_by_label("API key").fill(key)
    page.get_by_label("Tenant").fill(tenant)
    if remember:
        page.get_by_label("Remember on this machine").check()
    page.get_by_role("button", name="Sign in").click()


def kept(page: Page, storage: str) -> bool:
    return bool(page.evaluate(f"{storage}.getItem('ductor.session') !== null"))


def test_a_wrong_key_is_refused_in_words(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(signed_in=False)
    sign_in(page, "dk_unknown", counter.tenant)
    expect(page.get_by_role("alert").filter(has_text="This key is not known")).to_be_visible()
    assert not kept(page, "sessionStorage")


def test_another_tenant_is_refused_in_words(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(signed_in=False)
    sign_in(page, counter.key, "01a22979-0000-7000-8000-000000000000")
    expect(page.get_by_role("alert").filter(has_text="This key belongs to another tenant")).to_be_visible()


def test_a_key_without_the_scope_is_refused_in_words(open_page: OpenPage, counter: Shop) -> None:
    lines = (counter.server.data / "admin.env").read_text().splitlines()
    admin = dict(line.removeprefix("export ").split("=", 1) for line in lines)
    headers = {"Authorization": f"Bearer {admin['DUCTOR_API_KEY']}", "X-Tenant-ID": counter.tenant}
    body = {"name": "narrow", "scopes": ["bridge:work"]}
    issued = httpx.post(f"{counter.server.url}/api/admin/api-keys", headers=headers, json=body).json()["data"]
    page = open_page(signed_in=False)
    sign_in(page, next(value for value in issued.values() if str(value).startswith("dk_")), counter.tenant)
    expect(page.get_by_role("alert").filter(has_text="This key may not read runs")).to_be_visible()


def test_the_key_stays_in_the_tab_unless_it_is_to_be_remembered(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(signed_in=False)
    sign_in(page, counter.key, counter.tenant)
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    assert (kept(page, "sessionStorage"), kept(page, "localStorage")) == (True, False)
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, counter.key, counter.tenant, remember=True)
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    assert kept(page, "localStorage")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("API key")).to_be_visible()
    assert not kept(page, "localStorage")
    assert not kept(page, "sessionStorage")


def test_a_link_signs_in_and_takes_the_key_out_of_the_address(open_page: OpenPage, counter: Shop) -> None:
    page = open_page("/runs?status=failed")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    assert page.url == f"{counter.url}#/runs?status=failed"
    assert page.evaluate("history.length") <= 2
    assert counter.key not in page.evaluate("document.documentElement.outerHTML")


def test_a_key_that_is_revoked_leads_back_to_the_sign_in(open_page: OpenPage, counter: Shop) -> None:
    page = open_page()
    expect(page.get_by_role("table", name="Runs")).to_be_visible()
    page.route(
        "**/api/workflows/runs*", lambda route: route.fulfill(status=401, json={"error_code": "UNAUTHENTICATED"})
    )
    page.get_by_role("button", name="Failed").click()
    expect(page.get_by_text("This key is not known")).to_be_visible()
    assert not kept(page, "sessionStorage")
