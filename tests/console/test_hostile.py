"""Whatever a run carries stays text: in titles, outputs, errors, labels, subjects and the address itself."""

from __future__ import annotations

from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect
from tests.console import shop
from tests.console.conftest import OpenPage, Shop
from tests.e2e.server import publish

pytestmark = pytest.mark.browser

EVIL: Final = "<img src=x onerror=\"window.hurt='yes'\"><script>window.hurt='yes'</script>"
SVG: Final = "</text><svg onload=\"window.hurt='yes'\">"
DOCUMENT: Final[dict[str, Any]] = {
    "family_slug": "hostile",
    "title": EVIL,
    "environment": "default",
    "steps": [
        {
            "ref": "echo",
            "type": "action",
            "title": EVIL,
            "action": "core.echo",
            "redaction_policy": "none",
            "args": {"said": EVIL, EVIL: [SVG]},
        },
        {
            "ref": "fail",
            "type": "action",
            "title": SVG,
            "action": "core.fail",
            "redaction_policy": "none",
            "args": {"code": "EVIL", "message": EVIL, "retryable": False},
        },
    ],
    "edges": [{"source_ref": "echo", "target_ref": "fail"}],
}


@pytest.fixture(scope="module")
def hostile(counter: Shop) -> str:
    """A failed run whose every text tries to be markup."""
    body = {
        "input": {"payload": EVIL},
        "subject_type": "order",
        "subject_id": EVIL,
        "correlation_labels": [{"key": "evil", "id": EVIL}],
    }
    run = shop.trigger(counter.client, publish(counter.client, DOCUMENT), body)
    shop.wait_for(counter.client, run, "failed")
    return run


def unhurt(page: Page) -> None:
    assert page.evaluate("window.hurt") is None
    assert page.locator("img[src=x], [onerror], [onload]").count() == 0


@pytest.mark.parametrize("tab", ["graph", "timeline", "steps", "history", "values", "tree"])
def test_no_side_of_a_run_takes_its_values_for_markup(open_page: OpenPage, hostile: str, tab: str) -> None:
    page = open_page(f"/runs/{hostile}?tab={tab}&node=echo")
    expect(page.get_by_role("heading", level=1)).to_contain_text("<img src=x onerror=")
    expect(page.get_by_role("complementary", name="Step").locator(".json").first).to_contain_text("<script>")
    page.wait_for_load_state("networkidle")
    unhurt(page)


def test_the_list_and_the_definition_show_it_as_text(open_page: OpenPage, counter: Shop, hostile: str) -> None:
    page = open_page("/runs?workflow_type=hostile")
    expect(page.locator(f"tr[data-key='{hostile}']")).to_contain_text("<img src=x onerror=")
    unhurt(page)
    definition = counter.client.get(f"/api/workflows/runs/{hostile}").json()["data"]["summary"]["definition_id"]
    page.goto(f"{counter.url}#/definitions/{definition}")
    expect(page.get_by_role("heading").first).to_be_visible()
    page.wait_for_load_state("networkidle")
    unhurt(page)


@pytest.mark.parametrize(
    "path", ["/runs?q=<img src=x onerror=hurt=1>", "/<img src=x>", "/runs/%3Cimg%20src=x%3E", "/%"]
)
def test_neither_does_the_address(open_page: OpenPage, path: str) -> None:
    page = open_page(path)
    expect(page.get_by_role("main")).not_to_be_empty()
    page.wait_for_load_state("networkidle")
    unhurt(page)


def test_the_policy_stops_what_would_get_through(open_page: OpenPage) -> None:
    """The second line: even markup that somebody injected does not run."""
    page = open_page(heard=False)
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    broken: list[str] = page.evaluate(
        """() => new Promise((resolve) => {
          const seen = [];
          document.addEventListener("securitypolicyviolation", (event) => {
            event.preventDefault();
            seen.push(event.effectiveDirective);
            if (seen.length === 2) resolve(seen.sort());
          });
          const script = document.createElement("script");
          script.textContent = "window.hurt = 'yes'";
          document.body.append(script);
          fetch("https://elsewhere.invalid/").catch(() => {});
        })"""
    )
    assert broken == ["connect-src", "script-src-elem"]
    assert page.evaluate("window.hurt") is None
