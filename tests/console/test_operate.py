"""Approvals, schedules, events and batches: what an operator does without leaving the console."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from playwright.sync_api import Page, expect
from tests.console import shop
from tests.console.conftest import PHONE, OpenPage, Shop
from tests.e2e.server import publish

pytestmark = pytest.mark.browser


def approval(*, audience: dict[str, Any]) -> dict[str, Any]:
    gate = {
        "ref": "review",
        "type": "approval",
        "action": "approval",
        "title": "Is it all right?",
        "redaction_policy": "none",
    }
    after = {"type": "action", "action": "core.echo", "redaction_policy": "none"}
    return {
        "family_slug": f"gate_{uuid4().hex[:10]}",
        "title": "Ask somebody",
        "steps": [
            {**gate, "args": {"audience": audience}},
            {"ref": "yes", **after, "args": {"limit": "${{ STEPS.review.output.payload.limit }}"}},
            {"ref": "no", **after, "args": {"text": "no"}},
        ],
        "edges": [
            {"source_ref": "review", "target_ref": "yes", "type": "approved"},
            {"source_ref": "review", "target_ref": "no", "type": "rejected"},
        ],
    }


def waiting(client: httpx.Client, document: dict[str, Any], subject: str, input_: Any = None) -> str:
    """A run of a new workflow that waits for a person."""
    body = {"input": input_ or {}, "subject_type": "invoice", "subject_id": subject}
    run = shop.trigger(client, publish(client, document), body)
    shop.wait_for(client, run, "waiting")
    return run


def test_an_approval_is_given_from_the_inbox(open_page: OpenPage, counter: Shop) -> None:
    document = approval(audience={"roles": ["operator"]})
    run = waiting(counter.client, document, "INV-1", {"amount": 1200, "supplier": "ACME"})
    page = open_page(f"/approvals?workflow={document['family_slug']}")
    card = page.locator(f".gate[data-run='{run}']")
    expect(card).to_contain_text("Is it all right? in Ask somebody")
    expect(card).to_contain_text("May be decided by role operator")
    expect(card).to_contain_text("invoice INV-1")
    expect(card.locator(".gate-input")).to_contain_text("amount: 1200 · supplier: ACME")
    card.get_by_role("button", name="Approve").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".json").first).to_contain_text("1200")
    dialog.get_by_text("What the run knows so far").click()
    expect(dialog.locator(".json").last).to_contain_text("outputs")
    dialog.get_by_label("Comment").fill("fine <b>by</b> me")
    dialog.get_by_label("Payload").fill('{"limit": 5}')
    dialog.get_by_role("button", name="Approve", exact=True).click()
    expect(card).to_be_hidden()
    shop.wait_for(counter.client, run, "completed")
    output = counter.client.get(f"/api/v2/workflow-runs/{run}/nodes/review/output").json()["output"]
    assert (output["decision"], output["comment"], output["payload"]) == ("approved", "fine <b>by</b> me", {"limit": 5})


def test_who_decides_too_late_is_told_so(open_page: OpenPage, counter: Shop) -> None:
    """An accepted decision is not yet one that counts."""
    document = approval(audience={"roles": ["operator"]})
    run = waiting(counter.client, document, "INV-4")
    page = open_page(f"/approvals?workflow={document['family_slug']}")
    page.locator(f".gate[data-run='{run}']").get_by_role("button", name="Reject").click()
    path = f"/api/v2/workflow-runs/{run}/steps/review:approve"
    assert counter.client.post(path, json={"request_id": "faster", "payload": {"limit": 5}}).status_code == 202
    shop.wait_for(counter.client, run, "completed")
    page.get_by_role("dialog").get_by_role("button", name="Reject", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("Reject was rejected")
    expect(page.locator(".toast")).to_contain_text("already decided")
    page.locator(".toast").get_by_role("link", name="Open the run").click()
    expect(page.locator(".badge").first).to_have_text("Completed")


def test_who_is_not_in_the_audience_is_told_so(open_page: OpenPage, counter: Shop) -> None:
    document = approval(audience={"roles": ["finance_manager"], "users": ["cfo@example.com"], "match_mode": "all"})
    run = waiting(counter.client, document, "INV-2")
    page = open_page(f"/approvals?workflow={document['family_slug']}")
    card = page.locator(f".gate[data-run='{run}']")
    expect(card).to_contain_text("May be decided by role finance_manager and cfo@example.com")
    card.get_by_role("button", name="Reject").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Reject", exact=True).click()
    expect(dialog).to_contain_text("AUDIENCE_MISMATCH")
    dialog.get_by_role("button", name="Cancel").click()
    expect(card).to_contain_text("Your key is not in the audience of this approval")
    expect(card.get_by_role("button", name="Approve")).to_have_attribute("aria-disabled", "true")
    summary = counter.client.get(f"/api/workflows/runs/{run}").json()["data"]["summary"]
    assert summary["status"] == "waiting"


def test_approvals_inside_a_fan_out_are_decided_one_by_one(open_page: OpenPage, counter: Shop) -> None:
    document = approval(audience={"roles": ["operator"]})
    gate = document["steps"][0]
    document["steps"] = [
        {"ref": "each", "type": "scatter", "args": {"items_expr": "TRIGGER.payload.items"}},
        gate,
        {"ref": "all", "type": "gather", "args": {}},
    ]
    ends = [("each", "review", "success"), ("review", "all", "done")]
    document["edges"] = [{"source_ref": source, "target_ref": target, "type": kind} for source, target, kind in ends]
    run = waiting(counter.client, document, "INV-3", {"items": [1, 2]})
    page = open_page(f"/approvals?workflow={document['family_slug']}")
    for node in ("review@0", "review@1"):
        card = page.locator(f".gate[data-node='{node}']")
        card.get_by_role("button", name="Approve").click()
        page.get_by_role("dialog").get_by_role("button", name="Approve", exact=True).click()
        expect(card).to_be_hidden()
    shop.wait_for(counter.client, run, "completed")


def test_a_definition_that_cannot_be_read_does_not_hide_the_others(open_page: OpenPage, counter: Shop) -> None:
    document = approval(audience={"roles": ["operator"]})
    unread = waiting(counter.client, document, "INV-4")
    read = waiting(counter.client, approval(audience={"roles": ["operator"]}), "INV-5")
    definition = counter.client.get(f"/api/workflows/runs/{unread}").json()["data"]["summary"]["definition_id"]
    missing = {"error_code": "NOT_FOUND", "message": "no such definition", "errors": [], "metadata": {}}
    page = open_page("/batches")
    page.route(f"**/api/workflow-definitions/{definition}", lambda route: route.fulfill(status=404, json=missing))
    page.get_by_role("link", name="Approvals").click()
    expect(page.locator(f".gate[data-run='{read}']")).to_be_visible()
    notice = page.get_by_role("status").filter(has_text="These approvals are decided on the page of their run")
    expect(notice.get_by_role("link", name="INV-4")).to_have_attribute("href", f"#/runs/{unread}")


@pytest.fixture
def schedule(counter: Shop) -> Iterator[str]:
    """A family that would run on New Year's Eve, and is archived in the end."""
    slug = f"yearly_{uuid4().hex[:10]}"
    step = {"ref": "wait", "type": "wait", "args": {"duration": "1h"}}
    document = {"family_slug": slug, "schedule": {"cron": "0 0 31 12 *"}, "steps": [step]}
    version = publish(counter.client, document)
    yield slug
    assert counter.client.post(f"/api/workflow-definitions/{version}/archive", json={}).status_code == 200


