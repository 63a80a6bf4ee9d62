"""One run: followed live, seen from every side, and steered."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect
from tests.console import shop
from tests.console.conftest import OpenPage, Shop

pytestmark = pytest.mark.browser


def status(page: Page, name: str) -> None:
    """Wait until the head of the page shows this state."""
    expect(page.locator(".run-title .badge").first).to_have_text(name)


def node(page: Page, ref: str) -> Any:
    return page.locator(f".graph-node[data-id='{ref}']")


def test_a_run_is_followed_live_to_its_end(open_page: OpenPage, counter: Shop) -> None:
    run = shop.trigger(counter.client, counter.orders, shop.order(11, declines=1))
    page = open_page(f"/runs/{run}")
    status(page, "Waiting")
    expect(page.locator(".run-sentence")).to_contain_text("waits for event parcel.delivered for ord-10411")
    expect(node(page, "delivered")).to_have_attribute("data-status", "waiting")
    expect(node(page, "review")).to_have_attribute("data-status", "skipped")
    shop.deliver(counter.client, 11)
    status(page, "Completed")
    expect(node(page, "receipt")).to_have_attribute("data-status", "completed")
    expect(page.get_by_role("button", name="Pause", exact=True)).to_have_attribute("aria-disabled", "true")
    page.get_by_role("tab", name="Input & output").click()
    expect(page.locator(".values")).to_contain_text('"Ada Lovelace"')
    expect(page.locator(".values")).to_contain_text("parcels: 7")


def test_an_approval_is_given_in_the_panel(open_page: OpenPage, counter: Shop) -> None:
    run = shop.trigger(counter.client, counter.orders, shop.order(12, amount=5000))
    page = open_page(f"/runs/{run}")
    node(page, "review").click()
    panel = page.get_by_role("complementary", name="Step")
    panel.get_by_role("button", name="Approve").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Comment").fill("fine with me")
    dialog.get_by_label("Payload").fill('{"limit": 5000')
    dialog.get_by_role("button", name="Approve").click()
    expect(dialog.get_by_text("Payload (JSON) is not JSON")).to_be_visible()
    dialog.get_by_label("Payload").fill('{"limit": 5000}')
    dialog.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Approve review: applied")).to_be_visible()
    expect(node(page, "review")).to_have_attribute("data-status", "completed")
    expect(panel.locator(".json").first).to_contain_text("fine with me")


def test_a_run_is_cancelled_with_a_reason(open_page: OpenPage, counter: Shop) -> None:
    run = shop.trigger(counter.client, counter.orders, shop.order(13))
    page = open_page(f"/runs/{run}")
    status(page, "Waiting")
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("dialog").get_by_label("Reason").fill("the customer called")
    page.get_by_role("dialog").get_by_role("button", name="Cancel run").click()
    expect(page.get_by_text("Cancel run: applied")).to_be_visible()
    status(page, "Cancelled")
    expect(page.locator(".run-sentence")).to_contain_text("the customer called")
    page.get_by_role("tab", name="History").click()
    expect(page.locator(".history")).to_contain_text("cancel was applied (“the customer called”)")


def test_a_failed_run_is_redriven(open_page: OpenPage, counter: Shop) -> None:
    run = shop.trigger(counter.client, counter.orders, shop.order(14, declines=4))
    shop.wait_for(counter.client, run, "failed")
    page = open_page(f"/runs/{run}")
    expect(page.get_by_role("alert")).to_contain_text("CARD_DECLINED")
    page.get_by_role("button", name="Redrive", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Redrive").click()
    expect(page.get_by_text("Redrive: applied")).to_be_visible()
    status(page, "Waiting")
    page.get_by_role("tab", name="Timeline").click()
    expect(page.locator(".timeline-row[data-node=charge] .bar.work")).to_have_count(5)


def test_termination_asks_for_the_end_of_the_id(open_page: OpenPage, counter: Shop) -> None:
    run = shop.trigger(counter.client, counter.onboarding, {"input": {"name": "Alan"}})
    shop.wait_for(counter.client, run, "waiting")
    page = open_page(f"/runs/{run}")
    page.get_by_role("button", name="More controls").click()
    page.get_by_role("menuitem", name="Terminate").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Terminate")).to_be_disabled()
    dialog.get_by_label("to confirm").fill(run[-6:])
    dialog.get_by_role("button", name="Terminate").click()
    status(page, "Terminated")


def test_a_reset_is_previewed_before_it_forks(open_page: OpenPage, counter: Shop) -> None:
    run = counter.runs["failed"]
    page = open_page(f"/runs/{run}")
    page.get_by_role("button", name="More controls").click()
    page.get_by_role("menuitem", name="Reset").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("after reserve completed").click()
    expect(dialog.locator("[data-group=kept]")).to_contain_text("reserve")
    expect(dialog.locator("[data-group=rerun]")).to_contain_text("charge")
    dialog.get_by_role("button", name="Fork the run").click()
    expect(page.get_by_text("Forked from", exact=True)).to_be_visible()
    assert run not in page.url
    expect(page.get_by_role("link", name=f"…{run[-12:]}")).to_be_visible()


def test_a_rejected_control_says_why(open_page: OpenPage, counter: Shop) -> None:
    run = shop.trigger(counter.client, counter.onboarding, {"input": {"name": "Alan"}})
    shop.wait_for(counter.client, run, "waiting")
    page = open_page(f"/runs/{run}?node=settle")
    shop.control(counter.client, run, "pause")
    status(page, "Paused")
    page.get_by_role("button", name="Resume", exact=True).click()
    # Somebody else is faster.
    shop.control(counter.client, run, "resume")
    shop.wait_for(counter.client, run, "waiting")
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(page.locator(".toast")).to_contain_text("Resume was rejected")


def test_what_the_api_refuses_stands_in_the_dialog(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(f"/runs/{counter.runs['delivery']}")
    page.get_by_role("button", name="More controls").click()
    page.get_by_role("menuitem", name="Send a signal").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Event name").fill("n" * 300)
    dialog.get_by_role("button", name="Send").click()
    expect(dialog.get_by_role("alert").filter(has_text="FIELD_INVALID").first).to_be_visible()


def test_a_stalled_run_says_so_and_offers_its_redrive(open_page: OpenPage, counter: Shop) -> None:
    run = counter.runs["delivery"]
    page = open_page(signed_in=False)

    def stall(route: Route) -> None:
        answer = route.fetch()
        body = answer.json()
        reason = "the stored state cannot be read"
        body["data"]["summary"]["stalled"] = {"reason": reason, "since": "2026-01-01T00:00:00.000Z"}
        route.fulfill(response=answer, json=body)

    page.route(f"**/api/workflows/runs/{run}", stall)
    page.goto(counter.link(f"/runs/{run}"))
    expect(page.get_by_role("alert")).to_contain_text("the stored state cannot be read")
    page.get_by_role("alert").get_by_role("button", name="Redrive").click()
    expect(page.get_by_role("dialog", name="Redrive this run?")).to_be_visible()


def test_an_output_that_lies_in_the_bucket_is_read_by_a_command(open_page: OpenPage, counter: Shop) -> None:
    """The page follows no address to another host, and sends no key there."""
    run = counter.runs["completed"]
    page = open_page(signed_in=False)
    elsewhere: list[str] = []
    page.on("request", lambda request: elsewhere.append(request.url) if "bucket.invalid" in request.url else None)
    place = {"Location": "https://bucket.invalid/output.json"}
    page.route(f"**/api/workflows/runs/{run}/output", lambda route: route.fulfill(status=303, headers=place))
    page.goto(counter.link(f"/runs/{run}?tab=values"))
    expect(page.locator(".values")).to_contain_text(f'"$DUCTOR_API_URL/api/workflows/runs/{run}/output"')
    assert elsewhere == []


def test_a_click_that_got_no_answer_is_repeated_under_its_id(open_page: OpenPage, counter: Shop) -> None:
    run = shop.trigger(counter.client, counter.onboarding, {"input": {"name": "Alan"}})
    shop.wait_for(counter.client, run, "waiting")
    page = open_page(f"/runs/{run}")
    sent: list[str] = []

    def lose_the_first_answer(route: Route) -> None:
        sent.append(json.loads(route.request.post_data or "{}")["request_id"])
        if len(sent) == 1:
            route.fetch()
            route.abort()
        else:
            route.continue_()

    page.route("**/*:pause", lose_the_first_answer)
    page.get_by_role("button", name="Pause", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    status(page, "Paused")
    expect(page.get_by_text("Pause: applied")).to_be_visible()
    assert len(sent) == 2
    assert sent[0] == sent[1]
    audit = counter.client.get(f"/api/v2/workflow-runs/{run}/audit").json()["items"]
    assert [entry["request_id"] for entry in audit if entry["outcome"] == "applied"] == [sent[0]]


def test_items_of_a_scatter_are_counted_and_opened(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(f"/runs/{counter.runs['delivery']}")
    expect(page.locator(".graph-count")).to_contain_text("7 items")
    page.get_by_role("button", name="Show the whole graph").click()
    node(page, "pack").click()
    panel = page.get_by_role("complementary", name="Step")
    expect(panel.locator(".item")).to_have_count(7)
    panel.locator(".item").nth(2).click()
    expect(panel).to_contain_text("SKU-003")
    expect(page).to_have_url(f"{counter.url}#/runs/{counter.runs['delivery']}?node=pack%402")


def test_taken_edges_differ_from_those_passed_by(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(f"/runs/{counter.runs['delivery']}")
    expect(page.locator(".graph-edge.taken[data-source=large][data-target=charge]")).to_have_count(1)
    expect(page.locator(".graph-edge.passed-by[data-source=large][data-target=review]")).to_have_count(1)


def test_the_other_sides_of_a_run(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(f"/runs/{counter.runs['failed']}?tab=steps")
    expect(page.locator("tr[data-key=charge]")).to_contain_text("CARD_DECLINED")
    page.get_by_role("tab", name="Tree").click()
    expect(page.locator(".tree")).to_contain_text("this run")
    page.get_by_role("tab", name="History").click()
    page.get_by_role("button", name="Attempts").click()
    expect(page.locator(".history li:visible").first).to_contain_text("attempt 1 of core.echo succeeded")
    page.locator(".history li:visible summary").first.click()
    expect(page.locator(".history li:visible .json").first).to_contain_text('"core.echo"')


def test_large_numbers_show_and_are_copied_as_they_are(open_page: OpenPage, counter: Shop) -> None:
    large = 9007199254740993
    run = shop.trigger(counter.client, counter.onboarding, {"input": {"name": "Ada", "account": large}})
    page = open_page(f"/runs/{run}?tab=values", permissions=["clipboard-read", "clipboard-write"])
    values = page.locator(".values")
    expect(values.locator(".number")).to_have_text(str(large))
    values.get_by_role("button", name="Copy JSON").first.click()
    expect(values.locator(".json-box .button path").first).to_be_visible()
    copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert copied == {"name": "Ada", "account": large}
    page.add_init_script("delete JSON.rawJSON")
    page.reload()
    expect(values.locator(".number")).to_have_text("9007199254740992 rounded")


def test_a_person_decides_by_what_the_run_was_started_with(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(f"/runs/{counter.runs['approval']}?node=review")
    page.get_by_role("button", name="Approve…").click()
    expect(page.get_by_role("dialog").locator(".json")).to_contain_text("4800")


def test_what_went_wrong_and_what_is_waited_for_lead_to_their_step(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(f"/runs/{counter.runs['failed']}")
    page.get_by_role("alert").get_by_role("link", name="Open the step").click()
    panel = page.get_by_role("complementary", name="Step")
    expect(panel).to_contain_text("Charge the card")
    page.goto(counter.link(f"/runs/{counter.runs['approval']}"))
    page.locator(".run-sentence").get_by_role("link", name="Decide").click()
    expect(panel.get_by_role("button", name="Approve…")).to_be_visible()


def test_the_graph_stays_in_sight_when_a_panel_opens_beside_it(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(f"/runs/{counter.runs['delivery']}", size=(1680, 1400))
    expect(page.locator(".graph-node").first).to_be_visible()
    node(page, "charge").click()
    expect(page.get_by_role("complementary", name="Step")).to_be_visible()
    for name in ("check", "receipt", "refuse", "reserve"):
        expect(node(page, name)).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="Close the step").click()
    page.goto(f"{counter.url}#/runs/{counter.runs['delivery']}?node=receipt")
    for name in ("check", "receipt", "refuse", "reserve"):
        expect(node(page, name)).to_be_in_viewport(ratio=1)


def test_a_run_that_is_not_there_leads_back(open_page: OpenPage, counter: Shop) -> None:
    page = open_page("/runs/01a229c6-9860-7caf-95eb-000000000000")
    expect(page.get_by_role("alert")).to_contain_text("RUN_NOT_FOUND")
    expect(page.locator(".tab-place")).to_be_hidden()
    page.get_by_role("link", name="All runs").click()
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
