"""The list of runs: filters that are links, pages, fresh rows, what it costs the reader."""

from __future__ import annotations

import pytest
from playwright.sync_api import Route, expect
from tests.console import shop
from tests.console.conftest import OpenPage, Shop

pytestmark = pytest.mark.browser


def test_filters_stand_in_the_address_and_come_back_from_it(open_page: OpenPage, counter: Shop) -> None:
    page = open_page()
    rows = page.locator("table tbody tr")
    expect(rows.first).to_be_visible()
    page.get_by_role("button", name="Failed").click()
    expect(page).to_have_url(f"{counter.url}#/runs?status=failed")
    expect(page.locator("[data-status=waiting]")).to_have_count(0)
    page.get_by_label("Workflow", exact=True).fill("order_fulfilment")
    page.get_by_label("Workflow", exact=True).press("Enter")
    expect(page).to_have_url(f"{counter.url}#/runs?status=failed&workflow_type=order_fulfilment")
    page.reload()
    expect(page.get_by_label("Workflow", exact=True)).to_have_value("order_fulfilment")
    expect(page.get_by_role("button", name="Failed")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(f"tr[data-key='{counter.runs['failed']}']")).to_be_visible()


def test_the_filter_goes_along_to_an_action_on_many_runs(open_page: OpenPage) -> None:
    page = open_page("/runs?status=failed&label.customer=cus_1")
    link = page.get_by_role("link", name="Act on these runs")
    expect(link).to_have_attribute("href", "#/batches/new?status=failed&label.customer=cus_1")


def test_a_filter_that_the_api_refuses_is_explained_in_its_words(open_page: OpenPage) -> None:
    page = open_page("/runs?started_after=yesterday")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("FIELD_INVALID")
    expect(alert).to_contain_text("started_after")


def test_a_new_run_appears_by_itself_and_moves_nothing_else(open_page: OpenPage, counter: Shop) -> None:
    page = open_page("/runs?subject_id=ord-10431")
    expect(page.get_by_role("heading", name="No run matches")).to_be_visible()
    run = shop.trigger(counter.client, counter.orders, shop.order(31))
    expect(page.locator(f"tr[data-key='{run}']")).to_be_visible()
    expect(page.locator(f"tr[data-key='{run}'] .badge")).to_have_text("Waiting")


def test_more_pages_are_loaded_below(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(signed_in=False)
    ids = [{"run_id": f"run-{99 - number}"} for number in range(60)]
    summary = counter.client.get(f"/api/workflows/runs/{counter.runs['timer']}").json()["data"]["summary"]

    def answer(route: Route) -> None:
        later = "cursor=next" in route.request.url
        data = [{**summary, **one} for one in (ids[50:] if later else ids[:50])]
        route.fulfill(json={"data": data, "next_cursor": None if later else "next", "metadata": {}})

    page.route("**/api/workflows/runs?*", answer)
    page.goto(counter.link())
    expect(page.locator("table tbody tr")).to_have_count(50)
    page.get_by_role("button", name="Load more").click()
    expect(page.locator("table tbody tr")).to_have_count(60)
    expect(page.get_by_role("button", name="Load more")).to_have_count(0)


def test_a_throttled_request_is_repeated_when_the_api_says_so(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(signed_in=False)
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) == 1:
            route.fulfill(status=429, headers={"Retry-After": "1"}, json={"error_code": "RESOURCE_EXHAUSTED"})
        else:
            route.continue_()

    page.route("**/api/workflows/runs?*", answer)
    page.goto(counter.link())
    expect(page.locator("table tbody tr").first).to_be_visible()
    assert len(asked) >= 2


def test_a_server_that_comes_back_is_found_again(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(heard=False)  # the browser itself complains of a refused connection
    rows = page.locator("table tbody tr")
    expect(rows.first).to_be_visible()
    look = "document.dispatchEvent(new Event('visibilitychange'))"
    counter.server.kill()
    try:
        page.evaluate(look)
        expect(page.get_by_role("alert")).to_contain_text("The server cannot be reached")
        expect(rows.first).to_be_visible()
    finally:
        counter.server.start()
    page.evaluate(look)
    expect(page.get_by_role("alert")).to_have_count(0)


def test_the_way_back_leads_to_where_one_was(open_page: OpenPage, counter: Shop) -> None:
    page = open_page("/runs", size=(1280, 420))
    expect(page.locator("tbody tr").nth(6)).to_be_visible()
    page.mouse.move(700, 300)
    page.mouse.wheel(0, 300)
    page.wait_for_function("scrollY > 0")
    was = page.evaluate("scrollY")
    page.locator("tbody tr").nth(5).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name="Graph")).to_be_visible()
    assert page.evaluate("scrollY") == 0
    assert page.evaluate("document.activeElement.id") == "main", (
        "the next Tab begins in the page, not in the navigation"
    )
    page.go_back()
    expect(page.locator("tbody tr").nth(6)).to_be_visible()
    page.wait_for_function("(was) => scrollY === was", arg=was)
    page.get_by_role("link", name="Definitions").click()
    expect(page.get_by_role("heading", name="Definitions")).to_be_visible()
    page.get_by_role("link", name="Runs").first.click()
    expect(page.locator("tbody tr").nth(6)).to_be_visible()
    assert page.evaluate("scrollY") == 0, "a new visit begins at the top"