def confirm(page: Page, action: str) -> None:
    page.get_by_role("dialog").get_by_role("button", name=action, exact=True).click()
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_a_schedule_is_paused_and_resumed(open_page: OpenPage, counter: Shop, schedule: str) -> None:
    page = open_page("/schedules")
    page.get_by_role("link", name=schedule).click()
    expect(page.get_by_text(re.compile("31 Dec .* 00:00:00")).first).to_be_visible()
    page.get_by_role("button", name="Pause…").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("holidays")
    confirm(page, "Pause")
    expect(page.locator(".badge[data-status=paused]")).to_be_visible()
    assert counter.client.get(f"/api/workflow-schedules/{schedule}").json()["data"]["paused"] is True
    page.get_by_role("tab", name="Who did what").click()
    expect(page.get_by_role("table", name="Audit")).to_contain_text("holidays")
    page.get_by_role("button", name="Resume…").click()
    confirm(page, "Resume")
    expect(page.locator(".page-head .badge[data-status=published]")).to_be_visible()
    assert counter.client.get(f"/api/workflow-schedules/{schedule}").json()["data"]["paused"] is False


def test_a_schedule_runs_now_once_and_then_says_why_not(open_page: OpenPage, counter: Shop, schedule: str) -> None:
    page = open_page(f"/schedules/{schedule}")
    page.get_by_role("button", name="Run now…").click()
    confirm(page, "Start the run")
    row = page.get_by_role("table", name="Occurrences").get_by_role("row").filter(has_text="Fired")
    expect(row).to_contain_text("By request")
    page.get_by_role("button", name="Run now…").click()
    page.get_by_role("dialog").get_by_role("button", name="Start the run").click()
    expect(page.get_by_role("dialog")).to_contain_text("SCHEDULE_RUN_ACTIVE")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Backfill…").click()
    page.get_by_label("From").fill("-10d")
    confirm(page, "Backfill")
    expect(page.get_by_text(re.compile("Backfill .*: 0 started"))).to_be_visible()


def test_an_event_says_what_it_did(open_page: OpenPage, counter: Shop) -> None:
    name = f"parcel.{uuid4().hex[:8]}"
    wait = {"ref": "parcel", "type": "wait_event", "args": {"event_name": name, "correlation_key": "p-1"}}
    listener = {
        "family_slug": f"on_{uuid4().hex[:10]}",
        "triggers": [{"patterns": [name]}],
        "input_schema": {"type": "object", "required": ["weight"]},
        "steps": [{"ref": "rest", "type": "wait", "args": {"duration": "1ms"}}],
    }
    run = shop.trigger(
        counter.client, publish(counter.client, {"family_slug": f"w_{uuid4().hex[:10]}", "steps": [wait]}), {}
    )
    shop.wait_for(counter.client, run, "waiting")
    publish(counter.client, listener)
    page = open_page("/events")
    page.get_by_label("Event name").fill(name)
    page.get_by_label("Correlation key").fill("p-1")
    page.get_by_label("Payload").fill('{"weight": 3}')
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_text("1 wait ended, 1 run started.")).to_be_visible()
    shop.wait_for(counter.client, run, "completed")
    page.get_by_label("Payload").fill("{}")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_text("0 waits ended, 0 runs started.")).to_be_visible()
    refused = page.get_by_role("table", name="Refused starts").get_by_role("row").filter(has_text=name)
    expect(refused).to_contain_text(str(listener["family_slug"]))
    expect(refused).to_contain_text("weight")


def test_many_runs_are_cancelled_at_once(open_page: OpenPage, counter: Shop) -> None:
    slug = f"many_{uuid4().hex[:10]}"
    document = {"family_slug": slug, "steps": [{"ref": "rest", "type": "wait", "args": {"duration": "1h"}}]}
    version = publish(counter.client, document)
    runs = [shop.trigger(counter.client, version, {}) for _ in range(3)]
    for run in runs:
        shop.wait_for(counter.client, run, "waiting")
    page = open_page(f"/batches/new?workflow_type={slug}&operation=cancel")
    expect(page.get_by_text("3 runs", exact=True)).to_be_visible()
    page.get_by_label("Reason").fill("wrong price list")
    page.get_by_role("button", name="Begin the batch…").click()
    confirm(page, "Cancel them")
    expect(page.locator(".badge[data-status=completed]")).to_be_visible()
    expect(page.locator(".figure").first).to_contain_text("3")
    for run in runs:
        shop.wait_for(counter.client, run, "cancelled")
    page.get_by_role("link", name="Batches").first.click()
    expect(page.get_by_role("table", name="Batches")).to_contain_text("wrong price list")


def test_a_batch_without_a_filter_is_refused(open_page: OpenPage) -> None:
    page = open_page("/batches/new")
    page.get_by_role("button", name="Begin the batch…").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause them").click()
    expect(page.get_by_role("dialog")).to_contain_text("FILTER_REQUIRED")


@pytest.mark.parametrize("to", ["/definitions", "/approvals", "/schedules", "/events", "/batches/new", "/settings"])
def test_no_page_is_wider_than_a_phone(open_page: OpenPage, to: str) -> None:
    page = open_page(to, size=PHONE)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
